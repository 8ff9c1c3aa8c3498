#!/usr/bin/env node
import { serve } from "@grapnel/sdk";

import { plugin } from "./plugin.js";

serve(plugin);

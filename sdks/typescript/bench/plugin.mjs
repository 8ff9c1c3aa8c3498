import { definePlugin, deny, serve } from "@grapnel/sdk";

const guard = (input) => input.tool === "shell" && deny("no shell here", { reason_code: "shell" });

serve(definePlugin({
  name: "bench",
  version: "1.0.0",
  hooks: {
    guard: { kinds: ["decision"], needs: ["arguments"], toolPreCall: guard },
    later: { kinds: ["decision"], needs: ["arguments"], toolPreCall: async (input) => guard(input) },
  },
}));

// Imported first: the connection comes about while the rest of the page is evaluated.
import { start } from "./session";

void start();

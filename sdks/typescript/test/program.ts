// A plugin as a process, for process.test.ts. It is not well-behaved.

import { context, definePlugin, deny, serve } from "@grapnel/sdk";

console.log("printed before serve");
process.stdout.write("written before serve\n");

serve(definePlugin({
  name: "program",
  version: "1.0.0",
  hooks: {
    guard: { kinds: ["decision"], needs: ["nothing"], toolPreCall: (input) => (console.info("printed in a hook"), input.tool === "shell" && deny("no shell here")) },
    waits: { sessionStart: (_input, call) => new Promise((_, reject) => call.signal.addEventListener("abort", () => reject(call.signal.reason))) },
    large: { kinds: ["prompt_context"], sessionStart: (_input, call) => context("é".repeat(call.context.epoch)) },
  },
  tools: {
    echo: { call: (args) => args },
    cookie: { call: () => process.env.GRAPNEL_PLUGIN ?? null },
    leak: { call: () => (void Promise.reject(new Error("nobody looks at me")), "leaked") },
    crash: { call: () => new Promise(() => setTimeout(() => { throw new Error("crashed in a timer"); }, 1)) },
  },
  close: () => console.error("closed"),
}));

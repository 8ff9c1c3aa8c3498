// Measures what a plugin process costs its host: calls a second with 16 in flight, the time of a single call, and the
// start. Run it with `npm run bench`. The host here is a process of its own too: with one free core, halve its figures.

import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const plugin = fileURLToPath(new URL("plugin.mjs", import.meta.url));
const env = { ...process.env, GRAPNEL_PLUGIN: "2f6a0c1e9d4b4b7c8f0e5a73d1c96b28", GRAPNEL_TRANSPORT: "stdio" };
const body = `"incarnation":1,"dispatch":${JSON.stringify({
  subscription: "bench.guard", hook: "guard", phase: "tool.pre_call", attempt: 1, generation: 1, remaining_ns: 1e9,
  context: { workspace_id: "w", thread_id: "t", turn_id: "u", session_id: "s", mode: "agent", now: "2026-03-01T09:30:00Z", dir: "/repo", flags: { a: true } },
  budget: { max_chars: 20000, max_bytes: 4194304 }, tool_pre_call: { tool: "shell", arguments_json: { command: "x".repeat(1024) }, touched_paths: ["/repo/a"] },
})}}\n`;

function start() {
  const child = spawn(process.execPath, [plugin], { env, stdio: ["pipe", "pipe", "inherit"] });
  const began = performance.now();
  child.stdin.write('{"id":1,"incarnation":1,"hello":{"protocol_version":1,"max_frame_bytes":4194304}}\n');
  return new Promise((resolve) => child.stdout.once("data", () => resolve({ child, took: performance.now() - began })));
}

async function dispatches(hook, count, inFlight) {
  const { child } = await start();
  const line = body.replace('"guard"', `"${hook}"`);
  let sent = 0;
  let answered = 0;
  const send = (n) => {
    let text = "";
    for (; n > 0 && sent < count; n--) text += `{"id":${++sent + 1},${line}`;
    if (text) child.stdin.write(text);
  };
  const began = performance.now();
  await new Promise((resolve) => {
    child.stdout.on("data", (chunk) => {
      let n = 0;
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) n++;
      answered += n;
      send(n);
      if (answered === count) resolve();
    });
    send(inFlight);
  });
  const seconds = (performance.now() - began) / 1000;
  child.stdin.end();
  return { rate: Math.round(count / seconds), latency: Math.round((seconds / count) * inFlight * 1e6) };
}

for (const hook of ["guard", "later"]) {
  await dispatches(hook, 20_000, 16); // warm the machine
  const many = await dispatches(hook, 200_000, 16);
  const one = await dispatches(hook, 20_000, 1);
  console.log(`${hook === "guard" ? "sync" : "async"} handler, 1 KiB: ${many.rate} calls/s with 16 in flight, ${one.latency} µs for one alone`);
}

const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
const bare = [];
const described = [];
for (let i = 0; i < 15; i++) {
  const began = performance.now();
  spawnSync(process.execPath, ["-e", "0"]);
  bare.push(performance.now() - began);
  const { child, took } = await start();
  described.push(took);
  child.kill("SIGKILL");
}
console.log(`start to description: ${median(described).toFixed(0)} ms; node -e 0: ${median(bare).toFixed(0)} ms`);

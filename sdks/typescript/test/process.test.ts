// A plugin as a process: streams, signals and exit codes.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { type Connection, FakeHost, run } from "@grapnel/sdk/testing";

const path = fileURLToPath(new URL("program.js", import.meta.url));
const program = { command: [process.execPath, path] } as const;
const env = { GRAPNEL_PLUGIN: "2f6a0c1e9d4b4b7c8f0e5a73d1c96b28", GRAPNEL_TRANSPORT: "stdio" };

/** bare starts the program without the kit. It is killed when the test is over. */
function bare(t: TestContext) {
  const child = spawn(process.execPath, [path], { env });
  t.after(() => child.kill("SIGKILL"));
  return child;
}

async function started(): Promise<Connection> {
  const connection = await new FakeHost().connect(program);
  assert.equal(await connection.configure(), undefined);
  return connection;
}

test("a plugin that a person starts says so", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [path], { encoding: "utf8", env: {} });
  assert.equal(status, 1);
  assert.match(stderr, /program 1\.0\.0 is a plugin of Grapnel/);
  assert.equal(stdout, "printed before serve\nwritten before serve\n");
  assert.match(spawnSync(process.execPath, [path], { encoding: "utf8", env: { ...env, GRAPNEL_TRANSPORT: "" } }).stderr, /must declare it with `transport: stdio`/);
});

test("a call, and what is printed goes to standard error", async () => {
  const answer = await run(program, { hook: "guard", input: { tool: "shell", arguments: { a: 1 } } });
  assert.deepEqual(answer, { contributions: [{ kind: "decision", verdict: "deny", reason: "no shell here" }] });
  const connection = await started();
  await connection.call({ hook: "guard", input: { tool: "ls" } });
  assert.deepEqual(await connection.call({ tool: "cookie" }), { content: null });
  assert.equal(await connection.close(), 0);
  assert.match(connection.log, /^printed before serve\nwritten before serve\nprinted in a hook\n/);
  assert.match(connection.log, /closed/);
});

test("a character that is cut between two chunks", async (t) => {
  const child = bare(t);
  const line = Buffer.from('{"id":1,"call_tool":{"tool":"echo","arguments_json":"é😀"}}\n{"id":2,"ping":{}}\n{"id":');
  for (const byte of line) {
    child.stdin.write(Buffer.from([byte]));
    await new Promise(setImmediate);
  }
  child.stdin.write('3,"ping":{}}\r\n\n{"id":4,"ping":{}}\n');
  let out = "";
  for await (const text of child.stdout.setEncoding("utf8")) if ((out += text).includes('"id":4')) child.stdin.end();
  assert.deepEqual(out.trim().split("\n").map((line) => JSON.parse(line)), [
    { id: 1, incarnation: 0, tool_result: { content_json: "é😀" } }, { id: 2, incarnation: 0, pong: {} }, { id: 3, incarnation: 0, pong: {} }, { id: 4, incarnation: 0, pong: {} },
  ]);
});

test("the end of the input cancels what runs, and the exit code is 0", async () => {
  const connection = await started();
  const call = connection.call({ hook: "waits" });
  assert.equal(await connection.close(), 0);
  await assert.rejects(call, /the plugin ended/);
  assert.doesNotMatch(connection.log, /ERROR|at /);
});

test("so does SIGTERM", async () => {
  const connection = await started();
  assert.equal(await connection.close("SIGTERM"), 0);
});

test("drain, then the end", async () => {
  const connection = await started();
  const calls = Promise.all(Array.from({ length: 100 }, (_, n) => connection.call({ tool: "echo", arguments: n })));
  await connection.drain();
  assert.deepEqual((await calls).map((answer) => answer.content), Array.from({ length: 100 }, (_, n) => n));
  assert.equal(await connection.close(), 0);
});

test("a host that breaks the protocol ends the plugin", async () => {
  for (const line of ["hello", "[1]", "x".repeat((4 << 20) + 70_000)]) {
    const connection = await started();
    connection.raw(line);
    assert.equal(await connection.ended, 1, line.slice(0, 20));
    assert.match(connection.log, /the session broke/);
  }
});

test("large answers: 4 MiB is sent, more is not", async () => {
  const connection = await started();
  const ask = (epoch: number) => connection.call({ hook: "large", context: { epoch } });
  const most = (4 << 20) / 2 - 60;
  assert.equal((await ask(most)).contributions!.length, 1);
  assert.equal((await ask(most + 60)).error!.code, "oversize_reply");
  await connection.ping();
  await connection.close();
});

test("a host that does not read stops the plugin's work, and loses nothing", async (t) => {
  const child = bare(t);
  const count = 3000;
  const text = "x".repeat(4000);
  let sent = 0;
  const send = () => new Promise<boolean>((taken) => child.stdin.write(`{"id":${++sent},"call_tool":{"tool":"echo","arguments_json":"${text}"}}\n`, () => taken(true)));
  await send();
  await once(child.stdout, "readable");
  const stalled = async (taken: Promise<boolean>) => {
    const timer = new AbortController();
    const late = pause(1000, false, { signal: timer.signal }).catch(() => false);
    return !(await Promise.race([taken, late]).finally(() => timer.abort()));
  };
  while (sent < count && !(await stalled(send())));
  assert.ok(sent < count, "the plugin reads on although nobody takes its answers");
  while (sent < count) void send();
  let lines = 0;
  for await (const chunk of child.stdout) {
    lines += chunk.toString("latin1").split("\n").length - 1;
    if (lines === count) child.stdin.end();
  }
  assert.equal(lines, count);
});

test("a host that closes the plugin's output", async (t) => {
  const child = bare(t);
  child.stdout.destroy();
  child.stdin.write('{"id":1,"ping":{}}\n'.repeat(1000));
  child.stdin.on("error", () => {});
  const [code] = await once(child, "exit");
  assert.equal(code, 0);
});

test("a rejection that nobody looks at is logged, and the plugin goes on", async () => {
  const connection = await started();
  assert.deepEqual(await connection.call({ tool: "leak" }), { content: "leaked" });
  await connection.ping();
  assert.match(connection.log, /nobody looks at me/);
  await connection.close();
});

test("an exception that nobody catches ends the plugin with its stack", async () => {
  const connection = await started();
  await assert.rejects(connection.call({ tool: "crash" }), /the plugin ended \(exit code 1\)[^]*crashed in a timer/);
});

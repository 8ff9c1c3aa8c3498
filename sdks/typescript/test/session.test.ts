// The protocol, line by line, in this process.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ConfigError, context, definePlugin, deny, HostError, PluginError, section, setup } from "@grapnel/sdk";
import { FakeHost } from "@grapnel/sdk/testing";
import { ProtocolError, Session } from "../dist/session.js";

type Frame = Record<string, any>;

/** start returns a session and the frames that it has sent. */
function start(definition: Partial<Parameters<typeof definePlugin>[0]>, maxBytes?: number) {
  const out: Frame[] = [];
  const lines: string[] = [];
  const log: string[] = [];
  const plugin = definePlugin({ name: "p", version: "1", ...definition } as Parameters<typeof definePlugin>[0]);
  const session = new Session(plugin, {
    write: (line) => void (lines.push(line), out.push(JSON.parse(line))),
    log: (_level, message, fields) => void log.push(`${message} ${fields?.stack ?? ""}`),
  });
  const host = (frame: Frame) => session.receive(JSON.stringify({ incarnation: 7, ...frame }));
  host({ id: 1, hello: { protocol_version: 1, max_frame_bytes: maxBytes } });
  return { session, host, out, lines, log };
}

const guard = (toolPreCall: (input: any, call: any) => any) => ({ hooks: { h: { kinds: ["decision"], toolPreCall } } }) as any;
const dispatch = (id: number, more: Frame = {}) => ({ id, dispatch: { hook: "h", phase: "tool.pre_call", tool_pre_call: { tool: "t" }, ...more } });
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));
const never = () => new Promise(() => {});

test("the answer has the id and the incarnation of its frame", () => {
  const { host, out } = start(guard(() => deny("no")));
  host({ ...dispatch(9), incarnation: 8 });
  assert.deepEqual(out.at(-1), { id: 9, incarnation: 8, result: { contributions: [{ decision: { verdict: "deny", reason: "no" } }] } });
});

test("ids may be decimal strings, and nothing else", () => {
  const { host, session, out } = start({});
  host({ id: "9007199254740991", ping: {} });
  assert.equal(out.at(-1)!.id, Number.MAX_SAFE_INTEGER);
  for (const line of ["", "[]", "null", "5", "{", '{"id":1.5}', '{"id":-0.1}', '{"id":9007199254740993,"ping":{}}', '{"id":{},"ping":{}}']) {
    assert.throws(() => session.receive(line), ProtocolError, line);
  }
});

test("describe is the same twice", () => {
  const { host, lines } = start(guard(() => {}));
  host({ id: 1, hello: { protocol_version: 1 } });
  assert.equal(lines[0], lines[1]);
});

test("another version of the protocol", () => {
  const { host, out } = start({});
  host({ id: 2, hello: { protocol_version: 2 } });
  assert.equal(out.at(-1)!.describe.error.code, "version_mismatch");
});

test("an unknown body is unsupported, unknown fields are ignored", () => {
  const { host, out, session } = start({});
  host({ id: 2, dance: {}, more: 1 });
  assert.deepEqual(out.at(-1), { id: 2, incarnation: 7, unsupported: { name: "dance" } });
  host({ id: 3, ping: { now: 1 }, extra: [1] });
  assert.deepEqual(out.at(-1), { id: 3, incarnation: 7, pong: {} });
  host({ id: 4, ping: null });
  assert.deepEqual(out.at(-1), { id: 4, incarnation: 7, unsupported: {} });
  session.receive('{"id":5,"__proto__":{"polluted":true},"constructor":{}}');
  assert.deepEqual(out.at(-1), { id: 5, incarnation: 0, unsupported: { name: "__proto__" } });
  assert.equal(({} as Frame).polluted, undefined);
});

test("ping is answered while calls run", () => {
  const { host, out } = start(guard(never));
  host(dispatch(2));
  host({ id: 3, ping: {} });
  assert.deepEqual(out.at(-1), { id: 3, incarnation: 7, pong: {} });
});

test("defaults are filled in, and names from the wire are harmless", () => {
  let seen: any;
  const { session } = start(guard((input, call) => void (seen = { input, call })));
  session.receive('{"id":2,"incarnation":"7","dispatch":{"hook":"h","phase":"tool.pre_call","remaining_ns":"1500000000","tool_pre_call":{"tool":"t","arguments_json":{"__proto__":{"a":1}},"touched_paths":null,"facts":{"commands":[{"program":"rm"}],"secrets":["/a/.env"]}},"context":{"flags":{"__proto__":true,"on":true},"metadata_json":{"m":[1,null]}}}}');
  assert.deepEqual(seen.input.touched_paths, []);
  assert.deepEqual(seen.input.facts.commands, [{ program: "rm", words: [], options: [] }]);
  assert.deepEqual([seen.input.facts.secrets, seen.input.facts.hosts, seen.input.facts.unparsed], [["/a/.env"], [], false]);
  assert.deepEqual(Object.keys(seen.input.arguments), ["__proto__"]);
  assert.equal(seen.call.remaining_ms, 1500);
  assert.equal(seen.call.context.flags.on, true);
  assert.equal(seen.call.context.flags.constructor, undefined);
  assert.deepEqual(seen.call.context.metadata.m, [1, null]);
  assert.equal(seen.call.context.dir, "");
  assert.deepEqual(seen.call.contexts, []);
  assert.equal(seen.call.policy("a", "b"), undefined);
});

test("a text and a preview that are withheld", () => {
  let seen: any;
  const { host } = start({ hooks: { h: { prePromptContext: (input: any) => void (seen = input) } } } as any);
  host({ id: 2, dispatch: { hook: "h", phase: "turn.pre_prompt_context", pre_prompt_context: { user_text: { withheld_chars: 12 } } } });
  assert.deepEqual(seen.user_text, { value: "", withheld: true, chars: 12 });
  host({ id: 3, dispatch: { hook: "h", phase: "turn.pre_prompt_context", pre_prompt_context: { user_text: { value: "hi" } } } });
  assert.deepEqual(seen.user_text, { value: "hi", withheld: false, chars: 0 });
  host({ id: 4, dispatch: { hook: "h", phase: "turn.pre_prompt_context" } });
  assert.deepEqual(seen.user_text, { value: "", withheld: false, chars: 0 });
});

test("whatever a handler throws or returns is one answer", async () => {
  const cycle: Frame = {};
  cycle.self = cycle;
  const answers: Record<string, [() => unknown, string]> = {
    "throws null": [() => { throw null; }, "error"],
    "throws undefined": [() => { throw undefined; }, "error"],
    "throws a text": [() => { throw "a\u202eb\0"; }, "error"],
    "throws what cannot be shown": [() => { throw { toJSON() { throw 1; } }; }, "error"],
    "throws an error with a getter": [() => { throw Object.defineProperty(new Error(), "message", { get() { throw 1; } }); }, "error"],
    "rejects": [() => Promise.reject(new PluginError("upstream_down", "no")), "upstream_down"],
    "throws a proxy": [() => { throw new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 1; } }); }, "error"],
    "returns a proxy": [() => new Proxy({}, { get() { throw 1; }, ownKeys() { throw 1; } }), "error"],
    "what is too deep": [() => ({ kind: "policy", domain: "d", key: "k", value: JSON.parse("[".repeat(1e6) + "]".repeat(1e6)) }), "error"],
    "a number": [() => 5, "error"],
    "a text": [() => "deny", "error"],
    "no kind": [() => ({ verdict: "deny" }), "error"],
    "the kind constructor": [() => ({ kind: "constructor" }), "error"],
    "the kind __proto__": [() => JSON.parse('{"kind":"__proto__"}'), "error"],
    "a field of another type": [() => deny(5 as any), "error"],
    "an unknown field": [() => ({ ...deny("no"), reasonCode: "x" }), "error"],
    "a bigint": [() => ({ kind: "policy", domain: "d", key: "k", value: { n: 5n } }), "error"],
    "a cycle": [() => ({ kind: "policy", domain: "d", key: "k", value: cycle }), "error"],
    "a lone surrogate": [() => deny("\ud800"), "invalid_reply"],
    "a NUL": [() => deny("a\0b"), "invalid_reply"],
    "a character that reorders text": [() => deny("a\u2066b"), "invalid_reply"],
    "a lone surrogate in a name": [() => ({ kind: "policy", domain: "d", key: "k", value: { "\udfff": 1 } }), "invalid_reply"],
    "a thenable that answers twice": [() => ({ then(ok: any) { ok(deny("a")); ok(deny("b")); throw 1; } }), ""],
    "a thenable that fails": [() => ({ get then() { throw new Error("x"); } }), "error"],
  };
  for (const [name, [answer, want]] of Object.entries(answers)) {
    const { host, out, log } = start(guard(answer));
    host(dispatch(2));
    await tick();
    assert.equal(out.length, 2, name);
    assert.equal(out[1]!.result.error?.plugin_code ?? "", want, `${name}: ${JSON.stringify(out[1])}`);
    if (want === "error") assert.equal(out[1]!.result.error.code, "plugin_error", name);
    assert.equal(log.length > 0, want !== "" && want !== "upstream_down", `${name}: ${log}`);
  }
});

test("text that only looks like an escape is sent", () => {
  const { host, out } = start(guard(() => deny("\\u0000 \\\\ud800 \ud83d\ude00")));
  host(dispatch(2));
  assert.equal(out[1]!.result.contributions[0].decision.reason, "\\u0000 \\\\ud800 \ud83d\ude00");
});

test("an answer of exactly the limit is sent, and one more byte is not", () => {
  const limit = 4000;
  const frame = (n: number) => {
    const { host, lines } = start({ hooks: { h: { kinds: ["prompt_context"], sessionStart: () => context("é".repeat(n)) } } } as any, limit);
    host({ id: 2, dispatch: { hook: "h", phase: "session.start" } });
    return lines.at(-1)!;
  };
  const overhead = Buffer.byteLength(frame(100)) - 200;
  const most = Math.floor((limit - overhead) / 2);
  assert.ok(Buffer.byteLength(frame(most)) > limit - 2);
  assert.ok(!frame(most).includes("oversize_reply"));
  assert.deepEqual(JSON.parse(frame(most + 1)).result.error.code, "oversize_reply");
});

test("a description that is too large is an error", () => {
  const { out } = start({ doc: "x".repeat(3000) }, 2000);
  assert.equal(out[0]!.describe.error.code, "oversize_reply");
});

test("a cancelled call is answered once, also before it has begun", async () => {
  let signal: AbortSignal | undefined;
  let release: (() => void) | undefined;
  const { host, out } = start({
    concurrency: 1,
    ...guard((_input, call) => {
      signal = call.signal;
      return new Promise<void>((resolve) => (release = resolve));
    }),
  });
  host(dispatch(2));
  host(dispatch(3));
  host({ id: 3, cancel: {} });
  assert.deepEqual(out.at(-1), { id: 3, incarnation: 7, result: { error: { code: "plugin_error", plugin_code: "cancelled", message: "the host cancelled the call" } } });
  host({ id: 2, cancel: {} });
  host({ id: 2, cancel: {} });
  host({ id: 99, cancel: {} });
  assert.ok(signal!.aborted);
  assert.equal(out.length, 2);
  release!();
  await tick();
  assert.deepEqual(out.at(-1), { id: 2, incarnation: 7, result: {} });
  host({ id: 2, cancel: {} });
  assert.equal(out.length, 3);
});

test("the signal is aborted at the deadline, and its reason is the answer", async () => {
  const { host, out } = start(guard((_input, call) => new Promise((_, reject) => call.signal.addEventListener("abort", () => reject(call.signal.reason)))));
  host(dispatch(2, { remaining_ns: 5e6 }));
  while (out.length < 2) await tick();
  assert.equal(out[1]!.result.error.code, "timeout");
});

test("the signal of an answered call is not aborted any more", async () => {
  let signal: AbortSignal | undefined;
  const { host, out } = start(guard((_input, call) => void (signal = call.signal)));
  host(dispatch(2, { remaining_ns: 5e6 }));
  await new Promise((resolve) => setTimeout(resolve, 30)); // timers fire in the order of their time
  assert.equal(out.length, 2);
  assert.equal(signal!.aborted, false);
});

test("a call whose time is over before it begins is not begun", async () => {
  let calls = 0;
  let release: (() => void) | undefined;
  const { host, out } = start({ concurrency: 1, ...guard(() => (calls++, new Promise<void>((resolve) => (release = resolve)))) });
  host(dispatch(2));
  host(dispatch(3, { remaining_ns: 1 }));
  await tick();
  release!();
  await tick();
  assert.equal(calls, 1);
  assert.equal(out.at(-1)!.result.error.code, "timeout");
});

test("concurrency is bounded, and a long queue is no deep recursion", async () => {
  let running = 0;
  let most = 0;
  let first: (() => void) | undefined;
  const { host, out } = start({
    concurrency: 2,
    ...guard((input) => {
      if (input.tool === "sync") return;
      most = Math.max(most, ++running);
      return new Promise<void>((resolve) => (first ??= resolve)).then(() => void running--);
    }),
  });
  for (let id = 2; id < 4; id++) host(dispatch(id));
  for (let id = 4; id < 50_000; id++) host(dispatch(id, { tool_pre_call: { tool: "sync" } }));
  assert.equal(out.length, 1);
  first!();
  await tick();
  assert.equal(most, 2);
  assert.equal(out.length, 50_000 - 2);
  assert.deepEqual(out.filter((frame) => frame.result?.error), []);
});

test("drain is answered when nothing is left, twice if asked twice", async () => {
  let release: (() => void) | undefined;
  const { host, out } = start(guard(() => new Promise<void>((resolve) => (release = resolve))));
  host(dispatch(2));
  host({ id: 3, drain: {} });
  host({ id: 4, drain: {} });
  assert.equal(out.length, 1);
  release!();
  await tick();
  assert.deepEqual(out.slice(1).map((frame) => [frame.id, Object.keys(frame)[2]]), [[2, "result"], [3, "pong"], [4, "pong"]]);
  host({ id: 5, drain: {} });
  assert.deepEqual(out.at(-1), { id: 5, incarnation: 7, pong: {} });
});

test("drain waits for a configuration", async () => {
  let release: (() => void) | undefined;
  const { host, out } = start({ configure: () => new Promise<void>((resolve) => (release = resolve)) });
  host({ id: 2, configure: {} });
  await tick();
  host({ id: 3, drain: {} });
  assert.equal(out.length, 1);
  release!();
  await tick();
  assert.deepEqual(out.slice(1).map((frame) => frame.id), [2, 3]);
});

test("a hook or a tool that the plugin does not have", () => {
  const { host, out } = start({});
  host({ id: 2, dispatch: { hook: "constructor" } });
  host({ id: 3, call_tool: { tool: "__proto__" } });
  host({ id: 4, call_tool: {} });
  assert.deepEqual(out.slice(1).map((frame) => (frame.result ?? frame.tool_result).error.plugin_code), ["unknown_hook", "unknown_tool", "unknown_tool"]);
});

test("a hook that is called for another phase", () => {
  const { host, out } = start(guard(() => deny("no")));
  host({ id: 2, dispatch: { hook: "h", phase: "session.start" } });
  assert.equal(out.at(-1)!.result.error.plugin_code, "wrong_input");
});

test("an id that is used twice breaks the session", () => {
  const { host } = start(guard(never));
  host(dispatch(2));
  assert.throws(() => host(dispatch(2)), ProtocolError);
});

test("the answers of tools", async () => {
  const calls: [unknown, Frame][] = [
    ["text", { content_json: "text" }],
    [null, { content_json: null }],
    [undefined, {}],
    [0, { content_json: 0 }],
    [{ a: 1 }, { content_json: { a: 1 } }],
    [{}, { content_json: {} }],
    [{ content: [1], is_error: true }, { content_json: [1], is_error: true }],
    [{ content: 1, other: 2 }, { content_json: { content: 1, other: 2 } }],
    [{ content: "x", diagnostics: [{ code: "c", severity: "info", message: "m" }] }, { content_json: "x", diagnostics: [{ code: "c", severity: "info", message: "m" }] }],
    [new Date(0), { content_json: "1970-01-01T00:00:00.000Z" }],
  ];
  for (const [value, want] of calls) {
    const { host, out } = start({ tools: { t: { call: () => value } } });
    host({ id: 2, call_tool: { tool: "t" } });
    assert.deepEqual(out.at(-1)!.tool_result, want);
  }
});

test("arguments that do not fit the schema do not reach the tool", () => {
  const input = { type: "object", properties: { text: { type: "string" } }, required: ["text"], additionalProperties: false } as const;
  const { host, out } = start({ tools: { t: { input, call: ({ text }: { text: string }) => text.length } } });
  for (const [arguments_json, want] of [[{ text: "abc" }, 3], [undefined, /must have "text"/], [{ text: 1 }, /\/text must be of type string/], [{ text: "", x: 1 }, /\/x is not allowed/], [{ text: "", constructor: 1 }, /\/constructor is not allowed/], [null, /must be of type object/]] as const) {
    host({ id: 2, call_tool: { tool: "t", arguments_json } });
    const { content_json, is_error } = out.at(-1)!.tool_result;
    if (want instanceof RegExp) assert.match(content_json, want);
    else assert.equal(content_json, want);
    assert.equal(is_error, want instanceof RegExp ? true : undefined);
  }
});

test("a configuration replaces hooks, and a refused one changes nothing", async () => {
  const { host, out } = start({
    config: { type: "object", properties: { word: { type: "string" } } },
    configure: async ({ word }: { word: string }) => {
      if (word === "") throw new ConfigError("/word", "is empty");
      if (word === "bug") throw new Error("oh");
      return setup({ hooks: { h: { kinds: ["prompt_section"], prePromptCompile: () => section("s", word) } } });
    },
  });
  const ask = async (id: number, config_json: unknown) => {
    host({ id, configure: { instance: "i", config_json } });
    await tick();
    host({ id: id + 1, dispatch: { hook: "h", phase: "turn.pre_prompt_compile" } });
    return [out.at(-2)!.configured, out.at(-1)!.result] as const;
  };
  const [configured, result] = await ask(2, { word: "one" });
  assert.equal(configured.description.hooks[0].name, "h");
  assert.equal(result.contributions[0].prompt_section.content, "one");
  for (const [config, want] of [[{ word: "" }, { rejected: { pointer: "/word", message: "is empty" } }], [{ word: 5 }, { rejected: { pointer: "/word", message: "must be of type string" } }], [{ word: "bug" }, { error: { code: "plugin_error", plugin_code: "error", message: "oh" } }]]) {
    const [configured, result] = await ask(4, config);
    assert.deepEqual(configured, want);
    assert.equal(result.contributions[0].prompt_section.content, "one");
  }
});

test("host calls carry their parent, and end with it", async () => {
  const seen: unknown[] = [];
  const { host, out } = start({
    tools: {
      t: {
        call: async (_args: unknown, call: any) => {
          seen.push(await call.host.state.get());
          await call.host.invalidate({ tags: ["a"] });
          try {
            await call.host.model.complete({ input: "x" });
          } catch (err) {
            seen.push(err);
          }
          return call.host.call("documents", "resolve_for_thread", { n: 1n }).catch((err: Error) => err.name);
        },
      },
    },
  });
  host({ id: 5, call_tool: { tool: "t" } });
  assert.deepEqual(out.at(-1), { id: 1, incarnation: 7, host_call: { parent: 5, service: "state", method: "get", params_json: {} } });
  host({ id: 1, host_reply: { result_json: { value: { a: 1 } } } });
  host({ id: 1, host_reply: { result_json: { value: "second" } } });
  host({ id: 77, host_reply: {} });
  await tick();
  assert.deepEqual(out.at(-1), { id: 2, incarnation: 7, invalidate: { parent: 5, tags: ["a"] } });
  host({ id: 2, host_reply: {} });
  await tick();
  assert.equal(out.at(-1)!.host_call.service, "model");
  host({ id: 3, host_reply: { error: { code: "budget_exhausted", message: "no", retryable: true } } });
  await tick();
  assert.deepEqual(out.at(-1)!.tool_result, { content_json: "TypeError" });
  assert.deepEqual(seen[0], { a: 1 });
  assert.ok(seen[1] instanceof HostError && seen[1].code === "budget_exhausted" && seen[1].retryable);
});

test("many host calls of one call give no warning", async () => {
  const warnings: unknown[] = [];
  const onWarning = (warning: unknown) => void warnings.push(warning);
  process.on("warning", onWarning);
  const { host, out } = start({ tools: { t: { call: (_: unknown, call: any) => Promise.all(Array.from({ length: 30 }, () => call.host.state.get())) } } });
  host({ id: 5, call_tool: { tool: "t" } });
  for (let id = 1; id <= 30; id++) host({ id, host_reply: { result_json: { value: id } } });
  await tick();
  assert.equal(out.at(-1)!.tool_result.content_json.length, 30);
  process.off("warning", onWarning);
  assert.deepEqual(warnings, []);
});

test("a host call ends when its call is cancelled", async () => {
  const { host, out } = start({ tools: { t: { call: (_: unknown, call: any) => call.host.state.get() } } });
  host({ id: 5, call_tool: { tool: "t" } });
  host({ id: 5, cancel: {} });
  await tick();
  assert.equal(out.at(-1)!.tool_result.error.plugin_code, "cancelled");
});

test("the end aborts all calls, closes the plugin, and is silent", async () => {
  let closed = 0;
  let signal: AbortSignal | undefined;
  const { session, host, out } = start({ close: () => void closed++, ...guard((_input, call) => ((signal = call.signal), never())) });
  host(dispatch(2));
  await session.end("over");
  await session.end("over");
  assert.equal(closed, 1);
  assert.ok(signal!.aborted);
  assert.equal(out.length, 1);
});

test("the phases of a host's own, and any phase", () => {
  const seen: unknown[] = [];
  const { host } = start({ hooks: { h: { phase: "x.acme.deploy", any: (input: unknown) => void seen.push(input) } } } as any);
  host({ id: 2, dispatch: { hook: "h", phase: "x.acme.deploy", custom: { fields_json: { service: "shop" } } } });
  host({ id: 3, dispatch: { hook: "h", phase: "session.end", session_end: { reason: "bye" } } });
  assert.deepEqual(seen, [{ service: "shop" }, { reason: "bye" }]);
});

test("mistakes of a plugin are listed together", () => {
  const define = () => definePlugin({
    name: "a.b", version: "", doc: 5, hooks: { "": { toolPreCall: 1 }, h: { kinds: ["policy"], colour: "red", toolPreCall() {} } }, tools: { t: {} },
  } as any);
  assert.throws(define, (err: Error) => {
    for (const want of ["name:", "version:", "1 handlers", "does not take policy", "has no function call", "in its name"]) assert.match(err.message, new RegExp(want));
    return err instanceof TypeError;
  });
  assert.throws(() => definePlugin({ name: "a", version: "1", hooks: { h: { colour: "red", toolPreCall() {} } } } as any), /Hook.colour/);
});

test("the description has everything that a hook proposes", () => {
  const { out } = start({
    doc: "d", requires: ["tools"], concurrency: 4, config: { type: "object" },
    hooks: {
      h: {
        kinds: ["prompt_section"], role: "contribute", priority: 5, after: ["a.b?"], needs: ["sections"], when: "true", timeout_ms: 250.5, on_failure: { default: "best_effort", timeout: "fallback" },
        fallback: [section("s", "t", { max_chars: 5, source_refs: [{ kind: "file", id: "f" }] })], retry: { attempts: 2, backoff_ms: 10 }, idempotent: true, budget: { chars: 100 },
        cache: { ttl_ms: 60_000, vary: ["dir"], tags: ["t"] }, visibility: "debug", prePromptCompile: () => {},
      },
    },
  } as any);
  assert.deepEqual(out[0]!.describe.description, {
    name: "p", version: "1", doc: "d", requires: ["tools"], limits: { concurrency: 4 }, config_schema_json: { type: "object" },
    hooks: [{
      name: "h", phase: "turn.pre_prompt_compile", kinds: ["prompt_section"], role: "contribute", priority: 5, after: ["a.b?"], needs: ["sections"], when: "true", timeout_ns: 250_500_000,
      on_failure: { default: "best_effort", by_cause: { timeout: "fallback" } }, fallback: [{ prompt_section: { section_id: "s", content: "t", max_chars: 5, source_refs: [{ kind: "file", id: "f" }] } }],
      retry: { attempts: 2, backoff_ns: 10_000_000 }, idempotent: true, budget: { chars: 100 }, cache: { ttl_ns: 60_000_000_000, vary: ["dir"], tags: ["t"] }, visibility: "debug",
    }],
  });
});

test("a fake host answers by its script", async () => {
  const plugin = definePlugin({ name: "p", version: "1", tools: { t: { call: async (_args, call) => (await call.host.model.complete({ input: "x" })).text } } });
  const host = new FakeHost({ "model/complete": ({ input }) => ({ text: `${input}!`, model: "m", stopped: "end" }) });
  const connection = await host.connect(plugin);
  assert.deepEqual(await connection.call({ tool: "t" }), { content: "x!" });
  assert.deepEqual(host.calls, [{ name: "model/complete", params: { input: "x" } }]);
  await connection.close();
});

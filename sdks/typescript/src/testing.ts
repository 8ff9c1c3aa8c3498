// Kit for tests of plugins: a host that speaks the whole protocol, to a plugin in process or to its program.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";

import { decode, decodeContribution, encode, isObject, typeOf } from "./codec.js";
import { alwaysAccepted, type ContextEntry, type Context, type Diagnostic, type Json, type Kind, type Kinds, phases, type PolicyEntry, ungranted } from "./generated.js";
import type { Plugin } from "./plugin.js";
import { Session } from "./session.js";

export { fixtures } from "./fixtures.js";

/** Case is one call of a hook or a tool. Every field but hook or tool has a sensible default. */
export interface Case {
  /** The hook to call, by its name. */
  hook?: string;
  /** Or the tool to call. */
  tool?: string;
  /** The operator's configuration. */
  config?: Json;
  context?: Partial<Context>;
  /** The hook's input. A text is a string, or {"withheld": true, "chars": 12}. */
  input?: Record<string, unknown>;
  /** The tool's arguments. */
  arguments?: Json;
  policies?: Partial<PolicyEntry>[];
  contexts?: Partial<ContextEntry>[];
  /** What the operator does not grant: fields of the input, "policy", "context", "metadata". */
  withhold?: readonly string[];
  /** Calls the tool outside of a turn: without policies. */
  outside_turn?: boolean;
  /** The plugin's text budget; 20,000 by default. */
  max_chars?: number;
  /** Answers host calls; by default all are refused. */
  host?: FakeHost;
  /** The code of the expected error; absent expects success. */
  want_code?: string;
  /** Says why equal calls may have different answers, and switches their comparison off. */
  volatile?: string;
  /** How long a cancelled call may take to return; 2000 by default. */
  patience_ms?: number;
}

/** Result is what a plugin answered: the contributions of a hook or the content of a tool, or an error. */
export interface Result {
  contributions?: Kinds[Kind][];
  content?: Json;
  is_error?: boolean;
  diagnostics?: Diagnostic[];
  error?: { code: string; message: string; retryable?: boolean };
}

/** Command is a plugin's program: the command line, and a working directory. */
export interface Command {
  command: readonly [string, ...string[]];
  cwd?: string;
  env?: Record<string, string>;
}

/** Service answers one host call; it may throw a HostError. */
export type Service = (params: any) => unknown;

type Frame = Record<string, any>;

/** FakeHost answers host calls from a script, and records them. */
export class FakeHost {
  readonly services: Record<string, Service>;
  readonly calls: { name: string; params: Json }[] = [];
  readonly invalidations: { subscriptions?: string[]; tags?: string[] }[] = [];

  /** services are by "service/method", such as "model/complete". */
  constructor(services: Record<string, Service> = {}) {
    this.services = services;
  }

  /** connect opens a session with a plugin in this process, or with its program. */
  async connect(target: Plugin | Command): Promise<Connection> {
    const connection = new Connection(this, target);
    const { describe } = await connection.request({
      hello: { protocol_version: 1, features: ["cancel", "host_calls", "invalidate", "reconfigure", "tools"], max_frame_bytes: 4 << 20, max_host_calls: 64, transport: "stdio" },
    });
    if (describe?.error) throw new Error(`the plugin does not describe itself: ${describe.error.message}`);
    connection.description = describe.description;
    return connection;
  }

  /** answer is the host's reply to a frame of the plugin's own. */
  async answer(frame: Frame): Promise<Frame> {
    if (frame.invalidate) {
      this.invalidations.push(frame.invalidate);
      return {};
    }
    const name = `${frame.host_call.service}/${frame.host_call.method}`;
    this.calls.push({ name, params: frame.host_call.params_json });
    try {
      if (!Object.hasOwn(this.services, name)) return { error: { code: "forbidden", message: `the service ${name} is not in the test's script` } };
      return { result_json: await this.services[name]!(frame.host_call.params_json) };
    } catch (err) {
      const { code = "internal", message = String(err), plugin_code, retryable } = err as Record<string, any>;
      return { error: { code, message, plugin_code, retryable } };
    }
  }
}

/** Connection is one session. */
export class Connection {
  /** The plugin's description as it came over the wire. */
  description: Frame = {};
  /** Frames that nobody had asked for: second answers, and answers with unknown ids. */
  readonly stray: Frame[] = [];
  /** What the program wrote to its standard error. */
  log = "";
  /** The program's exit code once it has ended; null after a signal. */
  readonly ended: Promise<number | null>;

  readonly #host: FakeHost;
  readonly #waiting = new Map<number, (frame: Frame) => void>();
  #write: (line: string) => void;
  #close: (signal?: NodeJS.Signals) => void = () => {};
  #last = 0;

  constructor(host: FakeHost, target: Plugin | Command) {
    this.#host = host;
    if (!("command" in target)) {
      const session = new Session(target, {
        write: (line) => queueMicrotask(() => this.receive(line)),
        log: (level, message, fields) => void (this.log += `${JSON.stringify({ level, msg: message, ...fields })}\n`),
      });
      this.#write = (line) => session.receive(line);
      this.ended = new Promise((resolve, reject) => (this.#close = () => void session.end("the test is over").then(() => resolve(0), reject)));
      return;
    }
    const [program, ...args] = target.command;
    const env = { ...process.env, ...target.env, GRAPNEL_PLUGIN: "2f6a0c1e9d4b4b7c8f0e5a73d1c96b28", GRAPNEL_TRANSPORT: "stdio" };
    const child = spawn(program, args, { cwd: target.cwd, env, stdio: ["pipe", "pipe", "pipe"] });
    let rest = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      lines.forEach((line) => this.receive(line));
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => (this.log += text));
    child.stdin.on("error", () => {}); // the program has ended; `ended` says how
    this.#write = (line) => child.stdin.write(`${line}\n`);
    this.#close = (signal) => void (signal ? child.kill(signal) : child.stdin.end());
    this.ended = new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code) => {
        for (const answer of this.#waiting.values()) answer({ ended: { code } });
        resolve(code);
      });
    });
  }

  /** request sends a body and returns the frame that answers it; cancelled aborts it at once. */
  async request(body: Frame, cancelled = false): Promise<Frame> {
    const id = ++this.#last;
    const answer = new Promise<Frame>((resolve) => this.#waiting.set(id, resolve));
    this.raw(JSON.stringify({ id, incarnation: 1, ...body }));
    if (cancelled) this.raw(JSON.stringify({ id, incarnation: 1, cancel: {} }));
    const frame = await answer;
    if (frame.ended) throw new Error(`the plugin ended (exit code ${frame.ended.code}):\n${this.log}`);
    return frame;
  }

  /** raw sends a line as it is. */
  raw(line: string): void {
    this.#write(line);
  }

  /** receive takes a line of the plugin. */
  receive(line: string): void {
    const frame: Frame = JSON.parse(line);
    if (frame.host_call || frame.invalidate) {
      const { id } = frame;
      void this.#host.answer(frame).then((host_reply) => this.raw(JSON.stringify({ id, incarnation: 1, host_reply })));
      return;
    }
    const answer = this.#waiting.get(frame.id);
    if (!answer) return void this.stray.push(frame);
    this.#waiting.delete(frame.id);
    answer(frame);
  }

  /** configure hands over a configuration, and returns the pointer and message of a refusal. */
  async configure(config?: Json, instance = this.description.name): Promise<{ pointer?: string; message: string } | undefined> {
    const services = [...new Set(Object.keys(this.#host.services).map((name) => name.split("/")[0]!))];
    const { configured } = await this.request({ configure: { instance, config_json: config, services } });
    if (configured.rejected || configured.error) return configured.rejected ?? configured.error;
    this.description = configured.description;
    return undefined;
  }

  /** call makes the call of a case. */
  async call(c: Case, cancelled = false): Promise<Result> {
    const common = {
      context: encode("Context", c.context ?? {}), budget: { max_chars: c.max_chars ?? 20_000, max_bytes: 4 << 20 }, remaining_ns: 10e9, generation: 1,
      policies: (c.outside_turn || c.withhold?.includes("policy") ? [] : (c.policies ?? [])).map((entry) => encode("PolicyEntry", entry)),
    };
    if (c.tool !== undefined) {
      const frame = await this.request({ call_tool: { tool: c.tool, arguments_json: c.arguments, outside_turn: c.outside_turn, ...common } }, cancelled);
      return resultOf(frame.tool_result);
    }
    const hook = this.description.hooks?.find((hook: Frame) => hook.name === c.hook);
    if (!hook) throw new Error(`the plugin has no hook ${JSON.stringify(c.hook)}`);
    const row = Object.values(phases).find((row) => row.phase === hook.phase);
    const there = (name: string) => c.input?.[name] !== undefined || (name === "metadata" && c.context?.metadata !== undefined) || (hook.needs?.includes(name) ?? false);
    const withheld = (c.withhold ?? []).filter(there);
    if (withheld.includes("metadata")) delete (common.context as Frame).metadata_json;
    const dispatch = {
      subscription: `${this.description.name}.${c.hook}`, hook: c.hook, phase: hook.phase, attempt: 1, withheld, ...common,
      contexts: (c.withhold?.includes("context") ? [] : (c.contexts ?? [])).map((entry) => encode("ContextEntry", entry)),
      ...(row ? { [row.field]: encode(row.message, withhold(row.message, c.input ?? {}, withheld)) } : { custom: { fields_json: c.input ?? {} } }),
    };
    return resultOf((await this.request({ dispatch }, cancelled)).result);
  }

  async ping(): Promise<void> {
    assert.ok((await this.request({ ping: {} })).pong, "ping is not answered by pong");
  }

  async drain(): Promise<void> {
    assert.ok((await this.request({ drain: {} })).pong, "drain is not answered by pong");
  }

  /** close ends the session as a host does, or by a signal. It returns the exit code. */
  close(signal?: NodeJS.Signals): Promise<number | null> {
    this.#close(signal);
    return this.ended;
  }
}

/**
 * run makes the call of a case as a host does, and throws an AssertionError where a host could be surprised: the
 * plugin does not take its configuration or describes itself differently the second time, a cancelled call does not
 * return, equal calls have different answers, a contribution is of a kind that the hook does not list or the phase does
 * not take, a frame is answered twice, or the plugin does not end. It returns the answer.
 */
export async function run(target: Plugin | Command, c: Case): Promise<Result> {
  const connection = await (c.host ?? new FakeHost()).connect(target);
  try {
    const refusal = await connection.configure(c.config);
    if (refusal) assert.fail(`the plugin does not take its configuration: ${refusal.pointer ?? ""} ${refusal.message}`);
    const first = connection.description;
    await connection.configure(c.config);
    assert.deepEqual(connection.description, first, "the plugin describes itself differently the second time");

    await within(c.patience_ms ?? 2000, connection.call(c, true), "the call does not return when it is cancelled");
    const answer = await connection.call(c);
    if (!c.volatile) assert.deepEqual(await connection.call(c), answer, "the same call has two answers");
    if (c.want_code !== "*") {
      assert.equal(answer.error?.code, c.want_code, `the plugin ${answer.error ? `fails: ${answer.error.message}` : "succeeds"}\n${connection.log}`);
    }
    checkKinds(connection.description, c, answer);
    await connection.drain();
    assert.deepEqual(connection.stray, [], "frames that nobody has asked for");
    return answer;
  } finally {
    assert.equal(await within(c.patience_ms ?? 2000, connection.close(), "the plugin does not end"), 0, `the exit code\n${connection.log}`);
  }
}

function checkKinds(description: Frame, c: Case, answer: Result): void {
  const hook = description.hooks?.find((hook: Frame) => hook.name === c.hook);
  const row = Object.values(phases).find((row) => row.phase === hook?.phase);
  assert.ok((answer.contributions?.length ?? 0) <= 256, "there are more than 256 contributions");
  for (const { kind } of answer.contributions ?? []) {
    assert.ok(ungranted.includes(kind) || hook.kinds?.includes(kind), `the hook ${c.hook} answers with ${kind}, which it does not list in kinds`);
    assert.ok(!row || alwaysAccepted.includes(kind) || row.kinds.includes(kind), `the phase ${hook.phase} does not take ${kind}`);
  }
}

async function within<T>(ms: number, work: Promise<T>, otherwise: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new assert.AssertionError({ message: `${otherwise} within ${ms} ms` })), ms)));
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

function resultOf(body: Frame | undefined): Result {
  const { error } = body ?? { error: { code: "invalid_reply", message: "the answer is not a result" } };
  if (error) return { error: { code: error.plugin_code || error.code, message: error.message, ...(error.retryable && { retryable: true }) } };
  const { contributions, content_json: content, is_error, diagnostics } = body!;
  return {
    ...(contributions && { contributions: contributions.map(decodeContribution) }),
    ...(content !== undefined && { content }),
    ...(is_error && { is_error }),
    ...(diagnostics && { diagnostics: diagnostics.map((d: Frame) => decode("Diagnostic", d, true)) }),
  };
}

/** withhold is an input as a host sends it whose operator does not grant some fields. */
function withhold(message: string, input: Record<string, unknown>, names: readonly string[]): Record<string, unknown> {
  const out = { ...input };
  for (const name of names) {
    if (out[name] === undefined) continue;
    const type = typeOf(message, name);
    if (type === "Text" || type === "Preview" || type === "json") out[name] = { withheld: true, chars: lengthOf(out[name]) };
    else delete out[name];
  }
  return out;
}

function lengthOf(value: unknown): number {
  const text = typeof value === "string" ? value : isObject(value) && typeof value.value === "string" ? value.value : JSON.stringify(value);
  return [...text].length;
}

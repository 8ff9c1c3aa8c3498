// The plugin's side of the protocol: lines of the host in, lines of the plugin out. It knows no process and no stream.
// Sync handlers are answered before receive returns.

import { ConfigError, HostError, PluginError } from "./answers.js";
import { CallAborted, Context, type Frame, Work } from "./call.js";
import { decode, encode, integer, isObject } from "./codec.js";
import { type Phase, phases, type Row } from "./generated.js";
import { type Ask, type Host, hostOf } from "./host.js";
import { type Bound, type Call, type Caller, type Plugin, type Ready, type ToolCall } from "./plugin.js";
import { check, type Schema } from "./schema.js";
import { attempt, cleanText, isClean, messageOf, stackOf } from "./text.js";

/** Outlet is what a session needs of its surroundings. */
export interface Outlet {
  /** Sends one line, without its end. */
  write(line: string): void;
  /** Writes a record to the operator's log. */
  log(level: "WARN" | "ERROR", message: string, fields?: Record<string, unknown>): void;
}

/** ProtocolError reports a line that breaks the protocol. The session cannot go on. */
export class ProtocolError extends Error {
  override name = "ProtocolError";
}

type Body = Record<string, any>;

const unclean = "holds text that may not be sent (a lone surrogate, a NUL, or a character that reorders text)";
const rowOf = new Map<Phase, Row>(Object.values(phases).map((row) => [row.phase, row]));

/** Session is one session with a host. */
export class Session {
  /** The longest line in either direction. */
  maxBytes = 4 << 20;

  readonly #plugin: Plugin;
  readonly #outlet: Outlet;
  readonly #calls = new Map<number, Work>();
  readonly #queue: Work[] = [];
  readonly #asked = new Map<number, { resolve: (value: any) => void; reject: (err: Error) => void; work: Work | undefined }>();
  #ready: Ready;
  #incarnation = 0;
  #lastAsked = 0;
  #running = 0;
  #pumping = false;
  #configuring: Promise<void> | undefined;
  #configurations = 0;
  #drains: Frame[] = [];
  #ended: Error | undefined;

  constructor(plugin: Plugin, outlet: Outlet) {
    this.#plugin = plugin;
    this.#outlet = outlet;
    this.#ready = plugin.initial;
  }

  /** receive takes one line of the host, or throws a ProtocolError. */
  receive(line: string): void {
    const frame = parse(line);
    let unknown = "";
    for (const name in frame) {
      if (name === "id" || name === "incarnation" || frame[name] == null) continue;
      const body = isObject(frame[name]) ? frame[name] : {};
      switch (name) {
        case "dispatch": return this.#dispatch(frame, body);
        case "call_tool": return this.#callTool(frame, body);
        case "cancel": return this.#calls.get(frame.id)?.abort(new CallAborted("cancelled", "the host cancelled the call"));
        case "host_reply": return this.#replied(frame.id, body);
        case "unsupported": return this.#replied(frame.id, { error: { code: "unsupported", message: "the host does not know this kind of frame" } });
        case "ping": return void this.#send(frame, "pong", {});
        case "hello": return this.#hello(frame, body);
        case "configure": return this.#configure(frame, body);
        case "drain":
          this.#drains.push(frame);
          return this.#drained();
      }
      unknown ||= name;
    }
    this.#send(frame, "unsupported", unknown ? { name: cleanText(unknown, 100) } : {});
  }

  /** end aborts all calls and closes the plugin. The host is gone, so that nothing is answered any more. */
  async end(reason: string): Promise<void> {
    if (this.#ended) return;
    const gone = (this.#ended = new CallAborted("cancelled", reason));
    for (const work of this.#calls.values()) work.abort(gone);
    for (const { reject } of this.#asked.values()) reject(new HostError("session_reset", reason));
    this.#asked.clear();
    await this.#plugin.definition.close?.();
  }

  #hello(frame: Frame, body: Body): void {
    this.#incarnation = frame.incarnation;
    if (integer(body.max_frame_bytes) > 0) this.maxBytes = integer(body.max_frame_bytes);
    if (integer(body.protocol_version) === 1) return void this.#send(frame, "describe", { description: this.#ready.description });
    const message = `the plugin speaks version 1 of the protocol, and the host version ${integer(body.protocol_version)}`;
    this.#send(frame, "describe", { error: { code: "version_mismatch", message } });
  }

  // One configuration at a time, in the order of the frames.
  #configure(frame: Frame, body: Body): void {
    this.#configurations++;
    this.#configuring = (this.#configuring ?? Promise.resolve()).then(async () => {
      try {
        const { configure, config: schema } = this.#plugin.definition;
        const config = body.config_json ?? {};
        const mistake = check(schema, config);
        if (mistake) throw new ConfigError(mistake.pointer, mistake.message);
        const added = await configure?.(config, { instance: body.instance ?? "", services: body.services ?? [], host: this.#host(0) });
        const ready = this.#plugin.ready(added ?? {});
        if (this.#send(frame, "configured", { description: ready.description })) this.#ready = ready;
      } catch (err) {
        const rejected = err instanceof ConfigError && { pointer: cleanText(String(err.pointer ?? ""), 1000), message: messageOf(err) };
        this.#send(frame, "configured", rejected ? { rejected } : { error: this.#errorOf(err, "configure") });
      }
      this.#configurations--;
      this.#drained();
    });
  }

  #dispatch(frame: Frame, body: Body): void {
    const bound = this.#ready.hooks.get(body.hook);
    this.#accept(new Work(frame, "result", body.remaining_ns, `hook ${body.hook}`), (work) => {
      if (!bound) throw new PluginError("unknown_hook", `the plugin has no hook ${JSON.stringify(body.hook)}`);
      return bound.handle(inputOf(bound, body), this.#caller(work, decode("Dispatch", body)) as Call);
    });
  }

  #callTool(frame: Frame, body: Body): void {
    const tool = this.#ready.tools.get(body.tool);
    this.#accept(new Work(frame, "tool_result", body.remaining_ns, `tool ${body.tool}`), (work) => {
      if (!tool) throw new PluginError("unknown_tool", `the plugin has no tool ${JSON.stringify(body.tool)}`);
      const { arguments: given, ...call } = decode("CallTool", body);
      const args = given === undefined ? {} : given;
      const mistake = check(tool.input as Schema, args);
      if (mistake) return { content: `the arguments are not valid: ${mistake.pointer || "they"} ${mistake.message}`, is_error: true };
      return tool.call(args, this.#caller(work, call) as ToolCall);
    });
  }

  #accept(work: Work, handle: (work: Work) => unknown): void {
    if (this.#calls.has(work.frame.id)) throw new ProtocolError(`the id ${work.frame.id} is used twice`);
    this.#calls.set(work.frame.id, work);
    work.handle = handle;
    work.onAbort = () => this.#aborted(work);
    this.#queue.push(work);
    this.#pump();
  }

  /** Starts queued calls up to the plugin's concurrency. Sync handlers finish inside, so #done must not start others. */
  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    const limit = this.#plugin.definition.concurrency || Infinity;
    while (this.#queue.length > 0 && this.#running < limit) this.#start(this.#queue.shift()!);
    this.#pumping = false;
    this.#drained();
  }

  #start(work: Work): void {
    this.#running++;
    let result: unknown;
    try {
      if (work.late()) throw work.reason;
      result = work.handle!(work);
      if (typeof (result as Promise<unknown> | undefined)?.then !== "function") return this.#finish(work, result);
    } catch (err) {
      return this.#fail(work, err);
    }
    // Promise.resolve makes one answer also of a thenable that calls back twice.
    Promise.resolve(result).then((value) => this.#finish(work, value), (err) => this.#fail(work, err));
  }

  #finish(work: Work, value: unknown): void {
    try {
      const body = work.answer === "result" ? resultOf(value) : toolResultOf(value);
      if (!this.#send(work.frame, work.answer, body)) this.#outlet.log("ERROR", `${work.what}: the answer was refused; it is not valid, or too large`);
    } catch (err) {
      this.#send(work.frame, work.answer, { error: this.#errorOf(err, work.what) });
    }
    this.#done(work);
  }

  #fail(work: Work, err: unknown): void {
    const aborted = work.reason && (err === work.reason || attempt(() => (err as Error).name) === "AbortError") ? work.reason : err;
    this.#send(work.frame, work.answer, { error: this.#errorOf(aborted, work.what) });
    this.#done(work);
  }

  #done(work: Work): void {
    work.end();
    this.#calls.delete(work.frame.id);
    this.#running--;
    this.#pump();
  }

  /** Ends the host calls of an aborted call, and the call itself if it has not begun. */
  #aborted(work: Work): void {
    for (const [id, asked] of this.#asked) {
      if (asked.work === work) {
        this.#asked.delete(id);
        asked.reject(work.reason!);
      }
    }
    const at = this.#queue.indexOf(work);
    if (at < 0) return;
    this.#queue.splice(at, 1);
    this.#running++;
    this.#fail(work, work.reason);
  }

  #drained(): void {
    if (this.#drains.length === 0 || this.#calls.size > 0 || this.#configurations > 0) return;
    for (const frame of this.#drains.splice(0)) this.#send(frame, "pong", {});
  }

  #caller(work: Work, fields: Body): Caller {
    return Object.assign(new Context(work, () => this.#host(work.frame.id, work)), fields);
  }

  #host(parent: number, work?: Work): Host {
    return hostOf((body) => this.#ask(body, parent, work));
  }

  #ask(body: Parameters<Ask>[0], parent: number, work?: Work): Promise<any> {
    return new Promise((resolve, reject) => {
      if (this.#ended) throw new HostError("session_reset", this.#ended.message);
      const id = ++this.#lastAsked;
      const [name, fields] = Object.entries(body)[0]!;
      const line = JSON.stringify({ id, incarnation: this.#incarnation, [name]: { parent: parent || undefined, ...fields } });
      if (!isClean(line)) throw new HostError("invalid_reply", `the call ${unclean}`);
      if (this.#oversize(line)) throw new HostError("oversize_request", `the call is larger than ${this.maxBytes} bytes`);
      work?.signal.throwIfAborted(); // and from now on there is a timer for its deadline
      this.#asked.set(id, { resolve, reject, work });
      this.#outlet.write(line);
    });
  }

  #replied(id: number, body: Body): void {
    const asked = this.#asked.get(id);
    this.#asked.delete(id);
    const error = body.error;
    if (error == null) return asked?.resolve(body.result_json);
    asked?.reject(new HostError(error.code || "internal", error.message || "the host refused the call", error.plugin_code, error.retryable));
  }

  /** Sends a frame, or instead of one that the host would not take an error. It reports whether it sent the frame. */
  #send(frame: Frame, name: string, body: Body): boolean {
    if (this.#ended) return true;
    let line = `{"id":${frame.id},"incarnation":${frame.incarnation},"${name}":${JSON.stringify(body)}}`;
    const refused = !isClean(line)
      ? { code: "plugin_error", plugin_code: "invalid_reply", message: `the answer ${unclean}` }
      : this.#oversize(line) && { code: "oversize_reply", message: `the answer is larger than ${this.maxBytes} bytes` };
    if (refused) line = `{"id":${frame.id},"incarnation":${frame.incarnation},"${name}":${JSON.stringify({ error: refused })}}`;
    this.#outlet.write(line);
    return !refused;
  }

  #oversize(line: string): boolean {
    return line.length * 3 > this.maxBytes && Buffer.byteLength(line) > this.maxBytes;
  }

  /** errorOf is an error as the host gets it. The stack of one that nobody threw on purpose goes to the log. */
  #errorOf(err: unknown, what: string): Body {
    const known = attempt(() => knownError(err));
    if (known) return known;
    const message = messageOf(err);
    this.#outlet.log("ERROR", `${what}: ${message}`, { stack: stackOf(err) });
    return { code: "plugin_error", plugin_code: "error", message };
  }
}

function knownError(err: unknown): Body | undefined {
  if (err instanceof CallAborted) return { code: err.code === "timeout" ? "timeout" : "plugin_error", plugin_code: err.code, message: err.message };
  if (!(err instanceof PluginError || err instanceof HostError)) return undefined;
  const safe_for_user = (err instanceof PluginError && err.safe_for_user) || undefined;
  return { code: "plugin_error", plugin_code: cleanText(String(err.code), 64), message: messageOf(err), retryable: err.retryable || undefined, safe_for_user };
}

function parse(line: string): Body & Frame {
  let frame: unknown;
  try {
    frame = JSON.parse(line);
    if (!isObject(frame)) throw new TypeError("it is not an object");
    frame.id = integer(frame.id);
    frame.incarnation = integer(frame.incarnation);
  } catch (err) {
    throw new ProtocolError(`a line that is not a frame (${(err as Error).message}): ${cleanText(line, 200)}`);
  }
  return frame as Body & Frame;
}

function inputOf(bound: Bound, body: Body): unknown {
  const row = bound.row ?? rowOf.get(body.phase);
  if (row && body.phase !== row.phase) throw new PluginError("wrong_input", `the hook serves ${row.phase}, and is called for ${JSON.stringify(body.phase)}`);
  return row ? decode(row.message, body[row.field]) : (body.custom?.fields_json ?? {});
}

function resultOf(value: unknown): Body {
  if (!value) return {};
  const list = Array.isArray(value) ? value.filter(Boolean) : [value];
  return list.length > 0 ? { contributions: list.map((contribution) => encode("Contribution", contribution)) } : {};
}

const resultFields = new Set(["content", "is_error", "diagnostics"]);

function toolResultOf(value: unknown): Body {
  const keys = isObject(value) ? Object.keys(value) : [];
  if (keys.length === 0 || !keys.every((key) => resultFields.has(key))) return { content_json: value };
  const { content, is_error, diagnostics = [] } = value as Body;
  if (!Array.isArray(diagnostics)) throw new TypeError("diagnostics: want a list");
  const list = diagnostics.map((diagnostic) => encode("Diagnostic", diagnostic));
  return { content_json: content, is_error: is_error ? true : undefined, diagnostics: list.length > 0 ? list : undefined };
}

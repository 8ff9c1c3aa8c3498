// The process around a session: environment, standard streams, signals and the exit code.

import type { Plugin } from "./plugin.js";
import { ProtocolError, Session } from "./session.js";
import { attempt, messageOf, stackOf } from "./text.js";

const cookie = "2f6a0c1e9d4b4b7c8f0e5a73d1c96b28";
const startedByHost = process.env.GRAPNEL_PLUGIN === cookie;
const closeTimeout = 400; // the host sends SIGTERM half a second after it has closed the input
const newline = 10;
const batch = 1 << 20; // characters

/** log writes one record to the operator's log. */
export function log(level: "DEBUG" | "INFO" | "WARN" | "ERROR", message: string, fields: Record<string, unknown> = {}): void {
  const record = attempt(() => JSON.stringify({ level, msg: message, ...fields })) ?? JSON.stringify({ level, msg: message });
  process.stderr.write(`${record}\n`);
}

// Standard output belongs to the protocol. It is taken when this module is loaded, before other modules of the plugin
// can print, and only in a process that a host has started. Two copies of the kit in one process share it.
const protocolOut = startedByHost ? takeStdout() : undefined;
let serving = false;

function takeStdout(): (text: string) => boolean {
  const shared = globalThis as { [key: symbol]: ((text: string) => boolean) | undefined };
  return (shared[Symbol.for("@grapnel/sdk.stdout")] ??= redirect());
}

function redirect(): (text: string) => boolean {
  const out = process.stdout;
  const write = out.write.bind(out);
  out.write = process.stderr.write.bind(process.stderr) as typeof out.write;
  out.end = () => out;
  return (text) => write(text);
}

/** serve runs a plugin until the host ends it. Call it once, in the program that the host starts. */
export function serve(plugin: Plugin): void {
  if (!protocolOut || process.env.GRAPNEL_TRANSPORT !== "stdio") {
    const { name, version } = plugin.definition;
    const remedy = protocolOut ? "The host must declare it with `transport: stdio`." : "A host starts it: declare it in grapnel.yaml with `transport: stdio`.";
    process.stderr.write(`${name} ${version} is a plugin of Grapnel. ${remedy}\n`);
    process.exit(1);
  }
  if (serving) throw new Error("serve is called twice");
  serving = true;
  delete process.env.GRAPNEL_PLUGIN; // programs that the plugin starts are not started by the host
  new Server(plugin, protocolOut).run();
}

class Server {
  readonly #session: Session;
  readonly #write: (text: string) => boolean;
  #lines: string[] = [];
  #queued = 0;
  #parts: Buffer[] = []; // the beginning of a line whose end has not come
  #length = 0;
  #ending = false;

  constructor(plugin: Plugin, write: (text: string) => boolean) {
    this.#write = write;
    this.#session = new Session(plugin, { write: (line) => this.#send(line), log });
  }

  run(): void {
    process.on("SIGTERM", () => this.#end("the host ends the plugin"));
    process.on("unhandledRejection", (err) => log("ERROR", `a rejection that nobody handles: ${messageOf(err)}`, { stack: stackOf(err) }));
    process.stdout.on("error", () => this.#end("the host does not read any more"));
    process.stdout.on("drain", () => process.stdin.resume());
    process.stderr.on("error", () => {}); // there is nobody to tell
    process.stdin.on("data", (chunk: Buffer) => this.#take(chunk));
    process.stdin.on("end", () => this.#end("the host has closed the session"));
    process.stdin.on("error", () => this.#end("the host is gone"));
  }

  #take(chunk: Buffer): void {
    try {
      const last = chunk.lastIndexOf(newline);
      if (last < 0) return this.#keep(chunk);
      if (this.#length + chunk.indexOf(newline) > this.#session.maxBytes) throw tooLong(this.#session.maxBytes);
      const head = chunk.subarray(0, last);
      const text = (this.#parts.length > 0 ? Buffer.concat([...this.#parts, head]) : head).toString();
      this.#parts = [];
      this.#length = 0;
      for (let from = 0; from <= text.length && !this.#ending; ) {
        const end = text.indexOf("\n", from);
        const to = end < 0 ? text.length : end;
        if (to > from) this.#session.receive(text.slice(from, to));
        from = to + 1;
      }
      if (last + 1 < chunk.length) this.#keep(chunk.subarray(last + 1));
    } catch (err) {
      this.#breakOff(err);
    }
  }

  #keep(part: Buffer): void {
    this.#parts.push(part);
    this.#length += part.length;
    if (this.#length > this.#session.maxBytes) throw tooLong(this.#session.maxBytes);
  }

  // All lines of one tick are one write, unless they are many.
  #send(line: string): void {
    if (this.#lines.push(line) === 1) process.nextTick(() => this.#flush());
    this.#queued += line.length;
    if (this.#queued > batch) this.#flush();
  }

  #flush(): void {
    if (this.#lines.length === 0) return;
    const text = `${this.#lines.join("\n")}\n`;
    this.#lines = [];
    this.#queued = 0;
    if (!this.#write(text)) process.stdin.pause(); // until the host has read: no more work meanwhile
  }

  #breakOff(err: unknown): void {
    log("ERROR", `the session broke: ${messageOf(err)}`, { stack: err instanceof ProtocolError ? undefined : stackOf(err) });
    this.#end("the session broke", 1);
  }

  #end(reason: string, code = 0): void {
    if (this.#ending) return;
    this.#ending = true;
    const exit = () => process.exit(code);
    setTimeout(exit, closeTimeout);
    this.#session.end(reason).catch((err) => log("ERROR", `close failed: ${messageOf(err)}`, { stack: stackOf(err) })).finally(exit);
  }
}

function tooLong(most: number): ProtocolError {
  return new ProtocolError(`a line of the host is longer than ${most} bytes`);
}

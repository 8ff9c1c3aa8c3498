// One call that a host makes: its identity, its deadline, and what its handler can ask.

import { integer } from "./codec.js";
import type { Host } from "./host.js";
import { type Call, type Caller, policyOf } from "./plugin.js";

/** Frame identifies a frame of the host; its answer repeats both numbers. */
export interface Frame {
  readonly id: number;
  readonly incarnation: number;
}

const maxTimer = 2 ** 31 - 1;

/** CallAborted is why a signal is aborted. A handler that throws it answers with its code. */
export class CallAborted extends Error {
  override name = "AbortError";

  constructor(readonly code: "timeout" | "cancelled", message: string) {
    super(message);
  }
}

/** Work is one dispatch or call_tool that is not answered yet. Its signal and timer exist only if somebody asks. */
export class Work {
  reason: CallAborted | undefined;
  handle: ((work: Work) => unknown) | undefined;
  onAbort: (() => void) | undefined;
  readonly #deadline: number;
  #controller: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(readonly frame: Frame, readonly answer: "result" | "tool_result", remaining_ns: unknown, readonly what: string) {
    const remaining = integer(remaining_ns) / 1e6;
    this.#deadline = remaining > 0 ? performance.now() + remaining : Infinity;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      const left = this.#deadline - performance.now();
      if (this.late()) this.#controller.abort(this.reason);
      else if (left < maxTimer) this.#timer = setTimeout(() => this.abort(timeout()), left);
    }
    return this.#controller.signal;
  }

  /** late reports whether the call is aborted, or its deadline has passed. */
  late(): boolean {
    if (!this.reason && performance.now() >= this.#deadline) this.reason = timeout();
    return this.reason !== undefined;
  }

  abort(reason: CallAborted): void {
    if (this.reason) return;
    this.reason = reason;
    this.#controller?.abort(reason);
    this.onAbort?.();
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

const timeout = () => new CallAborted("timeout", "the call's time is over");

/** Context carries what every handler can ask; the fields of the call are assigned to it. */
export class Context implements Caller {
  readonly #work: Work;
  readonly #makeHost: () => Host;
  #host: Host | undefined;

  constructor(work: Work, makeHost: () => Host) {
    this.#work = work;
    this.#makeHost = makeHost;
  }

  get signal(): AbortSignal {
    return this.#work.signal;
  }

  get host(): Host {
    return (this.#host ??= this.#makeHost());
  }

  policy(domain: string, key: string) {
    return policyOf((this as unknown as Call).policies, domain, key);
  }
}

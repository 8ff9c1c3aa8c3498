// The words and tones of plugins and hooks.
import type { Result } from "../rpc";
import type { Tone } from "../ui/parts";

export type Status = Result<"status">;
export type Plugin = Status["plugins"][number];
export type Hook = Status["hooks"][number];
export type Issue = Status["issues"][number];
export type LastError = NonNullable<Plugin["last_error"]>;

const pluginTones: Partial<Record<Plugin["state"], Tone>> = { ready: "good", starting: "info", degraded: "warn", backoff: "warn", quarantined: "bad" };
export const pluginTone = (state: Plugin["state"]): Tone => pluginTones[state] ?? "plain";

const issueWords: Record<string, [Tone, string]> = {
  quarantined: ["bad", "quarantined"],
  backoff: ["warn", "restarting"],
  breaker_open: ["bad", "breaker open"],
  failing: ["warn", "failing"],
  degraded: ["warn", "degraded"],
  hanging: ["warn", "hanging"],
  busy: ["warn", "busy"],
  sandbox_partial: ["info", "less confined"],
};
export const issueWord = (kind: string): [Tone, string] => issueWords[kind] ?? ["plain", kind];

/** The state of a hook, as grapnel status says it. */
export function hookWord(h: Hook): [Tone, string] {
  if (h.off !== "") return ["plain", "off: " + h.off];
  if (h.breaker === "open") return ["bad", "breaker open"];
  if (h.breaker === "half_open") return ["warn", "breaker half open"];
  if (h.failed_in_a_row > 0) return ["warn", "failing"];
  return h.runs + h.cached === 0 ? ["plain", "idle"] : ["good", "ok"];
}

export const hookName = (h: Hook): string => h.subscription || h.plugin + " (" + (h.role === "tool" ? "tools" : "model calls") + ")";

const runTones: Record<string, Tone> = { succeeded: "good", cached: "good", queued: "info", denied: "warn", filtered: "plain", disabled: "plain", shadowed: "plain", cancelled: "warn" };
export const runTone = (state: string): Tone => runTones[state] ?? "bad";

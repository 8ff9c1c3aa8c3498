// Words and types that the views of manifests share.
import type { Result } from "../rpc";
import type { Tone } from "../ui/parts";

export type Manifest = NonNullable<Result<"manifest/get">>;
export type Section = Manifest["sections"][number];
export type Run = Manifest["runs"][number];
export type Row = Result<"manifest/overview">["rows"][number];

export const runTone = (state: Run["state"]): Tone => {
  switch (state) {
    case "succeeded": case "cached": return "good";
    case "failed": case "timed_out": case "unavailable": return "bad";
    case "denied": case "budget_exhausted": case "cancelled": return "warn";
    default: return "plain";
  }
};

export const toneOf = (severity: string): Tone => (severity === "error" ? "bad" : severity === "warning" ? "warn" : "info");

/** What of a section counts: its tokens, or its characters where nothing counts tokens. */
export const weightOf = (s: Section): number => s.tokens ?? s.chars;

export const sum = (list: (number | null | undefined)[]): number => list.reduce<number>((all, n) => all + (n ?? 0), 0);

/** Owners in the order in which they first appear; each has a colour and a pattern. */
export function ownersOf(sections: Section[]): Map<string, number> {
  const owners = new Map<string, number>();
  for (const s of sections) for (const o of [s.owner, ...s.content_map.map((c) => c.owner)]) if (!owners.has(o)) owners.set(o, owners.size);
  return owners;
}

export const ownerName = (owner: string): string =>
  owner === "host" ? "the host" : owner === "builtin" ? "Grapnel itself" : owner === "" ? "several" : owner;

/** Why something was left out, for people. */
export const reasons: Record<string, string> = {
  budget: "its text budget is used up",
  total: "the prompt's text budget is used up",
  empty: "it had no text",
  profile: "the profile leaves it out",
  duplicate: "the same text is there already",
  conflict: "another hook holds the same slot",
  forbidden: "the plugin lacks the grant",
  blocked: "the turn was blocked",
  hidden: "its domain was not asked for",
};

export const causes: Record<string, string> = {
  section_text: "the text of a section changed",
  section_order: "sections are in another order",
  section_inserted: "a section was inserted",
  section_removed: "a section is gone",
  section_moved: "a section moved",
  tools: "the tools of plugins changed",
  host_tools: "the host's tools changed",
  provider: "another provider",
  model: "another model",
  expired: "the cache had expired",
  key: "another cache key",
  breakpoint: "the breakpoints differ",
  minimum: "too short to be cached",
  epoch: "the conversation began anew",
  history_edited: "the conversation was edited",
  history_cut: "the conversation was cut",
  unknown: "nothing in the manifests explains it",
};

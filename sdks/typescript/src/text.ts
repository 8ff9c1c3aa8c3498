// The rules for text on the wire: well-formed Unicode without NUL and without characters that reorder text. And the texts
// of values that a handler threw, whatever they are.

const reordering = /[\u202a-\u202e\u2066-\u2069]/;
const suspicious = /\\u(?:0000|d[89a-f])/;
const escaped = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/; // JSON.stringify escapes NUL and lone surrogates so

/** isClean reports whether the texts in a JSON line of JSON.stringify may be sent. */
export function isClean(line: string): boolean {
  return !reordering.test(line) && !(suspicious.test(line) && escaped.test(line));
}

/** cleanText replaces what may not be sent, and cuts. */
export function cleanText(text: string, maxChars: number): string {
  const short = text.length > maxChars ? `${text.slice(0, maxChars)}…` : text;
  return short.replace(/[\0\ud800-\udfff\u202a-\u202e\u2066-\u2069]/gu, "\ufffd");
}

/** messageOf is one message for people, fit for the wire. */
export function messageOf(err: unknown): string {
  const text = attempt(() => (err instanceof Error ? err.message || err.name : `the handler threw ${typeof err === "string" ? err : JSON.stringify(err)}`));
  return typeof text === "string" ? cleanText(text, 4000) : "the handler threw a value that cannot be shown";
}

export function stackOf(err: unknown): string | undefined {
  return attempt(() => (err instanceof Error ? String(err.stack) : undefined));
}

/** attempt looks at a value that a handler threw: even its getters may throw. */
export function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

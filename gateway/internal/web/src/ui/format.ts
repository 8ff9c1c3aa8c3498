// Numbers and times for people.

/** Makes a value when it is first asked for: what belongs to a language takes milliseconds to load. */
function later<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

const whole = later(() => new Intl.NumberFormat("en"));

export const number = (n: number | null | undefined): string => (n == null ? "–" : n > -1000 && n < 1000 && Number.isInteger(n) ? String(n) : whole().format(n));

export function milliseconds(ms: number | null | undefined): string {
  if (ms == null) return "–";
  if (ms < 1) return ms.toFixed(2) + " ms";
  if (ms < 1000) return Number(ms.toPrecision(3)) + " ms";
  return (ms / 1000).toFixed(1) + " s";
}

export function bytes(n: number | null | undefined): string {
  if (n == null) return "–";
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]] as const) {
    if (n >= size) return (n / size).toFixed(1) + " " + unit;
  }
  return n + " B";
}

export const percent = (part: number, all: number): string => (all > 0 ? Math.round((100 * part) / all) + " %" : "–");

const clock = later(() => new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }));
const day = later(() => new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" }));
const date = later(() => new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" }));

/** The date, with the year unless it is this one, and the time of day. */
export function moment(at: string | null | undefined): string {
  if (!at) return "–";
  const t = new Date(at);
  return (t.getFullYear() === new Date().getFullYear() ? day() : date()).format(t) + ", " + clock().format(t);
}

export function ago(at: string | null | undefined): string {
  if (!at) return "–";
  const s = Math.max(0, (Date.now() - new Date(at).getTime()) / 1000);
  for (const [unit, size] of [["d", 86_400], ["h", 3_600], ["min", 60]] as const) {
    if (s >= size) return Math.floor(s / size) + " " + unit + " ago";
  }
  return Math.floor(s) + " s ago";
}

export const count = (n: number, one: string, many: string): string => number(n) + " " + (n === 1 ? one : many);

/** The beginning of a fingerprint or id. */
export const short = (id: string, length = 12): string => (id.length > length ? id.replace(/^(\w+-)?sha256:/, "").slice(0, length) + "…" : id);

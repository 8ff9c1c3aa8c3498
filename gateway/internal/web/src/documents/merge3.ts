// A three-way merge of texts by lines.

/** Lines from..to of one text that stand for lines from..to of another. */
export interface Hunk {
  aFrom: number;
  aTo: number;
  bFrom: number;
  bTo: number;
}

// Texts that differ in more lines than this count as different in one piece.
const mostEdits = 1_000;

/** Finds what must be replaced in a to get b, in order, by the algorithm of Myers. */
export function diffLines(a: string[], b: string[]): Hunk[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let aEnd = a.length;
  let bEnd = b.length;
  while (aEnd > start && bEnd > start && a[aEnd - 1] === b[bEnd - 1]) {
    aEnd--;
    bEnd--;
  }
  const n = aEnd - start;
  const m = bEnd - start;
  if (n === 0 && m === 0) return [];
  const whole = [{ aFrom: start, aTo: aEnd, bFrom: start, bTo: bEnd }];
  if (n === 0 || m === 0) return whole;
  const trace = frontiers(a, b, start, n, m);
  return trace ? hunks(trace, start, n, m) : whole;
}

/** For each number of edits, how far each diagonal gets; diagonal k is at the index k + edits. Null for too many edits. */
function frontiers(a: string[], b: string[], start: number, n: number, m: number): Int32Array[] | null {
  const trace: Int32Array[] = [];
  for (let d = 0; d <= Math.min(n + m, mostEdits); d++) {
    const before = trace[d - 1];
    const at = (k: number): number => (before && Math.abs(k) < d ? (before[k + d - 1] ?? -1) : -1);
    const now = new Int32Array(2 * d + 1);
    trace.push(now);
    for (let k = -d; k <= d; k += 2) {
      let x = d === 0 ? 0 : k === -d || (k !== d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
      while (x < n && x - k < m && a[start + x] === b[start + x - k]) x++;
      now[k + d] = x;
      if (x >= n && x - k >= m) return trace;
    }
  }
  return null;
}

function hunks(trace: Int32Array[], start: number, n: number, m: number): Hunk[] {
  const found: Hunk[] = [];
  let x = n;
  let y = m;
  for (let d = trace.length - 1; d > 0; d--) {
    const before = trace[d - 1]!;
    const k = x - y;
    const at = (q: number): number => (Math.abs(q) < d ? (before[q + d - 1] ?? -1) : -1);
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const fromK = down ? k + 1 : k - 1;
    const fromX = at(fromK);
    const fromY = fromX - fromK;
    const edit = { aFrom: start + fromX, aTo: start + fromX + (down ? 0 : 1), bFrom: start + fromY, bTo: start + fromY + (down ? 1 : 0) };
    const next = found[0];
    if (next && next.aFrom === edit.aTo && next.bFrom === edit.bTo) {
      next.aFrom = edit.aFrom;
      next.bFrom = edit.bFrom;
    } else found.unshift(edit);
    x = fromX;
    y = fromY;
  }
  return found;
}

export interface Merged {
  /** Both texts' changes; where they overlap, mine. */
  text: string;
  /** How many places overlap. */
  conflicts: number;
}

/** Merges the changes that two texts made to their base. Changes that touch each other overlap, unless they are equal. */
export function merge3(base: string, mine: string, theirs: string): Merged {
  if (mine === theirs || theirs === base) return { text: mine, conflicts: 0 };
  if (mine === base) return { text: theirs, conflicts: 0 };
  const lines = base.split("\n");
  const sides = [mine.split("\n"), theirs.split("\n")] as const;
  const diffs = [diffLines(lines, sides[0]), diffLines(lines, sides[1])] as const;
  const next: [number, number] = [0, 0];
  const shift: [number, number] = [0, 0]; // how far a side's lines are from those of the base
  const out: string[] = [];
  let conflicts = 0;
  let done = 0; // lines of the base
  for (;;) {
    const heads = [diffs[0][next[0]], diffs[1][next[1]]];
    if (!heads[0] && !heads[1]) break;
    const from = Math.min(heads[0]?.aFrom ?? Infinity, heads[1]?.aFrom ?? Infinity);
    let to = from;
    const ends: [number, number] = [shift[0], shift[1]];
    for (let grown = true; grown; ) {
      grown = false;
      for (const side of [0, 1] as const) {
        const h = diffs[side][next[side]];
        if (!h || h.aFrom > to) continue;
        to = Math.max(to, h.aTo);
        ends[side] = h.bTo - h.aTo;
        next[side]++;
        grown = true;
      }
    }
    const [m, t] = [0, 1].map((s) => sides[s as 0 | 1].slice(from + shift[s as 0 | 1], to + ends[s as 0 | 1])) as [string[], string[]];
    const old = lines.slice(from, to);
    out.push(...lines.slice(done, from));
    if (same(m, t) || same(t, old)) out.push(...m);
    else if (same(m, old)) out.push(...t);
    else {
      conflicts++;
      out.push(...m);
    }
    shift[0] = ends[0];
    shift[1] = ends[1];
    done = to;
  }
  out.push(...lines.slice(done));
  return { text: out.join("\n"), conflicts };
}

const same = (a: string[], b: string[]): boolean => a.length === b.length && a.every((line, i) => line === b[i]);

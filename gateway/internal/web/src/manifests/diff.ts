// Differences of two texts, line by line.

export interface Line {
  kind: "same" | "added" | "removed";
  text: string;
}

const mostCells = 4_000_000; // of the table; beyond that everything between the common ends is replaced

/** The shortest way from one text to the other, by the longest common subsequence of their lines. */
export function lineDiff(before: string, after: string): Line[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const same = (text: string): Line => ({ kind: "same", text });
  return [
    ...a.slice(0, head).map(same),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail).map(same),
  ];
}

function middle(a: string[], b: string[]): Line[] {
  const lines: Line[] = [];
  let i = 0;
  let j = 0;
  if (a.length * b.length <= mostCells) {
    const width = b.length + 1;
    const longest = new Uint32Array((a.length + 1) * width);
    const at = (y: number, x: number): number => longest[y * width + x] ?? 0;
    for (let y = a.length - 1; y >= 0; y--) {
      for (let x = b.length - 1; x >= 0; x--) longest[y * width + x] = a[y] === b[x] ? at(y + 1, x + 1) + 1 : Math.max(at(y + 1, x), at(y, x + 1));
    }
    while (i < a.length && j < b.length) {
      if (a[i] === b[j]) {
        lines.push({ kind: "same", text: a[i] ?? "" });
        i++;
        j++;
      } else if (at(i + 1, j) >= at(i, j + 1)) lines.push({ kind: "removed", text: a[i++] ?? "" });
      else lines.push({ kind: "added", text: b[j++] ?? "" });
    }
  }
  while (i < a.length) lines.push({ kind: "removed", text: a[i++] ?? "" });
  while (j < b.length) lines.push({ kind: "added", text: b[j++] ?? "" });
  return lines;
}

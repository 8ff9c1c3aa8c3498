import assert from "node:assert/strict";
import test from "node:test";
import { diffLines, merge3 } from "../node_modules/.test/merge3.js";

const cases = [
  ["changes far apart", "a\nb\nc\nd\ne", "A\nb\nc\nd\ne", "a\nb\nc\nd\nE", "A\nb\nc\nd\nE", 0],
  ["equal changes", "a\nb\nc", "a\nX\nc", "a\nX\nc", "a\nX\nc", 0],
  ["one line, two changes", "a\nb\nc", "a\nX\nc", "a\nY\nc", "a\nX\nc", 1],
  ["lines that touch", "a\nb\nc\nd", "a\nX\nc\nd", "a\nb\nY\nd", "a\nX\nc\nd", 1],
  ["both begin", "", "x", "y", "x", 1],
  ["inserted and deleted", "a\nb\nc\nd\ne\nf", "a\nnew\nb\nc\nd\ne\nf", "a\nb\nc\nd\nf", "a\nnew\nb\nc\nd\nf", 0],
  ["a line end", "a\nb\nc", "A\nb\nc", "a\nb\nc\n", "A\nb\nc\n", 0],
  ["one overlap keeps the other's changes", "1\n2\n3\n4\n5", "1\nM\n3\n4\n5", "1\nT\n3\n4\nT5", "1\nM\n3\n4\nT5", 1],
];
for (const [name, base, mine, theirs, text, conflicts] of cases) {
  test(name, () => assert.deepEqual(merge3(base, mine, theirs), { text, conflicts }));
}

let seed = 7;
const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
const lines = (n) => Array.from({ length: n }, () => "l" + random(5));
function edited(list) {
  const out = [...list];
  for (let i = random(4); i >= 0; i--) out.splice(random(out.length + 1), random(3), ...lines(random(3)));
  return out;
}

test("a diff leads from one text to the other", () => {
  for (let i = 0; i < 2000; i++) {
    const a = lines(random(20));
    const b = edited(a);
    const out = [];
    let done = 0;
    for (const h of diffLines(a, b)) {
      out.push(...a.slice(done, h.aFrom), ...b.slice(h.bFrom, h.bTo));
      done = h.aTo;
    }
    assert.deepEqual([...out, ...a.slice(done)], b);
  }
});

test("a merge is symmetric where nothing overlaps, and loses no side", () => {
  let clean = 0;
  for (let i = 0; i < 2000; i++) {
    const base = Array.from({ length: 30 }, (_, n) => "b" + n);
    const top = [...edited(base.slice(0, 13)), ...base.slice(13)].join("\n");
    const end = [...base.slice(0, 17), ...edited(base.slice(17))].join("\n");
    const b = base.join("\n");
    const one = merge3(b, top, end);
    assert.deepEqual(one, merge3(b, end, top));
    assert.equal(one.conflicts, 0);
    assert.equal(merge3(b, top, b).text, top);
    assert.equal(merge3(b, b, end).text, end);
    clean++;
  }
  assert.equal(clean, 2000);
});

test("long texts without a common line end soon", () => {
  const a = Array.from({ length: 30_000 }, (_, i) => "a" + i).join("\n");
  const b = Array.from({ length: 30_000 }, (_, i) => "b" + i).join("\n");
  assert.equal(merge3(a, b, a + "\nend").conflicts, 1);
});

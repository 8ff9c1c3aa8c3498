// The README's blocks compile, and those that export a plugin or register tests run.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

test("the README's code", () => {
  const blocks = [...readFileSync(path("../README.md"), "utf8").matchAll(/^```ts\n([^]*?)^```$/gm)].map((match) => match[1]!);
  assert.equal(blocks.length, 3);
  rmSync(path("readme"), { recursive: true, force: true });
  mkdirSync(path("readme"));
  blocks.forEach((block, i) => writeFileSync(path(`readme/block${i}.ts`), block));
  const flags = "--strict --target es2022 --module nodenext --types node".split(" ");
  const files = blocks.map((_, i) => path(`readme/block${i}.ts`));
  const tsc = spawnSync(process.execPath, [path("../node_modules/typescript/bin/tsc"), ...flags, ...files], { encoding: "utf8" });
  assert.equal(tsc.stdout, "");
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
  for (const [i, code] of [1, 0, 0].entries()) { // the first serves, and there is no host
    const { status, stderr, stdout } = spawnSync(process.execPath, [path(`readme/block${i}.js`)], { encoding: "utf8", env });
    assert.equal(status, code, `block ${i}: ${stdout}${stderr}`);
  }
});

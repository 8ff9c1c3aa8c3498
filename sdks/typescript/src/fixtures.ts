// Fixtures: files that hold a call and the answer wanted, in the format of the Go kit (package plugintest).

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, sep } from "node:path";
import { test } from "node:test";

import { decode, decodeContribution, encode } from "./codec.js";
import type { Plugin } from "./plugin.js";
import { type Case, type Command, FakeHost, type Result, run } from "./testing.js";

/**
 * fixtures registers a test for each file "*.txtar" of a directory, which makes its call by run and compares the
 * answer. A file begins with a comment; then come, each optional but the last, the sections hook, tool, config.json,
 * context.json, input.json (the hook's input or the tool's arguments), max_chars, withhold, and want.json. All others
 * are written into a new directory, whose path $WORK stands for everywhere. With UPDATE=1 in the environment,
 * want.json is rewritten instead.
 */
export function fixtures(target: Plugin | Command, dir: string): void {
  const files = readdirSync(dir).filter((name) => name.endsWith(".txtar"));
  assert.ok(files.length > 0, `no fixtures *.txtar in ${dir}`);
  for (const name of files) test(basename(name, ".txtar"), () => fixture(target, join(dir, name)));
}

async function fixture(target: Plugin | Command, path: string): Promise<void> {
  const work = mkdtempSync(join(realpathSync(tmpdir()), "fixture-"));
  try {
    const archive = parse(readFileSync(path, "utf8"));
    const rest = new Map(archive.files);
    const cut = (name: string) => {
      const text = rest.get(name)?.replace(/\n$/, "");
      rest.delete(name);
      return text;
    };
    const take = (name: string) => cut(name)?.replaceAll("$WORK", work);
    const json = (name: string) => JSON.parse(take(name) || "null") ?? undefined;
    const c: Case = { hook: take("hook"), tool: take("tool"), config: json("config.json"), context: json("context.json"), withhold: take("withhold")?.split(/\s+/) };
    const input = json("input.json");
    c.max_chars = Number(take("max_chars") ?? 0) || undefined;
    const want: Result = JSON.parse(cut("want.json") || "{}");
    for (const [name, text] of rest) place(join(work, name), work, text);
    if (c.tool !== undefined) c.arguments = input;
    else c.input = input;
    c.hook ??= c.tool === undefined ? await onlyHook(target, c) : undefined;
    const update = process.env.UPDATE === "1";
    c.want_code = update ? "*" : want.error?.code;
    const got = JSON.parse(JSON.stringify(await run(target, c)).replaceAll(work, "$WORK"));
    if (!update) return assert.deepEqual(got, plain(want), `${path} (UPDATE=1 takes the new answer)`);
    archive.files.set("want.json", `${JSON.stringify(got, null, 2)}\n`);
    writeFileSync(path, format(archive));
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** plain is an answer without the defaults that the Go kit writes. */
function plain(want: Result): unknown {
  const { contributions, diagnostics, ...others } = want;
  return JSON.parse(JSON.stringify({
    ...(contributions && { contributions: contributions.map((c) => decodeContribution(encode("Contribution", c))) }),
    ...others,
    ...(diagnostics && { diagnostics: diagnostics.map((d) => decode("Diagnostic", encode("Diagnostic", d), true)) }),
  }));
}

async function onlyHook(target: Plugin | Command, c: Case): Promise<string> {
  const connection = await new FakeHost().connect(target);
  await connection.configure(c.config);
  const hooks = connection.description.hooks ?? [];
  await connection.close();
  assert.equal(hooks.length, 1, "the file names no hook, and the plugin has several");
  return hooks[0].name;
}

function place(path: string, work: string, text: string): void {
  assert.ok(!relative(work, path).startsWith(`..${sep}`), `the file ${path} lies outside`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

interface Archive {
  comment: string;
  files: Map<string, string>;
}

/** parse reads the txtar format: a comment, then files, each after a line "-- NAME --". */
function parse(text: string): Archive {
  const [comment = "", ...parts] = text.split(/^-- (.+) --\n/m);
  const files = new Map<string, string>();
  for (let i = 0; i < parts.length; i += 2) files.set(parts[i]!.trim(), parts[i + 1]!);
  return { comment, files };
}

function format({ comment, files }: Archive): string {
  return comment + [...files].map(([name, text]) => `-- ${name} --\n${text}`).join("");
}

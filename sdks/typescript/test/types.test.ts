// What the compiler must refuse. tsc checks this file; each @ts-expect-error fails the build if there is no error.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { ask, audit, bundle, context, definePlugin, deny, type Hook, policy, reminder, rewrite, section, setup, type Tool } from "@grapnel/sdk";

const base = { name: "types", version: "1.0.0" };

test("types", () => {
  // Everything that is right.
  definePlugin({
    ...base,
    config: { type: "object", properties: { words: { type: "array", items: { type: "string" } } }, required: ["words"] },
    configure: (config) => {
      const words: string[] = config.words;
      return setup({ hooks: { late: { kinds: ["reminder"], sessionStart: () => words.map((word) => reminder("word", word)) } } });
    },
    hooks: {
      guard: { kinds: ["decision", "audit"], role: "validate", needs: ["arguments"], toolPreCall: (input) => input.tool === "shell" && [deny("no"), audit("denied")] },
      later: { kinds: ["prompt_section"], prePromptCompile: async (input) => (input.sections.length > 0 ? section("a", "b") : undefined) },
      quiet: { postTurn: () => {} },
      custom: { kinds: ["prompt_context"], phase: "x.acme.deploy", any: (input) => context(String(input.service)) },
    },
    tools: {
      count: {
        description: "Counts",
        input: { type: "object", properties: { text: { type: "string" }, max: { type: "integer" } }, required: ["text"] },
        call: ({ text, max }) => {
          const limit: number | undefined = max;
          return Math.min(text.length, limit ?? Infinity);
        },
      },
    },
  });

  // A kind that the hook does not list.
  // @ts-expect-error
  ({ kinds: ["decision"], toolPreCall: () => rewrite("/a", 1) }) satisfies Hook<"decision">;
  assert.ok(definePlugin({
    ...base,
    hooks: {
      guard: {
        kinds: ["decision"],
        // @ts-expect-error
        toolPreCall: () => audit("event"),
      },
      list: {
        kinds: ["decision"],
        // @ts-expect-error
        toolPreCall: async () => [ask("why"), rewrite("/a", 1)],
      },
      none: {
        // @ts-expect-error
        toolPreCall: () => deny("no"),
      },
    },
  }));

  // A kind that the phase does not take.
  assert.throws(() => definePlugin({
    ...base,
    // @ts-expect-error
    hooks: { guard: { kinds: ["prompt_section"], toolPreCall: () => {} } },
  }), /does not take prompt_section/);
  assert.throws(() => definePlugin({
    ...base,
    // @ts-expect-error
    hooks: { guard: { kinds: ["policy"], prePromptCompile: () => policy("a", "b", 1) } },
  }), /does not take policy/);
  assert.throws(() => definePlugin({
    ...base,
    // @ts-expect-error
    hooks: { end: { kinds: ["tool_bundle"], sessionEnd: () => bundle("b", []) } },
  }), /does not take tool_bundle/);

  // A need that the input does not have.
  definePlugin({
    ...base,
    // @ts-expect-error
    hooks: { guard: { kinds: ["decision"], needs: ["argument"], toolPreCall: () => deny("no") } },
  });

  // Two handlers, none, and a phase without `any`.
  assert.throws(() => definePlugin({
    ...base,
    // @ts-expect-error
    hooks: { both: { toolPreCall: () => {}, toolPostCall: () => {} } },
  }), /2 handlers/);
  assert.throws(() => definePlugin({
    ...base,
    // @ts-expect-error
    hooks: { none: { kinds: ["decision"] } },
  }), /0 handlers/);
  assert.throws(() => definePlugin({
    ...base,
    // @ts-expect-error
    hooks: { odd: { phase: "x.acme.deploy", toolPreCall: () => {} } },
  }), /phase goes with/);

  // Words and fields.
  // @ts-expect-error
  section("a", "b", { stability: "fixed" });
  // @ts-expect-error
  section("a", "b", { maxChars: 5 });
  // @ts-expect-error
  ({ kind: "decision", verdict: "no" }) satisfies ReturnType<typeof deny>;

  // Arguments have the types of the schema.
  ({ input: { type: "object", properties: { n: { type: "number" } }, required: ["n"] }, call: ({ n }) => n + 1 }) satisfies Tool<{
    type: "object"; properties: { n: { type: "number" } }; required: ["n"];
  }>;
  definePlugin({
    ...base,
    tools: {
      t: {
        input: { type: "object", properties: { n: { type: "number" } } },
        // @ts-expect-error
        call: ({ n }) => n.length,
      },
    },
  });
});

test("a wrong kind is named, once", () => {
  const file = join("build", "wrong.ts");
  writeFileSync(file, `import { definePlugin, section } from "@grapnel/sdk";
definePlugin({ name: "a", version: "1", hooks: { rules: { kinds: ["prompt_sectoin"], prePromptCompile: () => section("a", "b") } } });
definePlugin({ name: "a", version: "1", hooks: { rules: { kinds: ["prompt_section"], toolPreCall: () => section("a", "b") } } });
`);
  const said = spawnSync(process.execPath, ["node_modules/typescript/lib/tsc.js", "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022", file], { encoding: "utf8" }).stdout;
  assert.equal(said.match(/error TS/g)?.length, 2, said);
  assert.match(said, /"prompt_sectoin"' is not assignable to type '"/);
  assert.match(said, /"prompt_section"' is not assignable to type '"decision" \| "rewrite" /);
});

// The fixtures of the Go kit run here too, and the kit fails where a host could be surprised.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { definePlugin, deny, PluginError, section } from "@grapnel/sdk";
import { fixtures, run } from "@grapnel/sdk/testing";

const plugin = definePlugin({
  name: "p",
  version: "1",
  hooks: {
    s: {
      kinds: ["prompt_section"],
      prePromptCompile: (_input, { context: { dir } }) => {
        if (!dir) throw new PluginError("no_dir", "the context has no dir");
        return section("s", `${readFileSync(join(dir, "name"), "utf8").trim()} in ${dir}`);
      },
    },
  },
});

fixtures(plugin, fileURLToPath(new URL("../test/fixtures", import.meta.url)));

const guard = (toolPreCall: any) => definePlugin({ name: "p", version: "1", hooks: { h: { kinds: ["decision"], toolPreCall } } });

test("run finds what would surprise a host", async () => {
  let n = 0;
  const cases: [any, RegExp][] = [
    [() => ({ kind: "audit", event_kind: "e" }), /does not list in kinds/],
    [() => deny(`${n++}`), /two answers/],
    [() => new Promise(() => {}), /does not return when it is cancelled/],
    [() => { throw new Error("oh"); }, /the plugin fails: oh/],
  ];
  for (const [handler, want] of cases) await assert.rejects(run(guard(handler), { hook: "h", patience_ms: 50 }), want);
  await assert.rejects(run(guard(() => {}), { hook: "other" }), /no hook "other"/);
  await assert.rejects(run(guard(() => {}), { hook: "h", want_code: "x" }), /the plugin succeeds/);
  assert.deepEqual(await run(guard(() => deny(`${n++}`)), { hook: "h", volatile: "counts" }).then((answer) => answer.contributions!.length), 1);
});

test("withheld fields look as a host sends them", async () => {
  let seen: any;
  const plugin = definePlugin({ name: "p", version: "1", hooks: { h: { toolPostCall: (input, call) => void (seen = { input, call }) } } });
  await run(plugin, {
    hook: "h", input: { tool: "t", arguments: { a: 1 }, result: "text", touched_paths: ["/a"] }, context: { metadata: { m: 1 } }, policies: [{ domain: "d", key: "k", value: 1 }],
    withhold: ["arguments", "result", "touched_paths", "metadata", "policy"],
  });
  assert.deepEqual(seen.input, {
    tool: "t", arguments: { withheld: true, chars: 7 }, result: { text: "", original_length: 4, truncated: false, withheld: true }, touched_paths: [], outcome: "",
    facts: { commands: [], reads: [], writes: [], names: [], hosts: [], outside: [], secrets: [], unparsed: false, why: "" },
  });
  assert.deepEqual({ ...seen.call.context.metadata }, {});
  assert.deepEqual(seen.call.policies, []);
  await run(plugin, { hook: "h", input: { tool: "t" }, policies: [{ domain: "d", key: "k", value: 1 }] });
  assert.equal(seen.call.policy("d", "k"), 1);
});

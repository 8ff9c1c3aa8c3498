import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { deny } from "@grapnel/sdk";
import { FakeHost, run } from "@grapnel/sdk/testing";

import { plugin } from "./plugin.js";

const config = { forbidden: "rm -rf" };
const program = { command: [fileURLToPath(new URL("main.js", import.meta.url))] as [string] };

// The plugin in this process, and the program that a host starts: both must answer the same.
for (const [where, target] of [["in process", plugin], ["as a process", program]] as const) {
  test(`the guard, ${where}`, async () => {
    const shell = (command: string) => run(target, { hook: "guard", config, input: { tool: "shell", arguments: { command } } });
    assert.deepEqual((await shell("rm -rf /")).contributions, [deny("a house rule forbids this command", { reason_code: "house_rule" })]);
    assert.deepEqual(await shell("ls"), {});
  });

  test(`the tool, ${where}`, async () => {
    assert.deepEqual(await run(target, { tool: "word_count", config, arguments: { text: "two  words" } }), { content: 2 });
    assert.equal((await run(target, { tool: "word_count", config, arguments: {} })).is_error, true);
  });
}

test("the section", async () => {
  const { contributions } = await run(plugin, { hook: "rules", config });
  assert.deepEqual(contributions, [{ kind: "prompt_section", section_id: "house", title: "House rules", content: "Never run a command that matches rm -rf." }]);
});

test("the tool is offered to models that call tools", async () => {
  const offer = (tool_calling: boolean) => run(plugin, { hook: "offer", config, input: { tool_calling } });
  assert.equal((await offer(true)).contributions?.length, 1);
  assert.deepEqual(await offer(false), {});
});

test("what a guard is not shown it does not allow", async () => {
  const { contributions } = await run(plugin, { hook: "guard", config, input: { tool: "shell", arguments: { command: "rm -rf /" } }, withhold: ["arguments"] });
  assert.equal(contributions?.[0]?.kind === "decision" && contributions[0].verdict, "ask");
});

test("a pattern that cannot be read", async () => {
  const connection = await new FakeHost().connect(plugin);
  assert.equal((await connection.configure({ forbidden: "(" }))?.pointer, "/forbidden");
  await connection.close();
});

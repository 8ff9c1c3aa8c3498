import { ask, bundle, ConfigError, definePlugin, deny, section, setup, tool, toolsOf } from "@grapnel/sdk";

const tools = {
  word_count: tool({
    description: "Counts the words of a text.",
    input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    call: ({ text }) => text.split(/\s+/).filter(Boolean).length,
  }),
};

/** House rules: what a shell must not do, a section that says so, and a tool. */
export const plugin = definePlugin({
  name: "house",
  version: "1.0.0",
  doc: "House rules for the shell, and a word count.",
  tools,

  // The host checks the configuration against this schema.
  config: {
    type: "object",
    properties: { forbidden: { type: "string", description: "a regular expression of commands that are denied" } },
    required: ["forbidden"],
    additionalProperties: false,
  },

  // Hooks that depend on the configuration are returned from here; others may stand beside `tools`.
  configure: (config) => {
    const forbidden = pattern(config.forbidden);
    return setup({
      hooks: {
        // A guard says what it needs to see: a host that does not show it that does not run it, and says so.
        guard: {
          kinds: ["decision"],
          role: "validate",
          needs: ["arguments"],
          toolPreCall: (input) => {
            if (input.tool !== "shell") return; // no opinion
            const { command } = (input.arguments ?? {}) as { command?: unknown };
            if (typeof command !== "string") return ask("the command cannot be read");
            return forbidden.test(command) && deny("a house rule forbids this command", { reason_code: "house_rule" });
          },
        },
        rules: {
          kinds: ["prompt_section"],
          prePromptCompile: () => section("house", `Never run a command that matches ${config.forbidden}.`, { title: "House rules" }),
        },
        offer: {
          kinds: ["tool_bundle"],
          needs: ["tool_calling"],
          preTools: (input) => input.tool_calling && bundle("house", toolsOf(tools)),
        },
      },
    });
  },
});

function pattern(source: string): RegExp {
  try {
    return new RegExp(source);
  } catch (err) {
    throw new ConfigError("/forbidden", (err as Error).message);
  }
}

// Package commandhook knows how agents run the command hooks of their users: which hooks a file of theirs declares
// ([Read]), which calls a hook is for ([Handler.Matches]), what a script reads on its standard input
// ([Handler.Payload]) and in its environment ([Handler.Environ]), and what its exit code and output mean
// ([Handler.Answer]). It runs nothing: plugins/commandhooks does.
//
// Package bridge goes the other way: there an agent calls Grapnel, here Grapnel stands in for an agent.
//
// # Sources
//
// Each rule names its agent; these are the contracts that the rules were written from:
//
//   - claude: code.claude.com/docs/en/hooks of 22 Aug 2026, and sdk.d.ts of @anthropic-ai/claude-agent-sdk 0.3.330
//     (BaseHookInput, *HookInput, SyncHookJSONOutput, and the handler types in Settings).
//   - codex: openai/codex codex-rs/hooks: schema.rs, engine/output_parser.rs, engine/command_runner.rs,
//     engine/discovery.rs, events/common.rs, events/*.rs (2026), with developers.openai.com/codex/hooks.
//   - gemini: google-gemini/gemini-cli at 5411f113: docs/hooks/reference.md, packages/core/src/hooks/hookRunner.ts,
//     hookPlanner.ts, hookAggregator.ts, hookRegistry.ts, types.ts; tools/definitions/base-declarations.ts for names.
//   - copilot: docs.github.com/copilot/reference/hooks-reference at 05da5bc.
//   - cursor: cursor.com/docs/hooks (snapshots of 2026), and the types in sondera-ai/sondera-coding-agent-hooks at
//     a57a9e2, apps/cursor, for the older answer of preToolUse.
//
// Stability: internal.
package commandhook

// Package agentsdoc is the AGENTS.md plugin: it puts the instruction files of a
// source tree, from its root down to the working folder, into the prompt.
//
// It is glue between the hook and package chain, which finds and renders the
// files and knows nothing of hooks. Written as a stranger would write it: it
// uses no door of Grapnel that another plugin does not have.
//
// # The hook
//
// The hook "prompt" answers turn.pre_prompt_compile with one section,
// agents_md, whose frame is two sentences and the tags <AGENTS_MD> and
// </AGENTS_MD>. Without a working folder in the context, or without a file, it
// contributes nothing. It keeps to two limits at once, the bytes of its own
// configuration and the characters that the dispatch tells it, so that the
// host never has to cut: which text is lost then is decided here, nearest file
// last. What was decided against a file is a diagnostic of the contribution.
//
// Within a session the section is the same bytes in every turn of an epoch,
// whatever happens on disk. Without a session each turn looks afresh.
//
// # The configuration
//
// [Config] is the configuration, schema.json its schema, [Config.Settings] what
// it comes to in an environment. Options that matter for security come from
// there and never from the tree that is read.
//
// Where to start: [New], then prompter.answer in prompt.go.
//
// Stability: experimental until 1.0.
package agentsdoc

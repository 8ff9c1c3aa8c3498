// Package agentsdoc is the AGENTS.md plugin: it puts the instruction files of a
// source tree, from its root down to the working folder, into the prompt, brings
// those of other folders when a tool touches them, and tells of changes. From a
// gateway it brings the document that is in effect for a thread.
//
// It is glue between hooks and the packages below it, which know nothing of
// hooks: chain finds and renders the files, lazy remembers what a session was
// given, reminder words what it is told, watch notices edits, thread asks for a
// document and renders it. Written as a stranger would write it: it uses no door
// of Grapnel that another plugin does not have.
//
// # The block
//
// The hook "prompt" answers turn.pre_prompt_compile with one section, agents_md:
// the block. In the default preset it is a section of the system prompt with a
// frame; in the presets codex and codelia it is a message, whole, with the bytes
// that the users of those tools get. Without a working folder in the context, or
// without a file, there is none. The plugin keeps to two limits at once, the
// bytes of its own configuration and the characters that the dispatch tells it,
// so that the host never has to cut: which text is lost then is decided here.
//
// # Sessions
//
// Within a session the block is the same bytes in every turn of an epoch,
// whatever happens on disk, so that the host may answer for the hook from its
// memory; what changed arrives beside it, by the hook "changed". A session is
// worked on by one handler at a time ([sdk.Call] by call), its state goes to the
// host service "state", and a process that is started anew goes on from there.
// Without a session each turn looks afresh, and the host is told not to keep the
// answer.
//
// The hooks "touching" and "touched" bring nested files, "resume" compares a
// session that is taken up again, "start" and "compacted" begin epochs, and "end"
// lets go of a session.
//
// # The thread tree
//
// With the source "tree" or "both" the hook "thread_prompt" answers the same phase
// with the document of the thread that the turn is for, in the same section, behind
// the files. It is asked for in each turn from the host service "documents"; package
// thread has the question, the answer, and the text. With "tree" it is the only
// hook.
//
// # Goroutines
//
// None is started here. A [watch.Watcher] owns two as long as a session is
// watched; they end with the last session, with the next configuration, and with
// the plugin.
//
// Where to start: [New], then docs.prompt in prompt.go, docs.changed in
// changed.go, docs.touch in nested.go and docs.threadPrompt in threadprompt.go.
// What must be known of a session is in sessions.go, how it is kept in stored.go.
//
// Stability: experimental until 1.0.
package agentsdoc

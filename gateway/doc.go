// Package gateway lets many clients, in any language, work with one Grapnel: on
// the thread tree and its AGENTS.md documents, with turns that are compiled for
// them, and on the log of manifests.
//
// # Where to start
//
//   - [New] joins a tree, an engine and a log; [Gateway.Serve] listens.
//   - The methods are in methods_*.go, each a row: name, right, what its params
//     say about workspace and actor, and a call of what does the work.
//   - [Documents] is the same tree for plugins: the host service "documents".
//   - [Schema] describes all methods, notifications and errors.
//
// # Who does what
//
// Package gateway/rpc carries messages: JSON-RPC, connections, tokens, limits. It
// knows no tree. Package tree has the words and rules, and a [tree.Store] holds
// them. This package is what is between: whose workspace is it, who acts, which
// errors do clients see, and who is to be told of a change.
//
// # Telling what changed
//
// The hub reads the tree's log of changes, whoever made them: woken by
// [tree.Store.Listen], and every few seconds without. It tells the connections
// that watch a workspace, in the order of the log. Several changes of one thing
// may come as one, the last. Each notification has a seq: who watches again from
// there misses nothing. Where that cannot be promised, gap is true, and the client
// reads again.
//
// # Turns that are kept
//
// Turns that clients have begun are in a table in memory (turns.go), each with what
// its phases have brought, until its client ends it, it is idle for too long, or the
// gateway stops (turns_sweep.go). Handles of turns that have ended are remembered for a
// while (turns_ended.go), so that a late call learns what became of its turn.
//
// # What it is not
//
// It keeps nothing but turns, and has no configuration, signals or files: those are the
// command's. It fills in no folder of its own: a turn's dir is the client's, and
// lies below one of [Options.Roots].
//
// Stability: experimental until 1.0.
package gateway

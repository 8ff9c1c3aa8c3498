// Package memory is the memory plugin: it remembers durable facts across turns and
// brings back what matters, with hooks and tools alone.
//
// It is glue between hooks and packages that know none: turnpolicy says what memory may
// do in a turn, recall finds and ranks, itemstore keeps, secret refuses what nobody
// should store, section and toolset write what a model sees. Written as a stranger would
// write it: it uses no door of Grapnel that another plugin does not have, and owns its
// data, in SQLite or PostgreSQL.
//
// # The hooks
//
//   - "policy" answers turn.pre_policy with the policy memory/turn_policy: what the
//     user wishes of memory, or what the host or the operator wants instead.
//   - "recall" answers turn.pre_prompt_context with what is remembered about what the
//     user says, as a context that is not rendered.
//   - "active_recall" answers turn.post_preflight_prompt_context likewise, by the
//     queries of the host's plan {"queries": […]} or by queries of its own.
//   - "tools" answers turn.pre_tool_materialization with the bundle memory: those of
//     the five tools that the policy allows.
//   - "prompt" answers turn.pre_prompt_compile with the section memory_recall, made of
//     what the two recalls have brought.
//   - "extract" listens at turn.post_turn: it stores what the user stated, and notes
//     which memories were used.
//
// They share nothing but what the runtime hands them, the policy and the contexts of
// the turn. So without the policy entry they neither read nor write: also where the
// hook "policy" failed, or an operator has not granted it.
//
// # For whom a memory is
//
// What somebody says of themselves (preferences, facts, standing instructions) is for
// that user, in this workspace; decisions and tasks are the workspace's. Where the host
// does not say who the user is, all is the workspace's. A fact must not become other
// people's memory by being said aloud; what a team has decided is everybody's. The tool
// memory_remember may choose another scope. A turn sees the memories of its workspace,
// its conversation, its agent and its user, and no others.
//
// Only words of users count: a turn that an agent or the system has caused
// ([phases.Actor]) wishes nothing and has nothing stored of it.
//
// # Explicit wishes
//
// "Remember that …" opens the tool memory_remember, and a sentence in the section tells
// the model to call it. What is stored in the same words is stored once, and when the
// host reports a successful call of the tool, extraction leaves what was asked for to
// it. Under an explicit wish what was once forgotten may come back; otherwise it does
// not.
//
// # When things fail
//
// No hook fails a turn. A database that is locked, full or out of reach fails the hook
// with a code such as memory_locked and the remedy; the ledger and the manifest say so,
// and later calls try again. One that is damaged, or of another program, is a mistake of
// the configuration. A model that answers late, nonsense or not at all is replaced by
// the rules, with a diagnostic.
//
// Where to start: [New], then policy.go, recall.go, prompt.go, tools.go and extract.go
// for the hooks, calls.go for the tools, database.go for how the store is held.
//
// Stability: experimental until 1.0.
package memory

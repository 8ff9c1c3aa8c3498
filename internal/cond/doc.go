// Package cond compiles and evaluates the conditions of subscriptions: the
// expression behind "when", which says for one dispatch whether a hook runs.
//
// # The language
//
// Conditions are expressions of expr-lang/expr that give true or false, over these names:
//
//	phase                                   the phase's name
//	turn.id, turn.mode, turn.profile        workspace.id, session.id, agent.id, task.id
//	thread.id, thread.conversation_id       actor.kind, actor.id
//	dir                                     tool.name
//	input.FIELD                             the phase's input by JSON name; embedded JSON as it is
//	flags.NAME, flags["NAME"]               the host's switches; a missing one is false
//	policy["domain/key"]                    the turn's policy set; a missing one is nil
//
// A name that does not exist is an error of [Compile] that says where, with a caret, and what the nearest known name
// is. A result of nil counts as false; any other result that is not a bool is an error.
//
// # Bounded work
//
// A condition delays a turn and may come from a plugin, so it must neither hang nor exhaust the host. The evaluator
// bounds the memory of lists and nothing else; these caps bound the rest:
//
//   - Source: at most [MaxSource] bytes and [MaxNodes] nodes; no nested predicates,
//     "let", sequences, chained comparisons, methods, clock, or functions whose
//     result grows faster than their arguments. Regular expressions are constants.
//   - Values: [MaxBytes] of text in a value and [MaxItems] entries in a list or
//     range. More is an error of [Condition.Eval], not a cut: a guard must not look
//     at half of its input. Only what is read counts.
//   - Work: one evaluation looks at [MaxWork] bytes at most, counting a byte each
//     time it is looked at.
//
// The slowest condition that these caps allow takes about half a second (see
// TestTooMuchWorkIsRefused); an ordinary one less than a microsecond.
//
// Start at [Compile]. Stability: internal.
package cond

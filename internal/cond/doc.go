// Package cond compiles and evaluates the conditions of subscriptions: the
// expression behind "when", which says for one dispatch whether a hook runs.
//
// # The language
//
// Conditions are expressions of expr-lang/expr that give true or false, over
// these names:
//
//	phase                                   the phase's name
//	turn.id, turn.mode, turn.profile        workspace.id, session.id, agent.id, task.id
//	thread.id, thread.conversation_id       actor.kind, actor.id
//	dir                                     tool.name
//	input.FIELD                             the phase's input by JSON name; embedded JSON as it is
//	flags.NAME, flags["NAME"]               the host's switches; a missing one is false
//	policy["domain/key"]                    the turn's policy set; a missing one is nil
//
// A name that does not exist is an error of [Compile] that says where, with a
// caret, and what the nearest known name is. A result of nil counts as false;
// any other result that is no bool is an error.
//
// # Bounded work
//
// A condition stands in the way of a turn, and it may come from a plugin. Its
// work is bounded before it runs, because the evaluator itself bounds memory
// and not time:
//
//   - The source is at most [MaxSource] bytes and 256 nodes. A predicate does
//     not stand inside another predicate. There is no "let", no sequence, no
//     chained comparison, no method, and of the builtin functions only those
//     whose work and result grow with their arguments and no faster. There is
//     no clock.
//   - What a condition reads is capped: [MaxBytes] of text in a value and
//     [MaxItems] entries in a list. More is an error of [Condition.Eval] and
//     not a cut, since a guard that looks at half of its input is none. Only
//     what is really read counts: input.arguments.path is fine beside a huge
//     input.arguments.content.
//   - From these caps and the program the worst case is computed; a condition
//     that could take much longer than a tenth of a second is refused.
//
// # What is not here
//
// No failure policy: that a condition failed is reported as a [phases.Error]
// with the cause "condition", and the dispatcher knows what follows. Start at
// [Compile].
//
// Stability: internal.
package cond

// Package history chooses which entries of a thread go into the next request, and says when the past should be
// compacted.
//
// A host passes the completed entries of a thread with its stored summary to [Select], and gets a [Window]: the entries
// to send, what was omitted and why, and whether compaction should start. The text budget is what the model's context
// leaves:
//
//	context − response reserve − system prompt − tools − the current turn
//
// The rules, in this order:
//
//  1. The summary is always kept.
//  2. The newest turns are kept; the first that does not fit ends the window.
//  3. Turns are kept whole. A tool call is never separated from its result: if they are in two turns, those and all
//     between count as one.
//  4. What no provider takes is omitted (see [Repair]).
//
// [Counter] counts tokens for Select. Its vocabularies add about 10 MB to a program, and are unpacked by the first
// count, in 10 to 25 ms. Counts are exact for one provider and estimates for the others. An [Estimator] learns from
// reported usage what a provider charges, and Select takes its [Scale]: it then chooses less where the estimate is
// less sure.
//
// Stability: experimental until 1.0.
package history

// Package history chooses what of a thread's past goes into the next request,
// and says when the past should be compacted.
//
// # What it does
//
// A host stores its threads. Before a request it hands over the completed
// entries of one, with the thread's stored summary, and gets back a [Window]:
// the entries to send, what was left out and why, and whether compaction should
// start. The room is what the model's context leaves:
//
//	context − response reserve − system prompt − tools − the current turn
//
// The rules, in this order:
//
//  1. The summary is always kept.
//  2. The newest turns are kept first, and the first that does not fit ends it:
//     what is kept is one piece of the thread's end.
//  3. Turns are kept whole. A tool call is never parted from its result: where
//     they are in two turns, those and all between count as one.
//  4. What no provider takes is left out by name: entries of unknown roles,
//     calls that were never answered, results that nobody asked for.
//
// # Where to start
//
// [Select] is the entry point, a pure function over values and a function that
// counts tokens. [Counter] is that function for most: it keeps a vocabulary and
// a bounded memory of counts, so that a thread is not tokenized again for each
// request. [Repair] is rule 4 alone.
//
// # What it costs
//
// The vocabularies are compiled in: a program that imports this package is
// about 10 MB larger. Nothing is unpacked before a Counter first counts;
// that takes some 10 to 25 ms.
//
// # What it is not
//
// It stores nothing, calls no model and writes no summary. Counts are estimates
// for all providers but one: keep a reserve.
//
// Stability: experimental until 1.0.
package history

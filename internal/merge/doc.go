// Package merge turns what hooks contributed into one result with an owner for
// each slot.
//
// It is pure: values in, values out. It knows no plugin process, clock, file or
// goroutine, and the same input gives the same bytes. The order in which hooks
// finished does not matter, because replies come in plan order.
//
// # Where to start
//
// [Admit] stands at the boundary of one hook: it validates the contributions,
// checks them against the phase, the hook's declaration and the operator's
// grants, names them and hashes them. [Merge] takes the admitted replies of one
// dispatch and applies the rules of each kind; there is one file per kind.
// [ApplyRewrites] changes a tool's arguments or result as merged.
//
// # Words
//
//   - A slot is what one contribution can hold: a section id, a policy's
//     domain/key, a tool's name, a path of a rewrite.
//   - Rank is the subscription's priority, then the contribution's, both
//     descending, then plan order, then the index in the reply. "Equal
//     priorities" means that both priorities are equal.
//   - On a conflict the first in plan order keeps the slot. The loser is dropped,
//     with one diagnostic that names both subscriptions and the slot, and a
//     [Loss], so that the loser's failure policy can be applied.
//
// Nothing disappears silently: each admitted contribution ends in
// Result.Contributions or has a row in Result.LeftOut.
//
// # Text
//
// Hook text is cut here and nowhere else, once, in the order normalise, escape,
// measure, allocate, cut. See allocate.go for how room is given out.
//
// # What it is not
//
// It does not deliver reminders, apply failure policies, queue jobs or write
// ledgers; package runtime does, from the [Result].
//
// Stability: internal.
package merge

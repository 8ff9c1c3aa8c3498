// Package merge turns what hooks contributed into one result with an owner for each slot. It is pure, and because
// replies come in plan order the result does not depend on the order in which hooks finished.
//
// [Admit] checks one hook's contributions against the phase, the hook's declaration and the operator's grants, names
// them and hashes them. [Merge] applies the rules of each kind to the admitted replies of one dispatch.
// [ApplyRewrites] changes a tool's arguments or result.
//
//   - A slot is what one contribution can hold: a section id, a policy's domain/key, a
//     tool's name, a path of a rewrite.
//   - Rank is the subscription's priority, then the contribution's, both descending, then
//     plan order, then the index in the reply.
//   - On a conflict the first in plan order keeps the slot. The loser is dropped, with
//     one diagnostic that names both and a [Loss] for its failure policy.
//   - Each admitted contribution ends in Result.Contributions or Result.Omitted.
//   - Hook text is cut here and nowhere else, once, in the order normalise, escape,
//     measure, allocate, cut (see fit.go).
//
// Stability: internal.
package merge

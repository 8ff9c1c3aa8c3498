// Package recall finds the few memories that matter for what a user just said.
//
// It is the pure core behind the hooks memory.recall and memory.active_recall and
// behind the tool memory_search: it makes terms of texts, says which terms of a
// query to search for, ranks what the store found, and picks and cuts what goes
// into the prompt. It opens nothing, knows no database and reads no clock, so two
// databases that keep the same statistics give one order, and the same input gives
// the same output to the byte.
//
// It is not the store, and no judge of truth: what contradicts an older item is told
// by the store (supersedes) and helped by recency. It escapes nothing; whoever writes
// a prompt does.
//
// Where to start: [Index] makes the terms of an item. [Read], [Terms], [Rank] and
// [Pick] are a recall, in this order; the example of the package runs all four.
//
// # What a store keeps and does
//
// For each item the counts and the length that [Index] gives; for all items that a turn
// may see their number, their mean length and, for each term, in how many of them it is.
// No others may be in these numbers: a score would tell of them, and a word that they
// have often would find nothing here. A term consists of letters, digits and marks that
// are parts of letters, at most 64 of them, and so has no meaning in any query language.
//
//  1. [Read] the utterance; look up the document frequencies of [Query.Vocabulary].
//  2. Look up those of [Query.Guesses] too, if there are any: other spellings of
//     words that none of the items has.
//  3. [Terms] gives at most twelve terms, the rarest first.
//  4. Collect candidates term by term in that order, at most 200, and the pinned
//     items. Of a term with more items than there is room for, the newest.
//  5. [Rank] them and [Pick] some.
//
// # Terms
//
// Words are folded: lower case, no accents, one form of each letter (see fold). An
// identifier is indexed whole and in parts, and whole means without what joins it:
// order_id, orderId and order-id have the terms orderid, order and id. Chinese,
// Japanese, Korean, Thai and their like are indexed as pairs of neighbours. A plural
// s is taken off.
//
// There is no list of stop words: what a store has everywhere weighs little. But the
// words of talk (please, why, could) are rare in items and say nothing, and a store
// with three items has no statistics. So each word has a share of all texts in which
// it is to be expected, which is a constant for the words of common.go and 0 for all
// others, and a store counts as having fifty more items with these shares.
//
// # Score
//
// The sum over the terms is BM25 (Robertson and Zaragoza, The Probabilistic Relevance
// Framework: BM25 and Beyond, 2009) with k1 1.2 and b 0.75, where the weight of a
// term is its inverse document frequency divided by that of a term with one item: a
// match of one rare word in an item of mean length scores 1. It is multiplied by
//
//	1 + 0.2·2^(−age/90 days) + 0.1·min(1, ln(1+uses)/ln 21)·2^(−idle/90 days)
//
// where age is the time since the item changed and idle the time since it was last
// used. That recency falls off exponentially is from Park et al., Generative Agents,
// 2023, and that use counts by its logarithm from Anderson and Schooler, Reflections
// of the Environment in Memory, 1991. The factor grows with neither age nor idleness
// and never falls with uses; it is never above 1.3, so that it decides between items
// that fit alike and does not make fit what does not.
//
// # Saying nothing
//
// Most turns need no memory. An item is evidence for a query if those of its terms
// that are no words of talk weigh at least 0.7 together, which one rare word does,
// and if it scores at least a quarter of the best. Pinned items always come.
//
// # Quality
//
// testdata/retrieval has labelled queries in two parts: development, with which the
// numbers above were chosen, and held-out, which decided which ideas stay and is
// therefore no untouched set. A test computes recall, reciprocal rank and how often
// nothing is said where nothing should be, next to plain BM25 and without each idea,
// and fails below floors.
//
// Stability: experimental.
package recall

// Package turnpolicy decides what memory may do in one turn.
//
// It is the pure core behind the hook memory.policy. [Decide] is a function of the
// turn's mode, the host's override and the user's words, and gives a [Policy]: what
// may be recalled, read, written and shown. [Rules] are the classifier that reads
// the user's words, and [Rules.Extract] finds the facts in them for hosts that offer
// no model. It uses no clock, file, goroutine or logger.
//
// It is not the memory: it knows of no items and no database. It is also no guard
// against people: who writes "don't save this" is believed, and a text that hides
// its wish from the rules gets the configured default.
//
// Where to start: [Decide] in decide.go reads top-down; [Policy] in policy.go is what
// comes out; [Rules.Classify] in classify.go is how a text is read.
//
// # How a text is read
//
// Classify looks at the first and the last 4,000 characters, so that the work has a
// bound. It folds them (lower case, no accents, one kind of quote), blanks what are
// not the user's own words (code, quotations, lines that quote a mail), splits the
// rest into sentences, and tries the rules of every language on each. Sentences in
// the middle of a long text count for less: a wish stands at the beginning or at the
// end, what is pasted stands between.
//
// A wish is only taken for one when it speaks to the assistant. Questions about
// memory, reports of what somebody said, idioms ("forget it") and orders that are
// about the work ("don't save the file") are none.
//
// # Rule files
//
// A language is one file rules/*.json; adding one is adding a file. It has these
// keys, and no others:
//
//   - language: its code, which is also how each of its ids begins.
//   - words: beginnings of words. The language is looked at for texts that have one,
//     so they must be in all that its rules and facts match.
//   - lead: one courtesy, as in "hey" or "could you". Several may begin a sentence.
//   - clause: what stands between two clauses.
//   - parts: named pieces of patterns. {name} in a pattern stands for the piece;
//     pieces may use pieces.
//   - guards: patterns of sentences that wish nothing, whatever else is in them.
//     With intents a guard is only for rules of these.
//   - rules: the wishes. Each has an id, an intent (remember, forget, no_use,
//     no_save), a confidence from 0 to 1 and a match. With at "start" it must match at
//     the beginning of the sentence or behind a courtesy there, with "clause" also at
//     the beginning of a clause, and without at anywhere. Patterns in with must match as
//     well, and those in unless must not. The group (?P<it>…) is what is to be
//     remembered or forgotten; target says it in place of the group; refers says that
//     it stands in the sentence before or in those after.
//   - facts: sentences that state a durable fact. Each has an id, a category and a
//     match, and may have at, with, unless and the group "it".
//   - slots: facts that are the one answer to something, such as where the user
//     lives, so that a newer one takes the place of the older. Each has an id, a slot
//     and a match, and may have at, with and unless. They meet the text of a fact,
//     wherever that comes from.
//
// Patterns are those of package regexp, so no text makes them slow. They meet folded
// text: "für" is written fur, "l’été" is l'ete. What was blanked is a run of the
// control character 1A, which "." and \x1a meet. Each rule has says: utterances that
// it must match; a test holds it to them. The id of the rule that decided is the
// policy's reason code.
//
// # Quality
//
// testdata/evaluation has labelled utterances: some that the rules are made with, and
// others that nobody looks at while making rules and that say what these are worth. A
// test computes precision and recall and fails below floors. Precision comes first: a
// wish that is missed leaves the default in force, and one that is found by mistake
// takes something away from a user who did not ask for it.
//
// Stability: experimental.
package turnpolicy

package recall

// tuning has the numbers of recall in one place. Each can be switched off, which is
// how the labelled set tells what it is worth.
type tuning struct {
	// k1 and b are those of BM25.
	k1, b float64
	// plurals takes the s of a plural off.
	plurals bool
	// prior is how many items more a store counts as having.
	prior float64
	// talk is the share of texts in which a word of talk is to be expected.
	talk float64
	// guess is the weight of a term that a misspelt word may stand for.
	guess float64
	// recency and use are the most that each adds to the factor of a score.
	recency, use float64
	// evidence is what the matched terms of an item must weigh.
	evidence float64
	// tail is the share of the best score that others must reach.
	tail float64
}

// tuned returns the numbers that are in use.
func tuned() tuning {
	return tuning{
		k1: 1.2, b: 0.75, plurals: true, prior: 50, talk: 0.3, guess: 0.8,
		recency: 0.2, use: 0.1, evidence: 0.7, tail: 0.25,
	}
}

// term returns the term under which a folded word is indexed.
func (t tuning) term(plain string) string {
	if t.plurals {
		return singular(plain)
	}
	return plain
}

// share returns the share of texts in which a token is to be expected, whatever the
// store has.
func (t tuning) share(tok token) float64 {
	if isTalk(tok.plain) || tok.kind == gram && isGrammar(tok.plain) {
		return t.talk
	}
	return 0
}

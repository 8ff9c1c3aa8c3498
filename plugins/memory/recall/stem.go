package recall

// singular takes the s of a plural off a folded word. It does so in any language
// written in plain letters: an English word in a German sentence is common, and
// taking too much is harmless as long as items and queries lose the same. Wider rules
// (-ing, -ed, -ment, German and Spanish endings) were tried on the labelled set and
// gained nothing on its held-out half.
func singular(w string) string {
	n := len(w)
	if n < 4 || w[n-1] != 's' {
		return w
	}
	for i := range n {
		if w[i] < 'a' || w[i] > 'z' {
			return w
		}
	}
	switch w[n-2] {
	case 's', 'u': // access, status
		return w
	}
	if n > 4 && w[n-3:] == "ies" {
		return w[:n-3] + "y"
	}
	return w[:n-1]
}

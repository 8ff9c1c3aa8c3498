package turnpolicy

import (
	"regexp/syntax"
	"slices"
)

// needs returns texts of which at least one is in everything that an expression
// matches, or nil if there are none that it could tell. They are looked for before
// the expression is tried, which is much cheaper.
func needs(re *syntax.Regexp) []string {
	switch re.Op { //nolint:exhaustive // the other operators need nothing
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return nil
		}
		return []string{string(re.Rune)}
	case syntax.OpCapture, syntax.OpPlus:
		return needs(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needs(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			best = better(best, needs(sub))
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			some := needs(sub)
			if some == nil {
				return nil
			}
			all = append(all, some...)
		}
		return slices.Compact(slices.Sorted(slices.Values(all)))
	}
	return nil
}

// better returns the texts that say more: those whose shortest is longer, and fewer
// of them.
func better(a, b []string) []string {
	switch la, lb := shortest(a), shortest(b); {
	case la > lb, la == lb && len(a) <= len(b):
		return a
	}
	return b
}

// shortest returns the length of the shortest text, and 0 for none.
func shortest(texts []string) int {
	if len(texts) == 0 {
		return 0
	}
	return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
}

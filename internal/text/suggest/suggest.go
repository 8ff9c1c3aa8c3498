// Package suggest finds the known name that a mistyped one probably meant, for messages about unknown names.
//
// Stability: internal.
package suggest

import (
	"fmt"
	"unicode/utf8"
)

// DidYouMean returns ` (did you mean "x"?)` for the known name nearest to a mistyped one, or "" when none is
// near. Every message about an unknown name ends with it.
func DidYouMean(name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// nearest returns the known name with the least edit distance (Levenshtein) to
// name, if that is at most a third of its length plus one; the first of equals.
func nearest(name string, known []string) string {
	length := utf8.RuneCountInString(name)
	best, bestDistance := "", length/3+2
	for _, k := range known {
		// The difference in length is part of the distance. Names come from models
		// and may be of any length: without this one would cost minutes.
		if n := utf8.RuneCountInString(k); max(length-n, n-length) >= bestDistance {
			continue
		}
		if d := distance([]rune(name), []rune(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

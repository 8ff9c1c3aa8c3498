package text

import (
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// maxCluster is how many characters a cut goes back to keep a cluster whole. Real clusters have a few dozen at most.
const maxCluster = 1024

// ClusterEnd returns the last grapheme boundary of s at or before the byte end, which must be a character's beginning
// or len(s). It goes back up to maxCluster characters to a place that is a boundary whatever precedes it, and divides
// from there. Without such a place it returns end.
func ClusterEnd(s string, end int) int {
	if end >= len(s) {
		return len(s)
	}
	begin, ok := certainBoundary(s, end)
	if !ok {
		return end
	}
	// The one character after end decides whether end itself is a boundary.
	_, size := utf8.DecodeRuneInString(s[end:])
	rest, state := s[begin:end+size], -1
	for last := begin; ; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		next := last + len(cluster)
		if next > end {
			return last
		}
		last = next
	}
}

func certainBoundary(s string, end int) (int, bool) {
	for range maxCluster {
		if end == 0 || divides(s, end) {
			return end, true
		}
		_, size := utf8.DecodeLastRuneInString(s[:end])
		end -= size
	}
	return 0, end == 0
}

// divides reports whether at is a boundary because of its two neighbours alone. The rules
// of UAX #29 look further back for regional indicators, which never divide here, and for
// emoji joined by U+200D: nothing is certain after a joiner.
func divides(s string, at int) bool {
	before, after := s[at-1], s[at]
	if before < utf8.RuneSelf && after < utf8.RuneSelf {
		return before != '\r' || after != '\n'
	}
	const joiner = '\u200d'
	left, leftSize := utf8.DecodeLastRuneInString(s[:at])
	if left == joiner {
		return false
	}
	_, rightSize := utf8.DecodeRuneInString(s[at:])
	cluster, _, _, _ := uniseg.FirstGraphemeClusterInString( //nolint:dogsled // its signature
		s[at-leftSize:at+rightSize], -1)
	return len(cluster) == leftSize
}

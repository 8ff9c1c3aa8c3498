package text

import "strings"

// The fixed parts of the marker line.
const (
	markerHead = "[truncated: kept "
	markerMid  = " of "
	markerTail = " characters]"
)

// Marker returns the line that says how much a cut kept, without a newline:
//
//	[truncated: kept 15,950 of 40,212 characters]
func Marker(kept, original int) string {
	return markerHead + Thousands(kept) + markerMid + Thousands(original) + markerTail
}

// markerSize returns the characters that a marker line adds, newline included,
// at its widest: with everything kept.
func markerSize(original int) int {
	return len(Marker(original, original)) + 1
}

// isMarker reports whether line has the form of a marker, whatever its
// numbers. Markers of plugins differ (they begin with a path) and are theirs.
func isMarker(line string) bool {
	rest, ok := strings.CutPrefix(line, markerHead)
	if !ok {
		return false
	}
	rest, ok = cutNumber(rest)
	if !ok {
		return false
	}
	if rest, ok = strings.CutPrefix(rest, markerMid); !ok {
		return false
	}
	rest, ok = cutNumber(rest)
	return ok && rest == markerTail
}

// cutNumber cuts digits and commas, at least one, from the front of s.
func cutNumber(s string) (rest string, ok bool) {
	n := 0
	for n < len(s) && ('0' <= s[n] && s[n] <= '9' || s[n] == ',') {
		n++
	}
	return s[n:], n > 0
}

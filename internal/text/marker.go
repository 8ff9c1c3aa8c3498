package text

// The fixed parts of the marker line.
const (
	markerHead = "[truncated: kept "
	markerMid  = " of "
	markerTail = " characters]"

	// markerWord is how a line begins that reads like a marker. Markers of plugins
	// begin with a path instead of "kept" and are theirs.
	markerWord = "[ truncated : kept"
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

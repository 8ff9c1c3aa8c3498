package textrule

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPrinted bounds a printed path, in characters.
const maxPrinted = 512

// PrintPath makes a path fit to stand in a prompt: a folder's name can hold
// anything. Control characters, newlines, what does not show (format characters,
// variation selectors, fillers), and < > [ ] " become \u{HEX}; bytes that are no
// UTF-8 become \u{fffd}. A path that is longer than 512 characters then loses its
// middle to one ….
func PrintPath(path string) string { return printPath(path, unprintable) }

// PrintPlainPath is [PrintPath] for texts in the manner of other tools: only
// control characters, newlines, < and > are replaced, so that a path looks as
// the users of those tools know it and still cannot forge a line or a tag.
// Bytes that are no UTF-8 become U+FFFD.
func PrintPlainPath(path string) string {
	valid, _ := Form{}.Text(path)
	return printPath(valid, breaksOut)
}

// printPath replaces what the rule says, and bounds the length.
func printPath(path string, replaced func(rune) bool) string {
	if utf8.RuneCountInString(path) <= maxPrinted && !strings.ContainsFunc(path, replaced) {
		return path
	}
	var units []string
	total := 0
	for _, c := range path {
		unit := string(c)
		width := 1
		if replaced(c) {
			unit = fmt.Sprintf(`\u{%x}`, c)
			width = len(unit)
		}
		units = append(units, unit)
		total += width
	}
	if total <= maxPrinted {
		return strings.Join(units, "")
	}
	const half = (maxPrinted - 1) / 2
	return strings.Join(leading(units, half), "") + "…" + strings.Join(trailing(units, half), "")
}

// unprintable reports whether [PrintPath] replaces a character.
func unprintable(c rune) bool {
	switch c {
	case '[', ']', '"', unicode.ReplacementChar:
		return true
	}
	return breaksOut(c) || invisible(c)
}

// breaksOut reports whether a character could end a line or a tag.
func breaksOut(c rune) bool {
	switch c {
	case '<', '>', '\u2028', '\u2029':
		return true
	}
	return unicode.IsControl(c)
}

// leading returns the first units that take up at most room characters. Units
// are one character or an escape, which is ASCII.
func leading(units []string, room int) []string {
	for i, unit := range units {
		if room -= unitWidth(unit); room < 0 {
			return units[:i]
		}
	}
	return units
}

// trailing is leading from the end.
func trailing(units []string, room int) []string {
	for i, unit := range slices.Backward(units) {
		if room -= unitWidth(unit); room < 0 {
			return units[i+1:]
		}
	}
	return units
}

// unitWidth counts the characters of a unit.
func unitWidth(unit string) int {
	if strings.HasPrefix(unit, `\u{`) {
		return len(unit)
	}
	return 1
}

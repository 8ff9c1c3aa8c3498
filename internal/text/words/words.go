// Package words puts numbers and conditions into sentences for people.
//
// Stability: internal.
package words

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/text"
)

// Count is a number with its noun.
func Count(n int, one, many string) string { return text.Thousands(n) + " " + Plural(n, one, many) }

// Plural is the word for so many.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// If is the text under a condition, else nothing.
func If(condition bool, s string) string {
	if condition {
		return s
	}
	return ""
}

// Millis is a time in milliseconds, with no more digits than tell something.
func Millis(ms float64) string {
	switch {
	case ms == 0:
		return "0"
	case ms < 10:
		return fmt.Sprintf("%.2f", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f", ms)
	default:
		return fmt.Sprintf("%.0f", ms)
	}
}

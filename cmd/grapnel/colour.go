package main

import (
	"os"
	"strings"
)

// style is how a terminal shows a text: parameters of "Select Graphic Rendition" (ECMA-48), empty for plain text.
// They are among the eight basic colours, which people's themes make readable on dark and light backgrounds.
type style string

// The styles, named after what they mean. None says anything that the text does not.
const (
	heading style = "1"  // bold
	faint   style = "2"  // what is off, or had nothing to do
	bad     style = "31" // red
	good    style = "32" // green
	caution style = "33" // yellow: cut, omitted, degraded
	place   style = "36" // cyan: where in a text
)

// span is a part of the result, in bytes, that has a style. The result itself is plain text, and spans stand beside it:
// a text that looks like an escape sequence, or like anything else, never becomes one, and widths are those of the text.
// Spans are in order and do not overlap.
type span struct {
	from, to int
	style    style
}

// paint writes a part of the result in a style.
func (a *app) paint(s style, text string) {
	from := a.out.Len()
	a.out.WriteString(text)
	if s != "" {
		a.spans = append(a.spans, span{from, a.out.Len(), s})
	}
}

// heading writes a line that names what follows.
func (a *app) heading(text string) { a.paint(heading, endLine(text)) }

// discard forgets the result.
func (a *app) discard() {
	a.out.Reset()
	a.spans = nil
}

// painted returns the result with its styles, for a terminal. Each line has its own escape sequences, as "less -R" needs it.
func (a *app) painted() string {
	var b strings.Builder
	all, at := a.out.String(), 0
	for _, s := range a.spans {
		b.WriteString(printable(all[at:s.from]))
		for line := range strings.Lines(all[s.from:s.to]) {
			words := strings.TrimRight(line, "\n")
			if words != "" {
				b.WriteString("\x1b[" + string(s.style) + "m" + printable(words) + "\x1b[0m")
			}
			b.WriteString(line[len(words):])
		}
		at = s.to
	}
	b.WriteString(printable(all[at:]))
	return b.String()
}

// hasColours reports whether a terminal shows colours and its user wants them (https://no-color.org).
func hasColours() bool {
	term := os.Getenv("TERM")
	return os.Getenv("NO_COLOR") == "" && term != "" && term != "dumb"
}

// coloured reports whether the result has colours.
func (a *app) coloured() bool {
	return !a.JSON && (a.Color == "always" || a.Color != "never" && a.colours)
}

// styled is a cell of a table in a style.
type styled struct {
	style style
	text  string
}

func (s styled) String() string { return s.text }

// mark makes a cell of a text that begins with a word such as a state, in the style of its meaning.
func mark[T ~string](s T) styled { return styled{meaning(string(s)), string(s)} }

// meaning returns the style of the word that s begins with: a state, severity, change or kind of issue.
func meaning(s string) style {
	word, _, _ := strings.Cut(s, " ")
	switch strings.TrimSuffix(word, ",") {
	case "succeeded", "cached", "ready", "ok", "loaded", "added":
		return good
	case "denied", "failed", "timed_out", "unavailable", "budget_exhausted", "quarantined", "failing", "open", "breaker_open", "hanging", "error", "removed":
		return bad
	case "degraded", "backoff", "cancelled", "draining", "half_open", "busy", "sandbox_partial", "warning", "changed", "moved", "re-owned", "reowned":
		return caution
	case "filtered", "disabled", "stopped", "off", "idle", "missing":
		return faint
	default:
		return ""
	}
}

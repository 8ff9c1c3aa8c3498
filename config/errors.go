package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/phases"
)

const (
	maxMistakes = 100 // that are kept of one file
	maxShown    = 120 // characters of a line around a mistake
)

// Error is one mistake with its place in the file.
type Error struct {
	// File is the path as it was given.
	File string
	// Line and Column count from 1, columns in characters. Both are 0 for a mistake without a place in the file.
	Line, Column int
	// Message is one sentence for people. It never contains a secret from the environment.
	Message string
	// Snippet is the line and a caret below it, without a final newline; empty without a place.
	Snippet string
	// Err is the wrapped cause, if there is one.
	Err error
}

// Error implements error: "file:line:column: message" and the snippet below.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
		if e.Line > 0 {
			fmt.Fprintf(&b, "%d:%d:", e.Line, e.Column)
		}
		b.WriteByte(' ')
	}
	b.WriteString(e.Message)
	if e.Snippet != "" {
		b.WriteString("\n" + e.Snippet)
	}
	return b.String()
}

// Unwrap returns the wrapped cause.
func (e *Error) Unwrap() error { return e.Err }

// Errors are all mistakes of one file, in the order of the file. An error that is returned is never empty.
type Errors []*Error

// Error implements error: each mistake begins a line.
func (es Errors) Error() string {
	texts := make([]string, len(es))
	for i, e := range es {
		texts[i] = e.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap gives errors.Is and errors.As each mistake.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// Mistakes are the mistakes in files that an error has, in the order of their places; empty if it is about something else.
func Mistakes(err error) Errors {
	all := mistakes(err)
	slices.SortStableFunc(all, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return all
}

func mistakes(err error) (all Errors) {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case *Error:
		return Errors{e}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, mistakes(one)...)
		}
	case interface{ Unwrap() error }:
		return mistakes(e.Unwrap())
	}
	return all
}

type report struct {
	file     string
	lines    []string
	mistakes Errors
	count    int // of all mistakes
	// seen has the places that were reported: the first mistake at a place is the cause of the others.
	seen map[[2]int]bool
}

func newReport(file, text string) *report {
	return &report{file: file, lines: strings.Split(text, "\n"), seen: map[[2]int]bool{}}
}

func (r *report) addf(line, column int, format string, args ...any) {
	at := [2]int{line, column}
	if r.seen[at] {
		return
	}
	r.seen[at] = true
	if r.count++; r.count <= maxMistakes {
		r.mistakes = append(r.mistakes, r.at(line, column, fmt.Sprintf(format, args...)))
	}
}

// badf reports a mistake in a value; badKeyf one that concerns its key.
func (r *report) badf(n *node, format string, args ...any) {
	line, column := n.place()
	r.addf(line, column, format, args...)
}

func (r *report) badKeyf(n *node, format string, args ...any) {
	line, column := n.keyPlace()
	r.addf(line, column, format, args...)
}

func (r *report) at(line, column int, message string) *Error {
	e := &Error{File: r.file, Line: line, Column: column, Message: message}
	if line >= 1 && line <= len(r.lines) {
		e.Snippet = snippet(r.lines[line-1], column)
	}
	return e
}

func (r *report) err() error {
	if len(r.mistakes) == 0 {
		return nil
	}
	slices.SortStableFunc(r.mistakes, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if r.count > maxMistakes {
		r.mistakes = append(r.mistakes, &Error{File: r.file, Message: fmt.Sprintf("and %d more mistakes", r.count-maxMistakes)})
	}
	return r.mistakes
}

// snippet shows a line, or a part of a long one, and a caret below a column. It
// replaces what would move the caret or disturb the terminal.
func snippet(line string, column int) string {
	runes := []rune(line)
	column = min(max(column, 1), len(runes)+1)
	from, to := 0, len(runes)
	if to > maxShown {
		from = min(max(0, column-1-maxShown/2), to-maxShown)
		to = from + maxShown
	}
	shown := slices.Clone(runes[from:to])
	for i, c := range shown {
		if c == '\t' {
			shown[i] = ' '
		} else if !unicode.IsPrint(c) {
			shown[i] = '\uFFFD'
		}
	}
	return " | " + strings.TrimRight(string(shown), " ") + "\n | " + strings.Repeat(" ", column-1-from) + "^"
}

// ErrorAt returns an [Error] for a configuration that a plugin refused, at the
// place that its JSON pointer names, or at the nearest value above it.
func (c *Config) ErrorAt(plugin string, e *phases.ConfigError) error {
	message := fmt.Sprintf("plugin %q refuses its configuration: ", plugin)
	n := findPlugin(c.origin().root, plugin)
	own := n.child("config")
	if own == nil {
		return c.at(n.child("name"), message+e.Error(), e)
	}
	at, rest := own.walk(e.Pointer)
	if rest == "" && e.AtKey && at.keyLine > 0 {
		key := *at
		key.kind, key.line, key.column = nullNode, at.keyLine, at.keyColumn
		at = &key
	}
	return c.at(at, message+join(rest, e.Message), e)
}

// Errorf returns an [Error] at a value of the file: a path of keys and list indexes joined by dots, as in
// "plugins.0.builtin". A value that is not in the file is reported at the nearest one above it. %w wraps a cause.
func (c *Config) Errorf(path, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	root := c.origin().root
	at, rest := root.walkDotted(path)
	if at == root {
		at = nil
	}
	return c.at(at, join(rest, err.Error()), err)
}

// PlanError returns an [Error] for what the planner found: field is a path below the plugin,
// "subscriptions.ID.FIELD", or below the whole file if plugin is "", as in "budgets.phases.PHASE.require". A value
// that is not in the file, because a plugin proposed it, is reported at the nearest value above it; a scripted plugin's
// values are in its configuration. cause may be nil. If it has a place within the value, the error has that place.
func (c *Config) PlanError(plugin, field, message string, cause error) error {
	if plugin == "" {
		return c.Errorf(field, "%s", message)
	}
	n := findPlugin(c.origin().root, plugin)
	at, rest := n.walkDotted(field)
	if own, below := n.scripted(field); rest != "" && own != nil {
		at, rest = own, below
	}
	if rest != "" {
		cause = nil // its place is in a text that the file does not have
	}
	if at == n {
		return c.at(n.child("name"), fmt.Sprintf("plugin %q: %s", plugin, join(rest, message)), nil)
	}
	return c.at(at, join(rest, message), cause)
}

// origin is the file that c was read from, empty for one that code made.
func (c *Config) origin() *source {
	return cmp.Or(c.source, &source{report: newReport("", "")})
}

// at makes an error at a node; nil has no place.
func (c *Config) at(n *node, message string, cause error) error {
	if n == nil {
		return &Error{File: c.origin().file, Message: message, Err: cause}
	}
	line, column := n.place()
	if within, ok := errors.AsType[placed](cause); ok && n.kind == textNode {
		line, column = c.source.within(n, within)
		message = strings.Replace(message, within.Error(), within.Plain(), 1)
	}
	e := c.source.at(line, column, message)
	e.Err = cause
	return e
}

// placed is an error about a text, such as a condition: where it is in the text, and what it says without that.
type placed interface {
	error
	Place() (line, column int)
	Plain() string
}

// within finds the place in the file of an error's place in the text of n, which may be folded, indented or in quotes:
// it matches the characters that are not white space, and skips those that the text does not have.
func (r *report) within(n *node, e placed) (line, column int) {
	line, column = e.Place()
	lines := strings.Split(n.text, "\n")
	line = min(line, len(lines))
	last := []rune(lines[line-1])
	want := []rune(strings.Join(strings.Fields(strings.Join(lines[:line-1], " ")+" "+string(last[:min(column, len(last))])), ""))
	line, column = n.place()
	for number, from := n.line, n.column; number <= len(r.lines) && len(want) > 0; number, from = number+1, 1 {
		for i, c := range []rune(r.lines[number-1]) {
			first := number == n.line && i+1 == n.column
			switch {
			case i+1 < from, first && (c == '\'' || c == '"'):
			case first && (c == '|' || c == '>'):
				from = len(r.lines[number-1]) + 1
			case len(want) > 0 && c == want[0]:
				line, column, want = number, i+1, want[1:]
			}
		}
	}
	return line, column
}

func join(path, message string) string {
	if path == "" {
		return message
	}
	return path + ": " + message
}

func quote(word string) string { return strconv.Quote(word[:min(len(word), maxShown)]) }

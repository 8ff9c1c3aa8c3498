package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxMistakes is how many mistakes of one file are kept.
const maxMistakes = 100

// maxShown is how much of a line is shown around a mistake, in characters.
const maxShown = 120

// Error is one mistake with its place in the file.
type Error struct {
	// File is the path as it was given.
	File string
	// Line and Column count from 1, columns in characters. Both are 0 when the
	// mistake has no place in the file.
	Line, Column int
	// Message is one sentence for people. It never contains a secret from the
	// environment.
	Message string
	// Snippet is the line with a caret in the line below, without a final
	// newline; empty without a place.
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

// Errors are all mistakes of one file, in the order of the file. It is never
// empty when it is returned as an error.
type Errors []*Error

// Error implements error: the mistakes, each from a line of its own.
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

// report collects mistakes while a file is read.
type report struct {
	file     string
	lines    []string
	mistakes Errors
	// count is the number of all mistakes, those included that are not kept.
	count int
	// seen has the places that were reported: the first mistake at a place is
	// the cause, others follow from it.
	seen map[[2]int]bool
}

func newReport(file, text string) *report {
	return &report{file: file, lines: strings.Split(text, "\n"), seen: map[[2]int]bool{}}
}

// addf records a mistake at a place.
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

// badf records a mistake in a value; badKeyf one that concerns its key.
func (r *report) badf(n *node, format string, args ...any) {
	line, column := n.place()
	r.addf(line, column, format, args...)
}

func (r *report) badKeyf(n *node, format string, args ...any) {
	line, column := n.keyPlace()
	r.addf(line, column, format, args...)
}

// at makes an error with its snippet.
func (r *report) at(line, column int, message string) *Error {
	e := &Error{File: r.file, Line: line, Column: column, Message: message}
	if line >= 1 && line <= len(r.lines) {
		e.Snippet = snippet(r.lines[line-1], column)
	}
	return e
}

// err returns what was collected as one error, nil if it is nothing.
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

// snippet shows a line and a caret below a column. Of a long line the
// neighbourhood is shown. What would move the caret or the terminal (tabs,
// control and formatting characters) is replaced.
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

package cond

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
)

// Error is a mistake in a condition's source, found by [Compile].
type Error struct {
	// Line and Column point at the mistake, from 1, in Unicode scalar values.
	Line, Column int
	// Message is one sentence, with the nearest known name where there is one.
	Message string
	// Text is the line of the source that the mistake is in.
	Text string
}

// What is shown of a long line before and behind the mistake.
const (
	shownBefore = 60
	shownBehind = 40
)

// Error gives place, message, and the line with a caret below the mistake.
func (e *Error) Error() string {
	head := fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
	if e.Text == "" {
		return head
	}
	line := []rune(strings.ReplaceAll(e.Text, "\t", " "))
	at := min(e.Column-1, len(line))
	from, to := max(0, at-shownBefore), min(len(line), at+shownBehind)
	return head + "\n | " + string(line[from:to]) + "\n | " + strings.Repeat(".", at-from) + "^"
}

// mistake is a message at a node, before the source is at hand.
type mistake struct {
	at      file.Location
	message string
}

func (m *mistake) Error() string { return m.message }

// mistakef makes a mistake at a node.
func mistakef(at ast.Node, format string, args ...any) error {
	return &mistake{at: at.Location(), message: fmt.Sprintf(format, args...)}
}

// located turns whatever stopped a compilation into an Error with a place.
// What has no place is said of the beginning.
func located(source string, err error) *Error {
	var own *mistake
	var theirs *file.Error
	switch {
	case errors.As(err, &own):
		return errorAt(source, own.at.From, own.message)
	case errors.As(err, &theirs):
		return errorAt(source, theirs.From, theirs.Message)
	default:
		return errorAt(source, 0, err.Error())
	}
}

// errorAt makes an Error of an offset in Unicode scalar values.
func errorAt(source string, offset int, message string) *Error {
	runes := []rune(source)
	before := string(runes[:min(offset, len(runes))])
	start := strings.LastIndexByte(before, '\n') + 1
	text, _, _ := strings.Cut(source[min(start, len(source)):], "\n")
	return &Error{
		Line:    strings.Count(before, "\n") + 1,
		Column:  len([]rune(before[start:])) + 1,
		Message: message,
		Text:    text,
	}
}

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
)

// noTemp says what to do where no temporary file can be made.
func noTemp(err error) error {
	return fmt.Errorf("%w; set TMPDIR to a directory that can be written to", err)
}

// unwrapPath drops the path of a path error, which the message already has.
func unwrapPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// confirm shows what will be removed and asks for consent. Without a terminal it is a usage error; "no" is [exitNo].
func (a *app) confirm(verb, participle string, count int, what string, show func()) error {
	nobody := usagef("there is nobody to ask whether %s may be %s; give --yes, or look first with --dry-run", what, participle)
	if !a.answers && !isTerminal(a.in) {
		return nobody
	}
	show()
	// Results are printed at the end; a question is not a result.
	reportf(a.err, "%s\n%s %s for good? [y/N] ", a.out.String(), strings.ToUpper(verb[:1])+verb[1:], words.Plural(count, "it", what))
	a.discard()
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && line == "" {
		reportf(a.err, "\n")
		return nobody // a device such as the null device
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return refused(fmt.Errorf("nothing was %s", participle))
	}
	return nil
}

const maxCell = 160 // bounds what a table shows of one text

const ruleWidth = 78

// print prints a result as JSON for programs, or as text for people.
func (a *app) print(v any, text func()) error {
	if a.JSON {
		return a.printJSON(v)
	}
	text()
	return nil
}

// answer prints a result, and ends the command with "no" unless it is ok.
func (a *app) answer(ok bool, v any, text func()) error {
	if err := a.print(v, text); err != nil || ok {
		return err
	}
	return answerNo()
}

func (a *app) printJSON(v any) error {
	data, err := encodeJSON(v)
	if err != nil {
		return unable(fmt.Errorf("the result cannot be written as JSON: %w", err))
	}
	a.out.Write(data)
	return nil
}

// encodeJSON returns indented JSON without HTML escapes, which would turn every tag in a prompt into six characters.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return escapeJSON(b.Bytes()), err
}

// escapeJSON escapes characters that terminals obey and encoding/json does not escape, and invalid UTF-8.
func escapeJSON(data []byte) []byte {
	if utf8.Valid(data) && !bytes.ContainsFunc(data, obeyed) {
		return data
	}
	out := make([]byte, 0, len(data)+64)
	for _, r := range string(data) {
		if obeyed(r) {
			out = fmt.Appendf(out, `\u%04x`, r) // all are below U+FFFF
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// obeyed reports whether a terminal may act on a character or reorder others by it: control characters from DEL on,
// bidirectional controls, and the line breaks that only some readers know.
func obeyed(r rune) bool {
	return r >= 0x7f && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

func (a *app) printf(format string, args ...any) { fmt.Fprintf(&a.out, format, args...) }

func (a *app) println(words ...any) { fmt.Fprintln(&a.out, words...) }

// reportf writes to standard error, without characters that a terminal obeys.
func reportf(w io.Writer, format string, args ...any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = printable(arg)
		case error:
			args[i] = printable(arg.Error())
		}
	}
	_, _ = fmt.Fprintf(w, format, args...)
}

func rule(label string) string {
	line := "── " + label + " "
	return line + strings.Repeat("─", max(2, ruleWidth-text.Chars(line))) + "\n"
}

// spaced is foreign texts in one line, without empty ones.
func spaced(list ...string) string {
	return clean(strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), "  "))
}

// clean makes foreign text safe for one line.
func clean(s string) string { return text.Sanitize(s, maxCell) }

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || obeyed(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

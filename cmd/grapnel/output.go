package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text"
)

// maxCell bounds what a table shows of one text.
const maxCell = 160

// ruleWidth is how wide a labelled rule is.
const ruleWidth = 78

// printJSON prints a result for programs.
func (a *app) printJSON(v any) error {
	data, err := encodeJSON(v)
	if err != nil {
		return unable(fmt.Errorf("the result cannot be written as JSON: %w", err))
	}
	a.out.Write(data)
	return nil
}

// encodeJSON is JSON that can be read by people too: indented, and without HTML's
// escapes, which turn every tag in a prompt into six characters. What a terminal obeys
// is escaped, wherever the JSON goes: the value is the same.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return escapeJSON(b.Bytes()), err
}

// escapeJSON escapes in JSON what a terminal obeys and an encoder leaves as it is, bytes
// that are not UTF-8 included. All of it stands in texts.
func escapeJSON(data []byte) []byte {
	if utf8.Valid(data) && !bytes.ContainsFunc(data, obeyed) {
		return data
	}
	out := make([]byte, 0, len(data)+64)
	for _, r := range string(data) {
		if obeyed(r) {
			out = fmt.Appendf(out, `\u%04x`, r) // none is beyond U+FFFF
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// obeyed reports whether a terminal may act on a character of a printed text, or show the
// others in another order: controls but those below the blank, of which JSON has none and
// text has lines and tabulators; what reorders; and breaks that only some readers know.
func obeyed(r rune) bool {
	return r >= 0x7f && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// printf and println print lines for people.
func (a *app) printf(format string, args ...any) { fmt.Fprintf(&a.out, format, args...) }

// println is fmt.Println to the result.
func (a *app) println(words ...any) { fmt.Fprintln(&a.out, words...) }

// tellf writes to standard error, texts without what a terminal obeys. When that fails
// there is nobody left to tell.
func tellf(w io.Writer, format string, args ...any) {
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

// rule is a line with a label.
func rule(label string) string {
	line := "── " + label + " "
	return line + strings.Repeat("─", max(2, ruleWidth-text.Chars(line))) + "\n"
}

// clean makes a text of somebody else's fit for one line.
func clean(s string) string { return text.Sanitize(s, maxCell) }

// printable replaces what a terminal obeys, but for lines and tabulators.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || obeyed(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// table is rows in aligned columns. text/tabwriter cannot align some columns to
// the right and some to the left.
type table struct {
	// title stands above; the number of rows is added to it.
	title  string
	header []string
	rows   [][]string
}

// newTable begins a table. A column whose header begins with ">" is aligned to
// the right.
func newTable(title string, header ...string) *table {
	return &table{title: title, header: header}
}

// add appends a row of one cell for each column.
func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = cell(c)
	}
	t.rows = append(t.rows, row)
}

// cell is one value in a table: what is empty shows as a dash, so that columns
// can be counted. Texts of plugins are cleaned here, once for all tables.
func cell(v any) string {
	var s string
	switch v := v.(type) {
	case float64:
		s = millis(v)
	default:
		s = clean(fmt.Sprint(v))
	}
	if s == "" {
		return "-"
	}
	return s
}

// millis is a number of milliseconds, as exact as is of use.
func millis(ms float64) string {
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

// clock is a time as tables show it, in UTC.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// printTable prints a table, and nothing if it has no rows. Without a header it
// is rows alone.
func (a *app) printTable(t *table) {
	if len(t.rows) == 0 {
		return
	}
	if t.title != "" {
		a.printf("\n%s (%d)\n", t.title, len(t.rows))
	}
	columns := len(t.rows[0])
	widths, right := make([]int, columns), make([]bool, columns)
	lines := t.rows
	if len(t.header) > 0 {
		header := make([]string, columns)
		for i, h := range t.header {
			header[i], right[i] = strings.CutPrefix(h, ">")
		}
		lines = append([][]string{header}, t.rows...)
	}
	for _, row := range lines {
		for i, c := range row {
			widths[i] = max(widths[i], text.Chars(c))
		}
	}
	for _, row := range lines {
		a.println(aligned(row, widths, right))
	}
}

// aligned is one row of a table.
func aligned(row []string, widths []int, right []bool) string {
	var line strings.Builder
	for i, c := range row {
		pad := strings.Repeat(" ", widths[i]-text.Chars(c))
		if right[i] {
			line.WriteString("  " + pad + c)
		} else {
			line.WriteString("  " + c + pad)
		}
	}
	return strings.TrimRight(line.String(), " ")
}

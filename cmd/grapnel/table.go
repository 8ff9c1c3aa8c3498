package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
)

// table is rows in aligned columns. text/tabwriter cannot align some columns to the right and some to the left.
type table struct {
	title           string   // stands above; the number of rows is added to it
	header          []string // column names; empty prints no headings
	right, optional []bool
	rows            [][]string
	styles          [][]style // of the cells of the rows
}

// newTable takes columns separated by "|": ">" aligns one to the right, "?" omits it if no row has it.
func newTable(title, columns string) *table {
	t := &table{title: title}
	if columns == "" {
		return t
	}
	for name := range strings.SplitSeq(columns, "|") {
		name, optional := strings.CutPrefix(name, "?")
		name, right := strings.CutPrefix(name, ">")
		t.header, t.right, t.optional = append(t.header, name), append(t.right, right), append(t.optional, optional)
	}
	return t
}

type cells = []any

func printList[T any](a *app, title, columns string, list []T, row func(*T) cells) {
	t := newTable(title, columns)
	for i := range list {
		t.add(row(&list[i])...)
	}
	a.printTable(t)
}

func (t *table) add(cells ...any) {
	row, styles := make([]string, len(cells)), make([]style, len(cells))
	for i, c := range cells {
		row[i] = cell(c)
		if s, ok := c.(styled); ok && row[i] != emptyCell {
			styles[i] = s.style
		}
	}
	t.rows, t.styles = append(t.rows, row), append(t.styles, styles)
}

// addSome adds a name with its value, unless that is empty.
func (t *table) addSome(name, value string) {
	if value != "" {
		t.add(name, value)
	}
}

const emptyCell = "-"

// uncut is a text that is shown in full, in several lines if it is in the last column.
type uncut string

func cell(v any) string {
	switch v := v.(type) {
	case float64:
		return words.Millis(v)
	case uncut:
		return cmp.Or(text.Sanitize(string(v), math.MaxInt), emptyCell)
	}
	return cmp.Or(clean(fmt.Sprint(v)), emptyCell)
}

// printFields prints names and values, one pair a line.
func (a *app) printFields(pairs ...any) {
	t := newTable("", "")
	for pair := range slices.Chunk(pairs, 2) {
		t.add(pair...)
	}
	a.printTable(t)
}

// printMore says how many rows a table does not show.
func (a *app) printMore(n int) {
	if n > 0 {
		a.printf("  and %s more\n", text.Thousands(n))
	}
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func (a *app) printTable(t *table) {
	if len(t.rows) == 0 {
		return
	}
	if t.title != "" {
		a.heading(fmt.Sprintf("\n%s (%d)", t.title, len(t.rows)))
	}
	lines, styles := t.rows, t.styles
	if t.header != nil {
		lines = append([][]string{t.header}, t.rows...)
		styles = append([][]style{make([]style, len(t.header))}, t.styles...)
	}
	widths := widthsOf(lines)
	omitted := make([]bool, len(widths))
	for i, optional := range t.optional {
		omitted[i] = optional && !slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != emptyCell })
	}
	for n, row := range lines {
		blanks, at := "", 0 // blanks are written when a word follows them
		for i, c := range row {
			if omitted[i] {
				continue
			}
			word, before, after := strings.TrimRight(c, " "), "  ", strings.Repeat(" ", widths[i]-text.Chars(c))
			if t.header != nil && t.right[i] {
				before, after = before+after, ""
			}
			blanks += before
			at += len("  ")
			if i == len(row)-1 && t.header != nil && !t.right[i] {
				word = folded(word, maxCell, "\n"+strings.Repeat(" ", at))
			}
			at += widths[i]
			if word != "" {
				a.out.WriteString(blanks)
				a.paint(styles[n][i], word)
				blanks = ""
			}
			blanks += strings.Repeat(" ", len(c)-len(strings.TrimRight(c, " "))) + after
		}
		a.println()
	}
}

// folded puts breaks between words where lines would have more characters than width.
func folded(s string, width int, lineBreak string) string {
	if text.Chars(s) <= width {
		return s
	}
	var b strings.Builder
	used := 0
	for word := range strings.SplitSeq(s, " ") {
		n := text.Chars(word)
		switch {
		case used > 0 && used+1+n > width:
			b.WriteString(lineBreak)
			used = 0
		case b.Len() > 0:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String()
}

func widthsOf(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], text.Chars(c))
		}
	}
	return widths
}

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/text"
)

// table is rows in aligned columns. text/tabwriter cannot align some columns to the right and some to the left.
type table struct {
	title           string   // stands above; the number of rows is added to it
	header          []string // column names; empty prints no headings
	right, optional []bool
	rows            [][]string
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
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = cell(c)
	}
	t.rows = append(t.rows, row)
}

// addSome adds a name with its value, unless that is empty.
func (t *table) addSome(name, value string) {
	if value != "" {
		t.add(name, value)
	}
}

const emptyCell = "-"

func cell(v any) string {
	if ms, ok := v.(float64); ok {
		return millis(ms)
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

func count(n int, one, many string) string { return text.Thousands(n) + " " + plural(n, one, many) }

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func textIf(condition bool, s string) string {
	if condition {
		return s
	}
	return ""
}

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

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func (a *app) printTable(t *table) {
	if len(t.rows) == 0 {
		return
	}
	if t.title != "" {
		a.printf("\n%s (%d)\n", t.title, len(t.rows))
	}
	lines := t.rows
	if t.header != nil {
		lines = append([][]string{t.header}, t.rows...)
	}
	widths := widthsOf(lines)
	omitted := make([]bool, len(widths))
	for i, optional := range t.optional {
		omitted[i] = optional && !slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != emptyCell })
	}
	for _, row := range lines {
		var line strings.Builder
		for i, c := range row {
			pad := strings.Repeat(" ", widths[i]-text.Chars(c))
			switch {
			case omitted[i]:
			case t.header != nil && t.right[i]:
				line.WriteString("  " + pad + c)
			default:
				line.WriteString("  " + c + pad)
			}
		}
		a.println(strings.TrimRight(line.String(), " "))
	}
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

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestPrintTable fixes what every table looks like: columns by characters, not
// bytes, and nothing that could move a cursor.
func TestPrintTable(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		table func() *table
		want  string
	}{
		{"no rows, nothing", func() *table { return newTable("title", "a") }, ""},
		{
			"aligned by characters, numbers to the right, empty as a dash",
			func() *table {
				tb := newTable("things", "name|>ms|note")
				tb.add("ä", 1.5, "")
				tb.add("longer", 1234.0, "x")
				return tb
			},
			"\nthings (2)\n  name      ms  note\n  ä       1.50  -\n  longer  1234  x\n",
		},
		{
			"without a header",
			func() *table { tb := newTable("", ""); tb.add("full", "a"); tb.add("x", 7); return tb },
			"  full  a\n  x     7\n",
		},
		{
			"foreign text is one clean line",
			func() *table { tb := newTable("", ""); tb.add("a\x1b[31mred\nline"); return tb },
			"  ared\\u{a}line\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var a app
			a.printTable(tt.table())
			if diff := cmp.Diff(a.out.String(), tt.want); diff != "" {
				t.Errorf("table (-got +want):\n%s", diff)
			}
		})
	}
}

// TestCellsAreBounded keeps one long text from breaking every line of a table.
func TestCellsAreBounded(t *testing.T) {
	t.Parallel()

	if got := len([]rune(cell(strings.Repeat("x", 10*maxCell)))); got != maxCell {
		t.Errorf("got %d characters, want %d", got, maxCell)
	}
}

// TestResult checks that a result reaches a pipe byte for byte, and a terminal
// without orders to it.
func TestResult(t *testing.T) {
	t.Parallel()

	const text = "a\tb\n\x1b[2Jc\u009bd\x07\u202ee\u2028\x9b"
	piped, terminal := &app{}, &app{terminal: true}
	piped.printf("%s", text)
	terminal.printf("%s", text)
	if got := piped.result(); got != text {
		t.Errorf("to a pipe: got %q, want it unchanged", got)
	}
	if got, want := terminal.result(), "a\tb\n\uFFFD[2Jc\uFFFDd\uFFFD\uFFFDe\uFFFD\uFFFD"; got != want {
		t.Errorf("to a terminal: got %q, want %q", got, want)
	}
	var errs strings.Builder
	reportf(&errs, "\x1b[K%s: %v: %d\n", "a\u009b", errors.New("b\u202e"), 1)
	if got, want := errs.String(), "\x1b[Ka\uFFFD: b\uFFFD: 1\n"; got != want {
		t.Errorf("to standard error: got %q, want %q", got, want)
	}
}

// TestJSONHasNoOrders: JSON has no character that a terminal obeys, as it is, and the same
// value.
func TestJSONHasNoOrders(t *testing.T) {
	t.Parallel()

	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		if !obeyed(r) && r%97 != 0 { // all of those, and some of the others
			continue
		}
		want := map[string]any{"a" + string(r): "<b" + string(r) + "c>"}
		data, err := encodeJSON(want)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(data, &got); err != nil || cmp.Diff(got, want) != "" {
			t.Errorf("%U: %s is %v, %v", r, data, got, err)
		}
		if bytes.ContainsFunc(data, func(r rune) bool { return obeyed(r) || r < ' ' && r != '\n' }) {
			t.Errorf("%U: %q", r, data)
		}
	}
	raw := json.RawMessage("{\"a\":\"\u009b\\ud800\\u202e\x9b\"}")
	data, err := encodeJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), "{\n  \"a\": \"\\u009b\\ud800\\u202e\uFFFD\"\n}\n"); diff != "" {
		t.Errorf("raw JSON (-got +want):\n%s", diff)
	}
}

// TestHelpTexts: each section of the help is about a command, and each has a description or an example.
func TestHelpTexts(t *testing.T) {
	t.Parallel()

	root := (&app{}).root()
	for section := range strings.SplitSeq(strings.TrimPrefix(helpTexts, "== "), "\n== ") {
		name, _, _ := strings.Cut(section, "\n")
		c, _, err := root.Find(strings.Fields(name))
		if err != nil || c.CommandPath() != "grapnel "+name || c.Long == "" && c.Example == "" || strings.Contains(c.Long, "Examples:") {
			t.Errorf("%q: %v, %q, %q", name, err, c.Long, c.Example)
		}
	}
	if root.Long != "" {
		t.Errorf("the help of all commands: %q", root.Long)
	}
}

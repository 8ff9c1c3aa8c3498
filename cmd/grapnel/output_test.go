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

	"github.com/grapnelhq/grapnel/manifest"
)

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
		data := must(encodeJSON(want))(t)
		var got map[string]any
		if err := json.Unmarshal(data, &got); err != nil || cmp.Diff(got, want) != "" {
			t.Errorf("%U: %s is %v, %v", r, data, got, err)
		}
		if bytes.ContainsFunc(data, func(r rune) bool { return obeyed(r) || r < ' ' && r != '\n' }) {
			t.Errorf("%U: %q", r, data)
		}
	}
	raw := json.RawMessage("{\"a\":\"\u009b\\ud800\\u202e\x9b\"}")
	data := must(encodeJSON(raw))(t)
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

// TestPrintRequests: each change has a row, and so has a request without any.
func TestPrintRequests(t *testing.T) {
	t.Parallel()

	a := &app{}
	a.printRequests(nil)
	a.printRequests([]manifest.Request{
		{ManifestID: "01A", Changes: []manifest.RequestChange{{Kind: manifest.RequestPlacement, ID: "rules", Manifest: "system_message", Sent: "system"}}, Omitted: 1200},
		{ManifestID: "01B"},
	})
	want := "\nrequests (3)\n" +
		"  prompt  change      what   in the record   sent\n" +
		"  01A     placement   rules  system_message  system\n" +
		"  01A     1,200 more  -      -               -\n" +
		"  01B     none        -      -               -\n"
	if diff := cmp.Diff(a.out.String(), want); diff != "" {
		t.Errorf("requests (-got +want):\n%s", diff)
	}
}

// TestCellsAreBounded: a table shows only the beginning of a long text.
func TestCellsAreBounded(t *testing.T) {
	t.Parallel()

	if got := utf8.RuneCountInString(cell(strings.Repeat("x", 1<<20))); got != 160 {
		t.Errorf("%d characters are shown", got)
	}
}

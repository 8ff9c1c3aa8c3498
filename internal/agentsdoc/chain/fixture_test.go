package chain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// fixture is a tree with options, and what comes out of it, as an archive.
//
// The archive's comment says what it pins. Lines of the form "key: value" in it
// set something:
//
//	preset: NAME       the options to begin with; default
//	options: JSON      laid over them; BASE stands for the tree's directory
//	dir: PATH          the working directory in the tree
//	bytes: N, chars: N the budget; without bytes, the total of the options
//	quoted: PATH       the file's content is a Go string, for bytes of any kind
//	fill: PATH N       a file of N bytes, in lines
//	fifo: PATH         a fifo
//
// Files below tree/ are the tree; one whose content begins with "-> " is a
// link. Files below want/ are compared: sources, diagnostics, text, message and
// report.json, as far as they are there.
type fixture struct {
	preset        Preset
	options       string
	dir           string
	tree          files
	fifos         []string
	budget        Budget
	budgetIsTotal bool
}

// readFixture understands an archive.
func readFixture(t *testing.T, archive *txtar.Archive) *fixture {
	t.Helper()
	f := &fixture{preset: PresetDefault, tree: files{}, budget: Budget{plenty, plenty}, budgetIsTotal: true}
	for _, file := range archive.Files {
		name, ok := strings.CutPrefix(file.Name, "tree/")
		if !ok {
			continue
		}
		text := string(file.Data)
		if strings.HasPrefix(text, "-> ") {
			text = strings.TrimSuffix(text, "\n")
		}
		f.tree[name] = text
	}
	for line := range strings.Lines(string(archive.Comment)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			if err := f.set(key, value); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
		}
	}
	return f
}

// set follows one line of the comment. Other lines are prose.
func (f *fixture) set(key, value string) (err error) {
	path, rest, _ := strings.Cut(value, " ")
	switch key {
	case "preset":
		f.preset = Preset(value)
	case "options":
		f.options = value
	case "dir":
		f.dir = value
	case "bytes":
		f.budgetIsTotal = false
		f.budget.Bytes, err = strconv.Atoi(value)
	case "chars":
		f.budget.Chars, err = strconv.Atoi(value)
	case "quoted":
		f.tree[path], err = strconv.Unquote(strings.TrimSpace(f.tree[path]))
	case "fill":
		n, convErr := strconv.Atoi(rest)
		f.tree[path], err = filler(n), convErr
	case "fifo":
		f.fifos = append(f.fifos, path)
	}
	return err
}

// filler is a text of n bytes, in lines of a fixed length.
func filler(n int) string {
	var out strings.Builder
	for i := 0; out.Len() < n; i++ {
		fmt.Fprintf(&out, "line %04d of a file that is here for its length only\n", i)
	}
	return out.String()[:n]
}

// build makes the tree and returns its directory.
func (f *fixture) build(t *testing.T) string {
	t.Helper()
	base := build(t, f.tree)
	for _, path := range f.fifos {
		if err := mkfifo(filepath.Join(base, path)); err != nil {
			t.Skipf("no fifos here: %v", err)
		}
	}
	return base
}

// run resolves and renders, and returns what may be wanted.
func (f *fixture) run(t *testing.T) map[string]string {
	t.Helper()
	base := f.build(t)
	o, err := ForPreset(f.preset, Places{})
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(strings.ReplaceAll(cmp.Or(f.options, "{}"), "BASE", base)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		t.Fatal(err)
	}
	c := Resolve(OS{}, filepath.Join(base, f.dir), o)
	if f.budgetIsTotal {
		f.budget.Bytes = o.Budget.Total
	}
	r := Render(c, f.budget)
	report := NewReport(c, r)
	for i := range report.Sources {
		report.Sources[i].MTimeMs = 0
	}
	out := map[string]string{
		"want/text": ended(r.Text), "want/message": ended(report.Message), "want/report.json": printJSON(t, report),
		"want/sources": printSources(r.Sources), "want/diagnostics": printRows(report.Diagnostics),
	}
	for name, text := range out {
		out[name] = strings.ReplaceAll(text, base, "BASE")
	}
	return out
}

// ended is a text for an archive, in which each file ends in a newline.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n(no newline at the end)\n"
}

// printSources prints a line a source.
func printSources(list []Source) string {
	var out strings.Builder
	for _, s := range list {
		fmt.Fprintf(&out, "%s %s %s %d/%d", s.State, s.Scope, textQuoted(s.Display), s.Kept, s.Bytes)
		if s.DeliveredBytes > 0 {
			fmt.Fprintf(&out, " as %d", s.DeliveredBytes)
		}
		if s.Reason != "" {
			fmt.Fprintf(&out, " (%s)", s.Reason)
		}
		if s.DuplicateOf != "" {
			fmt.Fprintf(&out, " = %s", textQuoted(s.DuplicateOf))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// printRows prints a line a diagnostic.
func printRows(rows []Diagnostic) string {
	var out strings.Builder
	for _, d := range rows {
		fmt.Fprintf(&out, "%s %s %s: %s\n", d.Severity, d.Code, textQuoted(d.Path), d.Detail)
	}
	return out.String()
}

// textQuoted quotes a path that would not be one word of a line.
func textQuoted(path string) string {
	if strings.ContainsAny(path, " \n\"\\") {
		return strconv.Quote(path)
	}
	return path
}

// printJSON is a report as the command line prints it.
func printJSON(t *testing.T, report Report) string {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(report); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

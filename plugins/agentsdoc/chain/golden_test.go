package chain

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what is got into testdata/*.txtar")

// golden is one fixture. Its header says what it pins, and then, one a line,
// what it sets: "dir: a/b", "bytes: N", "chars: N", "global: FOLDER", "lazy:
// true". Files under tree/ are the tree. In the wanted report, BASE stands for
// its folder, and times are 0.
type golden struct {
	tree   files
	dir    string
	opts   Options
	budget Budget
}

// readGolden understands a fixture.
func readGolden(t *testing.T, archive *txtar.Archive) golden {
	t.Helper()
	g := golden{tree: files{}, budget: Budget{plenty, plenty}}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for line := range strings.Lines(string(archive.Comment)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "dir":
			g.dir = value
		case "bytes":
			g.budget.Bytes = number(value)
		case "chars":
			g.budget.Chars = number(value)
		case "global":
			g.opts.GlobalDir = "BASE/" + value
		case "lazy":
			g.opts.Lazy = value == "true"
		}
	}
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "tree/"); ok {
			g.tree[name] = strings.TrimSuffix(string(f.Data), "\n")
		}
	}
	return g
}

// run resolves and renders the fixture's tree.
func (g golden) run(t *testing.T) (text string, report []byte) {
	t.Helper()
	base := build(t, g.tree)
	c := Resolve(OS{}, filepath.Join(base, g.dir), inBase(g.opts, base))
	r := Render(c, g.budget)
	all := NewReport(c, r, "(frame)")
	for i := range all.Sources {
		all.Sources[i].MTimeMs = 0
	}
	all.Text = fmt.Sprintf("(%d bytes, as above)", len(r.Text))
	report, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return r.Text, append(bytes.ReplaceAll(report, []byte(base), []byte("BASE")), '\n')
}

func TestGolden(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text, report := readGolden(t, archive).run(t)
			compareGolden(t, name, archive, map[string][]byte{"want/text": []byte(text), "want/report.json": report})
		})
	}
}

// compareGolden compares, or writes.
func compareGolden(t *testing.T, name string, archive *txtar.Archive, got map[string][]byte) {
	t.Helper()
	found := 0
	for i, f := range archive.Files {
		data, ok := got[f.Name]
		if !ok {
			continue
		}
		found++
		if diff := cmp.Diff(string(data), string(f.Data)); diff != "" && !*update {
			t.Errorf("%s (-got +want)\n%s", f.Name, diff)
		}
		archive.Files[i].Data = data
	}
	if found != len(got) {
		t.Fatal("the fixture lacks want/text or want/report.json")
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

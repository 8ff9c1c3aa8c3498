package lint

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
)

// files describes a tree: the text of each file by its slash-separated path. A
// text that begins with "-> " makes a symbolic link, where BASE is the tree's
// folder; a path that ends in a slash a folder.
type files map[string]string

// build makes the tree in a new folder and returns its real path.
func build(tb testing.TB, tree files) string {
	tb.Helper()
	base, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	for name, text := range tree {
		path := filepath.Join(base, filepath.FromSlash(name))
		target, isLink := strings.CutPrefix(text, "-> ")
		switch {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o700)
		case isLink:
			if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
				err = os.Symlink(strings.ReplaceAll(target, "BASE", base), path)
			}
		default:
			write(tb, path, text)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	return base
}

// write writes a file of a test.
func write(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// writeIndex writes git's index of some files.
func writeIndex(tb testing.TB, path string, names ...string) {
	tb.Helper()
	idx := &index.Index{Version: 2}
	for _, name := range slices.Sorted(slices.Values(names)) {
		idx.Entries = append(idx.Entries, &index.Entry{Name: name})
	}
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := index.NewEncoder(f).Encode(idx); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
}

// mustRun runs lint on a tree.
func mustRun(tb testing.TB, dir string, o Options) Report {
	tb.Helper()
	r, err := Run(context.Background(), dir, o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// outline is what a report says, a line each, with paths below base.
func outline(r *Report, base string) []string {
	lines := []string{fmt.Sprintf("%d files, %d folders, %d over", r.Files, r.Folders, r.ChainsOverBudget)}
	for _, d := range r.Problems {
		path, _ := strings.CutPrefix(filepath.ToSlash(strings.TrimPrefix(d.Path, base)), "/")
		lines = append(lines, fmt.Sprintf("%s %s %s", d.Severity, d.Code, path))
	}
	return lines
}

// noGlobals are the default options without the user's own files.
func noGlobals(change func(o *chain.Options)) Options {
	o := chain.Default()
	if change != nil {
		change(&o)
	}
	return Options{Chain: o}
}

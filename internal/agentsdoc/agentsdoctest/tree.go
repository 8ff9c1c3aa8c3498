package agentsdoctest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Tree describes files: the text of each by its slash-separated path. A text that begins with "-> " makes a symbolic
// link, where BASE is the tree's directory; a path that ends in a slash makes a directory.
type Tree map[string]string

// Build makes a tree in a new directory and returns its real path.
func Build(tb testing.TB, tree Tree) string {
	tb.Helper()
	base, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	for name, text := range tree {
		Put(tb, base, name, text)
	}
	return base
}

// Put makes one entry of a tree, and the directories above it.
func Put(tb testing.TB, base, name, text string) {
	tb.Helper()
	path, isDir := filepath.Join(base, filepath.FromSlash(name)), strings.HasSuffix(name, "/")
	directory := filepath.Dir(path)
	if isDir {
		directory = path
	}
	err := os.MkdirAll(directory, 0o755) //nolint:gosec // another user must read it
	if target, isLink := strings.CutPrefix(text, "-> "); err == nil && isLink {
		err = os.Symlink(strings.ReplaceAll(strings.TrimSpace(target), "BASE", base), path)
	} else if err == nil && !isDir {
		err = os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // another user must read it
	}
	if err != nil {
		tb.Fatal(err)
	}
}

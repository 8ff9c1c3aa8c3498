// Package docstest keeps the documents true: README.md and docs/*.md.
//
// Go programs in them are built and run, configurations parsed and planned,
// names looked up in the sources, links followed, and command lines tried
// against the command itself. The package has tests only; each file is one of
// these subjects. Start at [blocks].
package docstest

import (
	"cmp"
	"context"
	"go/build"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// workDir holds what the tests build; TestMain removes it.
var workDir string

func TestMain(m *testing.M) {
	var err error
	if workDir, err = os.MkdirTemp("", "docstest"); err != nil {
		panic(err)
	}
	// What configurations in the documents open is not the machine's own; Go's caches are.
	cache, err := os.UserCacheDir()
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{
		"GOCACHE": cmp.Or(os.Getenv("GOCACHE"), filepath.Join(cache, "go-build")), "GOPATH": build.Default.GOPATH,
		"HOME": filepath.Join(workDir, "own"), "XDG_DATA_HOME": filepath.Join(workDir, "own", "data"),
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if err := os.RemoveAll(workDir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// document is one file of Markdown.
type document struct {
	// name is slash-separated, below the repository's root.
	name string
	text string
}

// block is one fenced block of a document.
type block struct {
	doc  string
	line int
	// lang is what stands behind the fence: a language, and for JSON in docs/CLI.md the
	// name of its schema.
	lang string
	text string
}

// root is the repository's root: tests run in their package's folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// documents reads all documents for users.
func documents(t *testing.T) []document {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root(t), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var docs []document
	for _, name := range append([]string{filepath.Join(root(t), "README.md"), filepath.Join(root(t), "CONTRIBUTING.md")}, names...) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(root(t), name)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, document{filepath.ToSlash(rel), string(data)})
	}
	if len(docs) < 8 {
		t.Fatalf("found %d documents: the search does not work", len(docs))
	}
	return docs
}

// text returns the text of one document.
func text(t *testing.T, name string) string {
	t.Helper()
	for _, d := range documents(t) {
		if d.name == name {
			return d.text
		}
	}
	t.Fatalf("there is no document %s", name)
	return ""
}

// blocks lists the fenced blocks of a document.
func blocks(d document) []block {
	var out []block
	var open *block
	number := 0
	for line := range strings.Lines(d.text) {
		number++
		lang, fence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case fence && open == nil:
			open = &block{doc: d.name, line: number + 1, lang: lang}
		case fence:
			out = append(out, *open)
			open = nil
		case open != nil:
			open.text += line
		}
	}
	return out
}

// blocksOf lists the blocks of a language in all documents.
func blocksOf(t *testing.T, lang string) []block {
	t.Helper()
	var out []block
	for _, d := range documents(t) {
		for _, b := range blocks(d) {
			if word, _, _ := strings.Cut(b.lang, " "); word == lang {
				out = append(out, b)
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("no block of %s in any document", lang)
	}
	return out
}

// prose is a document without its fenced blocks; their lines are left empty.
func prose(d document) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(d.text) {
		if strings.HasPrefix(line, "```") {
			inside = !inside
		} else if !inside {
			b.WriteString(line)
			continue
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// writeFile writes a file of a test, with its folder.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// grapnel builds the command, once for all tests.
var grapnel = sync.OnceValues(func() (string, error) {
	path := filepath.Join(workDir, "grapnel")
	return path, goCommand(context.Background(), filepath.Join("..", "..", ".."), "build", "-o", path, "./cmd/grapnel")
})

package skillset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
	"github.com/grapnelhq/grapnel/sdk"
)

var build, write = agentsdoctest.Build, agentsdoctest.Put

type files = agentsdoctest.Tree

// skillText is a SKILL.md with a body.
func skillText(name, body string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: About %s.\n---\n%s\n", name, name, body)
}

// project are the options of most tests.
func project(directories ...string) Options {
	if directories == nil {
		directories = []string{".agents/skills"}
	}
	return Options{Directories: directories, Markers: []string{".git"}}
}

// slugs are those of a set.
func slugs(s *Set) []string {
	var out []string
	for i := range s.Skills {
		out = append(out, s.Skills[i].Slug)
	}
	return out
}

// told are the diagnostics as "code path: detail", with BASE for the tree's
// directory.
func told(s *Set, base string) []string {
	var out []string
	for _, d := range s.Diagnostics {
		out = append(out, strings.ReplaceAll(fmt.Sprintf("%s %s: %s", d.Code, sdk.PlainName(d.Path), d.Detail), base, "BASE"))
	}
	return out
}

// codes are the codes of the diagnostics.
func codes(s *Set) []Code {
	var out []Code
	for _, d := range s.Diagnostics {
		out = append(out, d.Code)
	}
	return out
}

// returns fails the test if a call blocks.
func returns[T any](t *testing.T, call func() T) T {
	t.Helper()
	done := make(chan T, 1)
	go func() { done <- call() }()
	select {
	case got := <-done:
		return got
	case <-time.After(time.Minute):
		t.Fatal("it blocks")
		panic("unreachable")
	}
}

// age makes all files of a tree old, so that a set of it is settled.
func age(tb testing.TB, base string) {
	tb.Helper()
	old := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(base, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeSymlink != 0 {
			return err
		}
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// sortedCodes are the codes, each once.
func sortedCodes(s *Set) []Code {
	list := codes(s)
	slices.Sort(list)
	return slices.Compact(list)
}

package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

// traced resolves the chain of a directory and returns what was looked at for it.
func traced(tb testing.TB, dir string) Seen {
	tb.Helper()
	trace := NewTrace(fsview.OS{})
	found := chain.Resolve(trace, dir, chain.Options{})
	if !found.RootFound {
		return trace.Seen()
	}
	return trace.Seen().Below(found.Root, found.Options.Markers)
}

// changes are edits of a tree that the chain of its directory r/a/b may be another
// after, and some that it cannot.
var changes = []struct {
	name  string
	do    func(tb testing.TB, base string)
	quiet bool
}{
	{name: "edit", do: func(tb testing.TB, base string) { write(tb, base+"/r/AGENTS.md", "another text") }},
	{name: "new file", do: func(tb testing.TB, base string) { write(tb, base+"/r/a/b/AGENTS.md", "new") }},
	{name: "new override", do: func(tb testing.TB, base string) { write(tb, base+"/r/AGENTS.override.md", "new") }},
	{name: "new local file", do: func(tb testing.TB, base string) { write(tb, base+"/r/a/AGENTS.local.md", "new") }},
	{name: "near miss", do: func(tb testing.TB, base string) { write(tb, base+"/r/a/agents.md", "new") }},
	{name: "removed file", do: func(tb testing.TB, base string) { must(tb, os.Remove(base+"/r/AGENTS.md")) }},
	{name: "renamed file", do: func(tb testing.TB, base string) { must(tb, os.Rename(base+"/r/AGENTS.md", base+"/r/old.md")) }},
	{name: "replaced by another", do: func(tb testing.TB, base string) {
		write(tb, base+"/r/tmp", "be brief")
		must(tb, os.Rename(base+"/r/tmp", base+"/r/AGENTS.md"))
	}},
	{name: "touched", do: func(tb testing.TB, base string) {
		must(tb, os.Chtimes(base+"/r/AGENTS.md", time.Time{}, time.Unix(1_000_000_000, 0)))
	}},
	{name: "new marker", do: func(tb testing.TB, base string) { must(tb, os.Mkdir(base+"/r/a/.git", 0o755)) }},
	{name: "removed marker", do: func(tb testing.TB, base string) { must(tb, os.RemoveAll(base+"/r/.git")) }},
	{name: "target of a link", do: func(tb testing.TB, base string) { write(tb, base+"/r/docs/RULES.md", "another text") }},
	{name: "link to another file", do: func(tb testing.TB, base string) {
		must(tb, os.Remove(base+"/r/a/AGENTS.md"))
		must(tb, os.Symlink("../AGENTS.md", base+"/r/a/AGENTS.md"))
	}},
	{name: "link in between", do: func(tb testing.TB, base string) {
		must(tb, os.Remove(base+"/r/way"))
		must(tb, os.Symlink("other", base+"/r/way"))
	}},
	{name: "end of a link that led nowhere", do: func(tb testing.TB, base string) { write(tb, base+"/r/later/RULES.md", "now") }},
	{name: "directory swapped for a link", do: func(tb testing.TB, base string) {
		must(tb, os.Rename(base+"/r/a", base+"/elsewhere"))
		must(tb, os.Symlink(base+"/elsewhere", base+"/r/a"))
	}},
	{name: "directory of the way removed", do: func(tb testing.TB, base string) { must(tb, os.RemoveAll(base+"/r/a")) }},
	{name: "another file", do: func(tb testing.TB, base string) { write(tb, base+"/r/README.md", "new") }, quiet: true},
	{name: "another directory", do: func(tb testing.TB, base string) { write(tb, base+"/r/c/AGENTS.md", "new") }, quiet: true},
	{name: "inside of the marker", do: func(tb testing.TB, base string) { write(tb, base+"/r/.git/index", "new") }, quiet: true},
	{name: "above the root", do: func(tb testing.TB, base string) { write(tb, base+"/AGENTS.md", "new") }, quiet: true},
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// tree is the tree that changes are made to.
func tree(tb testing.TB) (base, dir string) {
	tb.Helper()
	base = build(tb, map[string]string{"r/.git/HEAD": "", "r/AGENTS.md": "be brief", "r/docs/RULES.md": "linked", "r/a/b/x.go": ""})
	must(tb, os.Symlink("../docs/RULES.md", base+"/r/a/AGENTS.md"))
	must(tb, os.Symlink("../../way/RULES.md", base+"/r/a/b/AGENTS.local.md"))
	must(tb, os.Symlink("docs", base+"/r/way"))
	must(tb, os.Symlink("../../later/RULES.md", base+"/r/a/b/AGENTS.override.md"))
	return base, filepath.Join(base, "r/a/b")
}

func TestBelow(t *testing.T) {
	t.Parallel()
	seen := Seen{
		"/":       {"w": {}, ".git": {absent: true}},
		"/w":      {"r": {}, ".git": {absent: true}, "AGENTS.md": {}},
		"/w/r":    {".git": {}, "a": {}},
		"/w/rest": {"x": {}},
		"/w/r/a":  {".git": {absent: true}},
	}
	got := seen.Below("/w/r", []string{".git"})
	want := Seen{"/w": {"AGENTS.md": {}}, "/w/r": seen["/w/r"], "/w/r/a": seen["/w/r/a"], "/w/rest": seen["/w/rest"]}
	if diff := cmp.Diff(got, want, cmp.AllowUnexported(stamp{})); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

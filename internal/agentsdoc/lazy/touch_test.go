package lazy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// step is one event of a session.
type step struct {
	change func(tb testing.TB, base string) // before it; may be nil
	epoch  bool                             // a new one begins before it
	touch  []string
	want   string
}

// edited changes a file of the tree.
func edited(name, text string) func(testing.TB, string) {
	return func(tb testing.TB, base string) { put(tb, base, name, text) }
}

func TestTouchRules(t *testing.T) {
	t.Parallel()
	tree := files{".git/": "", "AGENTS.md": "root\n", "a/AGENTS.md": "a\n", "a/b/AGENTS.md": "b\n", "a/b/main.go": "", "c/": ""}
	ab := lines("new body a/AGENTS.md", "new body a/b/AGENTS.md")
	tests := []struct {
		name   string
		tree   files
		dir    string
		change func(o *chain.Options)
		steps  []step
	}{
		{"a file counts by its directory", tree, "", nil, []step{{touch: []string{"a/b/main.go"}, want: ab}}},
		{"a directory counts as itself", tree, "", nil, []step{{touch: []string{"a/b"}, want: ab}}},
		{"a missing path counts by its nearest directory", tree, "", nil, []step{{touch: []string{"a/b/x/y/z.go"}, want: ab}}},
		{"a path below a file counts by the file's directory", tree, "", nil, []step{{touch: []string{"a/b/main.go/x"}, want: ab}}},
		{"what the first prompt had is not delivered", tree, "a", nil, []step{
			{touch: []string{"b/main.go"}, want: lines("new body a/b/AGENTS.md")},
		}},
		{"relative paths are below the working directory", tree, "a", nil, []step{{touch: []string{"../c"}, want: ""}}},
		{"each once", tree, "", nil, []step{
			{touch: []string{"a/b"}, want: ab},
			{touch: []string{"a/b", "a"}, want: ""},
			{touch: []string{"a/b/main.go"}, want: ""},
		}},
		{"several paths are one event", tree, "", nil, []step{{touch: []string{"a", "a/b", "a/b/main.go"}, want: ab}}},
		{"a new file in a covered directory", tree, "", nil, []step{
			{touch: []string{"c"}, want: ""},
			{change: edited("c/AGENTS.md", "c\n"), touch: []string{"c"}, want: lines("new body c/AGENTS.md")},
		}},
		{"a changed file, also of the first prompt", tree, "", nil, []step{
			{touch: []string{"a"}, want: lines("new body a/AGENTS.md")},
			{change: edited("a/AGENTS.md", "b\n"), touch: []string{"a"}, want: lines("updated body a/AGENTS.md")},
			{change: edited("AGENTS.md", "tr00\n"), touch: []string{"c"}, want: lines("updated body AGENTS.md")},
			{touch: []string{"a"}, want: ""},
		}},
		{"a content that comes back replaces the other", tree, "", nil, []step{
			{touch: []string{"a"}, want: lines("new body a/AGENTS.md")},
			{change: edited("a/AGENTS.md", "A\n"), touch: []string{"a"}, want: lines("updated body a/AGENTS.md")},
			{change: edited("a/AGENTS.md", "a\n"), touch: []string{"a"}, want: lines("updated body a/AGENTS.md")},
			{touch: []string{"a"}, want: ""},
		}},
		{"a time alone is no change", tree, "", nil, []step{
			{touch: []string{"a"}, want: lines("new body a/AGENTS.md")},
			{change: age("a/AGENTS.md"), touch: []string{"a"}, want: ""},
		}},
		{"a new epoch delivers again, but for the first prompt", tree, "", nil, []step{
			{touch: []string{"a"}, want: lines("new body a/AGENTS.md")},
			{epoch: true, touch: []string{"a"}, want: lines("new body a/AGENTS.md")},
		}},
		{"a removed file is reported once, wherever the touch is, and its return delivers it", tree, "", nil, []step{
			{touch: []string{"a"}, want: lines("new body a/AGENTS.md")},
			{change: func(tb testing.TB, base string) { remove(tb, base, "a/AGENTS.md") }, touch: []string{"."}, want: lines("removed reminder ", "! removed a/AGENTS.md")},
			{touch: []string{"a"}, want: ""},
			{change: edited("a/AGENTS.md", "a\n"), touch: []string{"a"}, want: lines("updated body a/AGENTS.md")},
			{change: edited("a/AGENTS.md", "\n"), touch: []string{"a"}, want: lines("removed reminder ", "! removed a/AGENTS.md")},
			{change: edited("a/AGENTS.md", "other\n"), touch: []string{"a"}, want: lines("updated body a/AGENTS.md")},
		}},
		{"blank files take no part", tree, "", nil, []step{{change: edited("a/AGENTS.md", " \n\n"), touch: []string{"a"}, want: ""}}},
		{
			"a twin of a directory above was reported", files{".git/": "", "AGENTS.md": "x\n", "a/AGENTS.md": "x\n", "a/b/AGENTS.md": "y\n"}, "", nil, []step{
				{touch: []string{"a/b"}, want: lines("new body a/b/AGENTS.md")},
				{change: edited("AGENTS.md", "z\n"), touch: []string{"a"}, want: lines("updated body AGENTS.md", "new body a/AGENTS.md")},
			},
		},
		{"a twin of a directory beside was not", files{".git/": "", "a/AGENTS.md": "x\n", "b/AGENTS.md": "x\n"}, "", nil, []step{
			{touch: []string{"a"}, want: lines("new body a/AGENTS.md")},
			{touch: []string{"b"}, want: lines("new body b/AGENTS.md")},
		}},
		{"one file under several names is one", files{".git/": "", "AGENTS.md": "x\n", "a/AGENTS.md": "-> ../AGENTS.md", "b/AGENTS.md": "-> ../c/AGENTS.md", "c/AGENTS.md": "c\n"}, "", nil, []step{
			{touch: []string{"a"}, want: ""},
			{touch: []string{"b", "c"}, want: lines("new body b/AGENTS.md")},
			{touch: []string{"c"}, want: ""},
		}},
		{"local files, and a shadowed one", files{".git/": "", "a/AGENTS.md": "x\n", "a/AGENTS.override.md": "o\n", "a/AGENTS.local.md": "l\n"}, "", nil, []step{
			{touch: []string{"a"}, want: lines("new body a/AGENTS.override.md", "new body a/AGENTS.local.md", "! shadowed_by_override a/AGENTS.md")},
			{touch: []string{"a"}, want: ""},
			{change: edited("a/AGENTS.local.md", "m\n"), touch: []string{"a"}, want: lines("updated body a/AGENTS.local.md")},
		}},
		{"excluded and untrusted ones are not delivered", tree, "", func(o *chain.Options) { o.Exclude, o.Trust = []string{"a"}, chain.TrustNone }, []step{
			{touch: []string{"a"}, want: lines("! untrusted_root AGENTS.md")},
		}},
		{"by name", tree, "", func(o *chain.Options) { o.Resolver.Delivery = chain.DeliverReminder }, []step{
			{touch: []string{"a"}, want: lines("new reminder a/AGENTS.md")},
		}},
		{"off lists, and counts", tree, "", func(o *chain.Options) { o.Resolver.Delivery = chain.DeliverOff }, []step{
			{touch: []string{"a"}, want: lines("new off a/AGENTS.md")},
			{touch: []string{"a"}, want: ""},
		}},
		{"never resolves", tree, "", func(o *chain.Options) { o.Resolver.ChangedWhen = chain.ChangedNeverResolved }, []step{
			{touch: []string{"a", "/nowhere"}, want: ""},
		}},
		{"no path, no event", tree, "", nil, []step{{touch: nil, want: ""}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := chain.Default()
			if tt.change != nil {
				tt.change(&o)
			}
			play(t, tt.tree, tt.dir, o, tt.steps)
		})
	}
}

// play runs a session and compares its answers.
func play(t *testing.T, tree files, dir string, o chain.Options, steps []step) {
	t.Helper()
	base := build(t, tree)
	s := begin(base, dir, o)
	for i, step := range steps {
		if step.change != nil {
			step.change(t, base)
		}
		if step.epoch {
			s.NewEpoch(s.Epoch + 1)
		}
		got := s.Touch(chain.OS{}, o, step.touch)
		if diff := cmp.Diff(outline(got, base), step.want); diff != "" {
			t.Errorf("step %d (-got +want):\n%s", i, diff)
		}
		if said := got.Reminder != ""; said != (len(got.Files) > 0 && o.Resolver.Delivery != chain.DeliverOff) {
			t.Errorf("step %d: %d files and the reminder %q", i, len(got.Files), got.Reminder)
		}
		s = again(t, s)
	}
}

// again is the state as another process has it.
func again(t *testing.T, s State) State {
	t.Helper()
	data, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, s); diff != "" {
		t.Errorf("the state came back otherwise (-got +want):\n%s", diff)
	}
	return got
}

// age changes the time of a file, and nothing else.
func age(name string) func(testing.TB, string) {
	return func(tb testing.TB, base string) {
		tb.Helper()
		at := time.Unix(1_700_000_000, 0)
		if err := os.Chtimes(filepath.Join(base, name), at, at); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestTouchCodelia(t *testing.T) {
	t.Parallel()
	o := preset(t, chain.PresetCodelia)
	o.Resolver.MaxFiles = 2
	tree := files{".codelia/": "", "AGENTS.md": "x\n", "a/AGENTS.md": "x\n", "a/b/AGENTS.md": "b\n", "a/b/c/AGENTS.md": "c\n", "d/": ""}
	play(t, tree, "", o, []step{
		{touch: []string{"a/b/c"}, want: lines("new reminder a/AGENTS.md", "new reminder a/b/AGENTS.md", "pending 1")},
		{touch: []string{"d"}, want: lines("new reminder a/b/c/AGENTS.md")},
		{change: age("a/b/AGENTS.md"), touch: []string{"a/b"}, want: lines("updated reminder a/b/AGENTS.md")},
		{touch: []string{"a/b"}, want: ""},
	})
}

// deep is a tree with a file in each of n directories, one below the other.
func deep(n int) (tree files, path string) {
	tree = files{".git/": "", "other/": ""}
	for i := range n {
		path += fmt.Sprintf("d%02d/", i)
		tree[path+"AGENTS.md"] = fmt.Sprintf("rules %d\n", i)
	}
	return tree, strings.TrimSuffix(path, "/")
}

// below are the lines for the files of a deep tree from one directory to another.
func below(from, to int) []string {
	var list []string
	path := ""
	for i := range to {
		path += fmt.Sprintf("d%02d/", i)
		if i >= from {
			list = append(list, "new body "+path+"AGENTS.md")
		}
	}
	return list
}

func TestTouchQueue(t *testing.T) {
	t.Parallel()
	tree, path := deep(20)
	t.Run("nearest first, the rest at the next events of any path", func(t *testing.T) {
		t.Parallel()
		play(t, tree, "", chain.Default(), []step{
			{touch: []string{path}, want: lines(append(below(12, 20), "pending 12")...)},
			{touch: []string{"/elsewhere"}, want: lines("pending 12", "! outside_root /elsewhere")},
			{touch: []string{"other"}, want: lines(append(below(4, 12), "pending 4")...)},
			{touch: []string{path}, want: lines(below(0, 4)...)},
			{touch: []string{path}, want: ""},
		})
	})
	t.Run("what is gone is dropped, and what changed is delivered as it is", func(t *testing.T) {
		t.Parallel()
		play(t, tree, "", chain.Default(), []step{
			{touch: []string{path}, want: lines(append(below(12, 20), "pending 12")...)},
			{change: func(tb testing.TB, base string) {
				remove(tb, base, "d00/d01/d02/d03/d04/AGENTS.md")
				put(tb, base, "d00/AGENTS.md", "other\n")
			}, touch: []string{"other"}, want: lines(append(append(below(3, 4), below(5, 12)...), "pending 3")...)},
			{touch: []string{"other"}, want: lines(below(0, 3)...)},
		})
	})
	t.Run("the epoch ends", func(t *testing.T) {
		t.Parallel()
		play(t, tree, "", chain.Default(), []step{
			{touch: []string{path}, want: lines(append(below(12, 20), "pending 12")...)},
			{epoch: true, touch: []string{"other"}, want: ""},
		})
	})
	t.Run("what is touched goes before what waits", func(t *testing.T) {
		t.Parallel()
		near := files{"other/AGENTS.md": "other\n"}
		maps.Copy(near, tree)
		delete(near, "other/")
		play(t, near, "", chain.Default(), []step{
			{touch: []string{path}, want: lines(append(below(12, 20), "pending 12")...)},
			// Listed from the root down: "other" lies above all that waited.
			{touch: []string{"other"}, want: lines(append(append([]string{"new body other/AGENTS.md"}, below(5, 12)...), "pending 5")...)},
		})
	})
}

// TestImportsAreVersions says that a file counts as another one when what it
// imports is.
func TestImportsAreVersions(t *testing.T) {
	t.Parallel()
	base := build(t, files{".git/": "", "AGENTS.md": "root\n@./docs/x.md\n", "docs/x.md": "@./y.md\n", "docs/y.md": "one\n", "a/AGENTS.md": "a\n@../docs/y.md\n"})
	o := chain.Default()
	o.Imports = chain.ImportLines
	now := func() chain.Chain { return chain.Resolve(chain.OS{}, base, o) }
	s := begin(base, "", o)
	touched := func() string { return outline(s.Touch(chain.OS{}, o, []string{"a"}), base) }
	check := func(what, got, want string) {
		t.Helper()
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", what, diff)
		}
		s = again(t, s)
	}
	check("first", touched(), lines("new body a/AGENTS.md"))
	check("once", touched(), "")
	check("unchanged", reported(s.Changed(now()), base), "")

	put(t, base, "docs/y.md", "two\n")
	check("changed", reported(s.Changed(now()), base), lines("updated body AGENTS.md", "! changed AGENTS.md"))
	check("changed below", touched(), lines("updated body a/AGENTS.md"))
	check("reported once", reported(s.Changed(now()), base)+touched(), "")

	remove(t, base, "docs/y.md")
	check("gone", resumed(s.Resume(now()), base), lines("updated true AGENTS.md true true")) //nolint:dupword // columns
	check("gone below", touched(), lines("updated body a/AGENTS.md", "! import_refused docs/x.md", "! import_refused a/AGENTS.md"))
}

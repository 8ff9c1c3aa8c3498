package chain

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// resolveCase is a tree, a working directory in it, and what comes out. BASE in an
// option is the tree's directory.
type resolveCase struct {
	name string
	tree files
	dir  string
	opts Options
	want string
}

// runCases runs each case on each view.
func runCases(t *testing.T, cases []resolveCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := build(t, tt.tree)
			for name, view := range views() {
				got := outline(Resolve(view, filepath.Join(base, tt.dir), inBase(tt.opts, base)), base)
				if diff := cmp.Diff(got, tt.want); diff != "" {
					t.Errorf("%s: (-got +want)\n%s", name, diff)
				}
			}
		})
	}
}

// inBase puts a tree's directory into options.
func inBase(o Options, base string) Options {
	put := func(s string) string {
		if rest, ok := strings.CutPrefix(s, "BASE"); ok {
			return filepath.Join(base, rest)
		}
		return s
	}
	o.Root, o.Home, o.GlobalDir = put(o.Root), put(o.Home), put(o.GlobalDir)
	for _, list := range []*[]string{&o.ConfigDirs, &o.Allow} {
		out := make([]string, 0, len(*list))
		for _, s := range *list {
			out = append(out, put(s))
		}
		*list = out
	}
	return o
}

func TestResolveRoot(t *testing.T) {
	t.Parallel()
	found := func(root string) string { return `root "` + root + `" found=true` }
	alone := func(root string) string { return `root "` + root + `" found=false` }
	runCases(t, []resolveCase{
		{
			name: "from root to working directory",
			tree: files{"r/.git/": "", "r/AGENTS.md": "one\n", "r/a/AGENTS.md": "two\n", "r/a/b/AGENTS.md": "three\n", "AGENTS.md": "above\n"},
			dir:  "r/a/b",
			want: lines(found("r"), "kept project AGENTS.md: one", "kept project a/AGENTS.md: two", "kept project a/b/AGENTS.md: three"),
		},
		{
			name: "marker may be a file",
			tree: files{"r/.git": "gitdir: elsewhere\n", "r/AGENTS.md": "one", "r/a/": ""},
			dir:  "r/a",
			want: lines(found("r"), "kept project AGENTS.md: one"),
		},
		{
			name: "other markers, and one through a link",
			tree: files{"r/.jj/": "", "r/x/.hg": "-> BASE/hg", "hg/": "", "r/AGENTS.md": "one", "r/x/AGENTS.md": "two"},
			dir:  "r/x",
			want: lines(found("r/x"), "kept project AGENTS.md: two"),
		},
		{
			name: "a link to nothing is no marker",
			tree: files{"r/.git": "-> nothing", "r/AGENTS.md": "one", "r/a/AGENTS.md": "two"},
			dir:  "r/a",
			want: lines(alone("r/a"), "kept project AGENTS.md: two"),
		},
		{
			name: "no marker: working directory only",
			tree: files{"r/AGENTS.md": "one", "r/a/AGENTS.md": "two"},
			dir:  "r/a",
			want: lines(alone("r/a"), "kept project AGENTS.md: two"),
		},
		{
			name: "empty marker list",
			tree: files{"r/.git/": "", "r/AGENTS.md": "one", "r/a/AGENTS.md": "two"},
			dir:  "r/a",
			opts: Options{Markers: []string{}},
			want: lines(alone("r/a"), "kept project AGENTS.md: two"),
		},
		{
			name: "marker that is no file name",
			tree: files{"r/.git/": "", "r/AGENTS.md": "one", "r/a/AGENTS.md": "two"},
			dir:  "r/a",
			opts: Options{Markers: []string{"../.git", "/", "x/y", "..", ""}},
			want: lines(alone("r/a"), "kept project AGENTS.md: two", "! warning marker_invalid ../.git", "! warning marker_invalid ",
				"! warning marker_invalid x/y", "! warning marker_invalid ..", "! warning marker_invalid "),
		},
		{
			name: "home is no root",
			tree: files{"h/.git/": "", "h/AGENTS.md": "one", "h/a/AGENTS.md": "two", ".git/": ""},
			dir:  "h/a",
			opts: Options{Home: "BASE/h"},
			want: lines(alone("h/a"), "kept project AGENTS.md: two"),
		},
		{
			name: "home under another name is no root",
			tree: files{"real/.git/": "", "real/AGENTS.md": "one", "real/a/AGENTS.md": "two", "h": "-> real"},
			dir:  "real/a",
			opts: Options{Home: "BASE/h"},
			want: lines(alone("real/a"), "kept project AGENTS.md: two"),
		},
		{
			name: "home as working directory",
			tree: files{"h/.git/": "", "h/AGENTS.md": "one"},
			dir:  "h",
			opts: Options{Home: "BASE/h"},
			want: lines(alone("h"), "kept project AGENTS.md: one"),
		},
		{
			name: "a root below home",
			tree: files{"h/.git/": "", "h/a/.git/": "", "h/a/AGENTS.md": "one", "h/a/b/": ""},
			dir:  "h/a/b",
			opts: Options{Home: "BASE/h"},
			want: lines(found("h/a"), "kept project AGENTS.md: one"),
		},
		{
			name: "home as given root",
			tree: files{"h/AGENTS.md": "one", "h/a/AGENTS.md": "two"},
			dir:  "h/a",
			opts: Options{Home: "BASE/h", Root: "BASE/h"},
			want: lines(found("h"), "kept project AGENTS.md: one", "kept project a/AGENTS.md: two"),
		},
		{
			name: "markers in configuration directories do not count",
			tree: files{"r/.git/": "", "r/AGENTS.md": "one", "r/conf/.git/": "", "r/conf/x/.git/": "", "r/conf/x/AGENTS.md": "two"},
			dir:  "r/conf/x",
			opts: Options{ConfigDirs: []string{"", "BASE/r/conf"}},
			want: lines(found("r"), "kept project AGENTS.md: one", "kept project conf/x/AGENTS.md: two"),
		},
		{
			name: "given root wins over markers",
			tree: files{"AGENTS.md": "above", "r/AGENTS.md": "one", "r/a/.git/": "", "r/a/AGENTS.md": "two"},
			dir:  "r/a",
			opts: Options{Root: "BASE/r"},
			want: lines(found("r"), "kept project AGENTS.md: one", "kept project a/AGENTS.md: two"),
		},
		{
			name: "given root under another name",
			tree: files{"r/AGENTS.md": "one", "r/a/AGENTS.md": "two", "s": "-> r"},
			dir:  "r/a",
			opts: Options{Root: "BASE/s"},
			want: lines(found("r"), "kept project AGENTS.md: one", "kept project a/AGENTS.md: two"),
		},
		{
			name: "given root without the working directory",
			tree: files{"r/AGENTS.md": "one", "ra/AGENTS.md": "two", "g/AGENTS.md": "global"},
			dir:  "ra",
			opts: Options{Root: "BASE/r", GlobalDir: "BASE/g"},
			want: lines("! warning root_refused r"),
		},
		{
			name: "given root that is not there",
			tree: files{"r/AGENTS.md": "one"},
			dir:  "r",
			opts: Options{Root: "BASE/nowhere"},
			want: lines("! warning root_refused nowhere"),
		},
		{
			name: "given root that is relative",
			tree: files{"r/AGENTS.md": "one"},
			dir:  "r",
			opts: Options{Root: "r"},
			want: lines("! warning root_refused r"),
		},
	})
}

func TestResolveWalk(t *testing.T) {
	t.Parallel()
	runCases(t, []resolveCase{
		{
			name: "a linked working directory keeps its logical parents",
			tree: files{"r/.git/": "", "r/AGENTS.md": "one", "r/in": "-> BASE/out/sub", "out/.git/": "", "out/AGENTS.md": "not ours", "out/sub/AGENTS.md": "two"},
			dir:  "r/in",
			want: lines(`root "r" found=true`, "kept project AGENTS.md: one", "kept project in/AGENTS.md: two"),
		},
		{
			name: "directories below a link",
			tree: files{"r/.git/": "", "r/in": "-> BASE/out", "out/a/AGENTS.md": "two", "out/AGENTS.md": "-> a/AGENTS.md"},
			dir:  "r/in/a",
			want: lines(`root "r" found=true`, "duplicate project in/AGENTS.md (duplicate) = r/in/a/AGENTS.md", "kept project in/a/AGENTS.md: two",
				"! info duplicate r/in/AGENTS.md"),
		},
		{
			name: "working directory that is not there",
			tree: files{"r/.git/": "", "r/AGENTS.md": "one", "g/AGENTS.md": "global"},
			dir:  "r/gone/deep",
			opts: Options{GlobalDir: "BASE/g"},
			want: lines("kept global ~: global", "! warning read_error r/gone/deep"),
		},
		{
			name: "working directory that is not there in a given root",
			tree: files{"r/AGENTS.md": "one"},
			dir:  "r/gone",
			opts: Options{Root: "BASE/r"},
			want: lines("! warning read_error r/gone"),
		},
		{
			name: "working directory that is not there outside of a given root",
			tree: files{"r/AGENTS.md": "one", "g/AGENTS.md": "global"},
			dir:  "s/gone",
			opts: Options{Root: "BASE/r", GlobalDir: "BASE/g"},
			want: lines("! warning read_error s/gone", "! warning root_refused r"),
		},
		{
			name: "working directory that is a file",
			tree: files{"r/.git/": "", "r/a": "x"},
			dir:  "r/a",
			want: lines("! warning read_error r/a"),
		},
		{
			name: "working directory behind a loop of links",
			tree: files{"r/.git/": "", "r/a": "-> b", "r/b": "-> a"},
			dir:  "r/a/c",
			want: lines("! warning read_error r/a/c"),
		},
		{
			name: "path beyond what systems take",
			dir:  strings.Repeat("long/", 900),
			want: lines("! warning path_too_long " + strings.TrimSuffix(strings.Repeat("long/", 900), "/")),
		},
		{
			name: "directory name beyond what systems take",
			dir:  strings.Repeat("x", 300),
			want: lines("! warning path_too_long " + strings.Repeat("x", 300)),
		},
	})
}

func TestResolveRefusesRelativeDirectory(t *testing.T) {
	t.Parallel()
	got := outline(Resolve(OS{}, "a/b", Options{}), "")
	if want := lines("! warning read_error a/b"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTopIsNoRoot(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the marker's name is that of a directory of other systems")
	}
	// Something that every such system has, as a marker, makes the top a root.
	base := build(t, files{"AGENTS.md": "one"})
	c := Resolve(OS{}, base, Options{Markers: []string{"dev"}})
	if c.RootFound || c.Root != base {
		t.Errorf("root %q, found %t: want the working directory, not found", c.Root, c.RootFound)
	}
	c = Resolve(OS{}, base, Options{Root: "/"})
	if !c.RootFound || c.Root != "/" {
		t.Errorf("root %q, found %t: want / as it is given", c.Root, c.RootFound)
	}
	if last := c.Sources[len(c.Sources)-1]; "/"+last.Display != last.Path {
		t.Errorf("display %q of %q", last.Display, last.Path)
	}
}

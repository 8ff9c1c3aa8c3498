package chain

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestResolve runs each case of testdata/resolve.txt on each view.
func TestResolve(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/resolve.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n=== ")[1:] {
		name, rest, _ := strings.Cut(text, "\n")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runCase(t, rest+"\n")
		})
	}
}

func runCase(t *testing.T, text string) {
	t.Helper()
	tree, faults := files{}, []string{}
	head, rest, _ := strings.Cut(text, "\ndir: ")
	for line := range strings.Lines(head) {
		name, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if name == "fail:" {
			faults = append(faults, text)
		} else {
			tree[unquoted(name)] = unquoted(text)
		}
	}
	base := build(t, tree)
	fail := map[string]error{}
	for _, fault := range faults {
		words := strings.Fields(fault)
		if words[1] != "/" {
			words[1] = filepath.Join(base, words[1])
		}
		fail[words[0]+" "+words[1]] = errnos()[words[2]]
	}
	dir, want, _ := strings.Cut(rest, "\n")
	o := Default()
	if options, more, ok := strings.Cut(want, "\n"); ok && strings.HasPrefix(options, "options: ") {
		want = more
		options = strings.ReplaceAll(strings.TrimPrefix(options, "options: "), "BASE", base)
		if err := json.Unmarshal([]byte(options), &o); err != nil {
			t.Fatal(err)
		}
	}
	resolve := Resolve
	if path, ok := strings.CutSuffix(dir, ", touched"); ok {
		dir, resolve = path, ResolveTouched
	}
	for name, inner := range views() {
		view := &faultFS{FS: inner, fail: fail}
		if diff := cmp.Diff(outline(resolve(view, filepath.Join(base, dir), o), base), want); diff != "" || view.open != 0 {
			t.Errorf("%s: %d handles were left open (-got +want)\n%s", name, view.open, diff)
		}
	}
}

func errnos() map[string]error {
	return map[string]error{"EACCES": syscall.EACCES, "EAGAIN": syscall.EAGAIN, "EIO": syscall.EIO, "EMFILE": syscall.EMFILE, "ENOENT": syscall.ENOENT}
}

// unquoted is a text that may be a Go string.
func unquoted(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}

// TestLongPaths: a path that is too long for a system is reported.
func TestLongPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{strings.Repeat("long/", 900), strings.Repeat("x", 300)} {
		c := Resolve(OS{}, filepath.Join(t.TempDir(), path), Options{})
		if len(c.Sources) > 0 || len(c.Diagnostics) != 1 || c.Diagnostics[0].Code != CodePathTooLong {
			t.Errorf("%s", outline(c, ""))
		}
	}
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
	c := Resolve(OS{}, base, defaults(func(o *Options) { o.Markers = []string{"dev"} }))
	if c.RootFound || c.Root != base {
		t.Errorf("root %q, found %t: want the working directory, not found", c.Root, c.RootFound)
	}
	c = Resolve(OS{}, base, defaults(func(o *Options) { o.Root = "/" }))
	if !c.RootFound || c.Root != "/" {
		t.Errorf("root %q, found %t: want / as it is given", c.Root, c.RootFound)
	}
	if last := c.Sources[len(c.Sources)-1]; "/"+last.Display != last.Path {
		t.Errorf("display %q of %q", last.Display, last.Path)
	}
}

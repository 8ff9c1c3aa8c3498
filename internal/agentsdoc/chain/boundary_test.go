package chain

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBoundary: neither markers, a configured root nor a link on the way bring in a file
// from outside of the boundary.
func TestBoundary(t *testing.T) {
	t.Parallel()
	base := build(t, files{
		".git/": "", "AGENTS.md": "outside", "out/AGENTS.md": "outside", "out/in/AGENTS.md": "outside",
		"w/AGENTS.md": "top", "w/a/AGENTS.md": "a", "w/a/b/AGENTS.md": "b", "w/link": "-> ../out", "w/inner": "-> a",
		"w/c/AGENTS.md": "-> ../../out/AGENTS.md", "w/d/AGENTS.md": "-> ../a/AGENTS.md", "beside": "-> w",
		"w/m/.git/": "", "w/m/AGENTS.md": "m",
	})
	tests := []struct {
		name, boundary, dir, root string
		texts                     []string
		codes                     []Code
	}{
		{"no boundary", "", "w/a", "", []string{"outside", "top", "a"}, nil},
		{"below it", "w", "w/a/b", "", []string{"b"}, nil},
		{"a root above it", "w", "w/a/b", ".", []string{"top", "a", "b"}, nil},
		{"a root in it", "w", "w/a/b", "w/a", []string{"a", "b"}, nil},
		{"a marker in it", "w", "w/m", "", []string{"m"}, nil},
		{"itself", "w", "w", "", []string{"top"}, nil},
		{"a link out", "w", "w/link/in", "", nil, []Code{CodeSymlinkEscape}},
		{"a link out, below a root", "w", "w/link/in", "w", nil, []Code{CodeSymlinkEscape}},
		{"a link inside", "w", "w/inner/b", "", nil, []Code{CodeSymlinkEscape}},
		{"a file's link out", "w", "w/c", "w", []string{"top"}, []Code{CodeSymlinkEscape}},
		{"a file's link inside", "w", "w/d", "w", []string{"top", "a"}, nil},
		{"not below it", "w", "out/in", "", nil, []Code{CodeSymlinkEscape}},
		{"above it", "w/a", "w", "", nil, []Code{CodeSymlinkEscape}},
		{"a name that begins alike", "w", "w2", "", nil, []Code{CodeSymlinkEscape}},
		{"the boundary became a link", "beside", "beside/a", "", nil, []Code{CodeReadError}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for name, view := range views() {
				o := Default()
				if tt.boundary != "" {
					o.Boundary = filepath.Join(base, tt.boundary)
				}
				if tt.root != "" {
					o.Root = filepath.Join(base, tt.root)
				}
				c := Resolve(view, filepath.Join(base, tt.dir), o)
				var texts []string
				for _, s := range c.Sources {
					if s.State == StateKept {
						texts = append(texts, s.Text)
					}
				}
				if diff := cmp.Diff(texts, tt.texts); diff != "" {
					t.Errorf("%s: texts (-got +want)\n%s", name, diff)
				}
				got := slices.DeleteFunc(codes(c.Diagnostics), func(c Code) bool { return c == CodeRootRefused })
				if diff := cmp.Diff(got, tt.codes); diff != "" {
					t.Errorf("%s: codes (-got +want)\n%s", name, diff)
				}
			}
		})
	}
}

// TestBoundaryTouched: a path that a tool touches by a link between the boundary and the
// root leads nowhere.
func TestBoundaryTouched(t *testing.T) {
	t.Parallel()
	base := build(t, files{"out/r/AGENTS.md": "outside", "out/r/a/AGENTS.md": "outside", "w/link": "-> ../out", "w/x/r/AGENTS.md": "r"})
	o := defaults(func(o *Options) {
		o.Boundary, o.Root, o.Markers = filepath.Join(base, "w"), filepath.Join(base, "w/link/r"), nil
	})
	if c := ResolveTouched(OS{}, filepath.Join(base, "w/link/r/a"), o); len(c.Sources) != 0 {
		t.Errorf("read %+v", c.Sources)
	}
	o.Root = filepath.Join(base, "w/x/r")
	if c := ResolveTouched(OS{}, filepath.Join(base, "w/x/r"), o); len(c.Sources) != 1 {
		t.Errorf("read %+v", c.Sources)
	}
}

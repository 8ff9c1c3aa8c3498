package skillset

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBoundary: neither markers nor a link on the way bring in a skill from outside of
// the boundary.
func TestBoundary(t *testing.T) {
	t.Parallel()
	base := build(t, files{
		".git/": "", ".agents/skills/above/SKILL.md": skillText("above", ""), "out/.agents/skills/out/SKILL.md": skillText("out", ""),
		"w/.agents/skills/top/SKILL.md": skillText("top", ""), "w/a/.agents/skills/a/SKILL.md": skillText("a", ""), "w/a/x": "",
		"w/link": "-> ../out", "w/.git/": "",
	})
	for dir, want := range map[string]string{"w": "top", "w/a": "a top", "w/link": "", "out": ""} {
		o := project(".agents/skills")
		o.Boundary = filepath.Join(base, "w")
		got := ""
		for _, s := range Resolve(filepath.Join(base, dir), o).Skills {
			if got != "" {
				got += " "
			}
			got += s.Slug
		}
		if got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

// TestBoundarySwapped: a skill whose directory has become a link out of the boundary since
// it was found is not read there.
func TestBoundarySwapped(t *testing.T) {
	t.Parallel()
	base := build(t, files{
		"w/a/.agents/skills/s/SKILL.md": skillText("s", ""), "w/a/.agents/skills/s/part": "mine",
		"out/.agents/skills/s/SKILL.md": skillText("s", ""), "out/.agents/skills/s/part": "secret",
	})
	o := project(".agents/skills")
	o.Boundary = filepath.Join(base, "w")
	s := Resolve(filepath.Join(base, "w/a"), o).Find("s")
	if text, err := ReadFile(s, "part"); text != "mine" {
		t.Fatalf("before: %q, %v", text, err)
	}
	if err := os.Rename(filepath.Join(base, "w/a"), filepath.Join(base, "aside")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../out", filepath.Join(base, "w/a")); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(s, "part"); err == nil {
		t.Errorf("read %q from outside", text)
	}
}

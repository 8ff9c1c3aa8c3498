package skillset

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestFresh changes one thing of a tree after the other: each must be seen.
func TestFresh(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(t *testing.T, base string) error
		fresh  bool
	}{
		{"nothing", func(*testing.T, string) error { return nil }, true},
		{"a file elsewhere", func(t *testing.T, base string) error {
			write(t, base, "repo/app/main.go", "x")
			return nil
		}, true},
		{"edited", func(t *testing.T, base string) error {
			write(t, base, "repo/.agents/skills/one/SKILL.md", skillText("one", "longer"))
			return nil
		}, false},
		{"edited in place, same size", func(_ *testing.T, base string) error {
			return os.WriteFile(filepath.Join(base, "repo/.agents/skills/one/SKILL.md"), []byte(skillText("one", "TEXT")), 0o644)
		}, false},
		{"replaced by another of the same size and time", func(_ *testing.T, base string) error {
			path := filepath.Join(base, "repo/.agents/skills/one/SKILL.md")
			info, err := os.Stat(path)
			if err == nil {
				err = os.WriteFile(path+".new", []byte(skillText("one", "TEXT")), 0o644)
			}
			if err == nil {
				err = os.Chtimes(path+".new", info.ModTime(), info.ModTime())
			}
			if err == nil {
				err = os.Rename(path+".new", path)
			}
			return err
		}, false},
		{"removed", func(_ *testing.T, base string) error {
			return os.RemoveAll(filepath.Join(base, "repo/.agents/skills/one"))
		}, false},
		{"added", func(t *testing.T, base string) error {
			write(t, base, "repo/.agents/skills/new/SKILL.md", skillText("new", ""))
			return nil
		}, false},
		{"added to a directory that is there", func(t *testing.T, base string) error {
			write(t, base, "repo/.agents/skills/empty/SKILL.md", skillText("empty", ""))
			return nil
		}, false},
		{"a nearer directory appears", func(t *testing.T, base string) error {
			write(t, base, "repo/app/.agents/skills/two/SKILL.md", skillText("two", ""))
			return nil
		}, false},
		{"a nearer root appears", func(t *testing.T, base string) error {
			write(t, base, "repo/app/.git/HEAD", "")
			return nil
		}, false},
		{"the user's directory appears", func(t *testing.T, base string) error {
			write(t, base, "user/", "")
			return nil
		}, false},
		{"a link is turned", func(t *testing.T, base string) error {
			path := filepath.Join(base, "repo/.agents/skills/linked")
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink("../../b", path)
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := build(t, files{
				"repo/.git/": "", "repo/app/": "", "repo/.agents/skills/one/SKILL.md": skillText("one", "text"), "repo/.agents/skills/empty/": "",
				"repo/a/SKILL.md": skillText("linked", "a"), "repo/b/SKILL.md": skillText("linked", "b"), "repo/.agents/skills/linked": "-> ../../a",
			})
			age(t, base)
			o := project(".agents/skills", filepath.Join(base, "user"))
			s := Resolve(filepath.Join(base, "repo/app"), o)
			if !s.Settled(time.Now()) {
				t.Fatal("old files do not count as settled")
			}
			if err := tt.change(t, base); err != nil {
				t.Fatal(err)
			}
			if got := s.Fresh(); got != tt.fresh {
				t.Errorf("fresh: %v, want %v", got, tt.fresh)
			}
		})
	}
}

func TestSettled(t *testing.T) {
	t.Parallel()
	base := build(t, files{"s/a/SKILL.md": skillText("a", "")})
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, path := range []string{"s", "s/a/SKILL.md"} {
		if err := os.Chtimes(filepath.Join(base, path), at, at); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Directories: []string{filepath.Join(base, "s")}}
	for after, want := range map[time.Duration]bool{0: false, time.Second: false, -time.Second: false, unsettled: true, time.Hour: true, -time.Hour: true} {
		if got := Resolve("", o).Settled(at.Add(after)); got != want {
			t.Errorf("%v after the change: settled %v, want %v", after, got, want)
		}
	}
}

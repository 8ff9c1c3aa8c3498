package chain

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

// checkOpened asserts that of what was opened nothing is a file in or below the
// paths, whatever it was called when it was opened.
func checkOpened(t *testing.T, view *faultFS, outside ...string) {
	t.Helper()
	for _, path := range outside {
		err := filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			dir, err := OS{}.OpenDir(filepath.Dir(path))
			if err != nil {
				return err
			}
			defer func() { _ = dir.Close() }()
			info, err := dir.Lstat(filepath.Base(path))
			if i := slices.Index(view.ids, info.ID); i >= 0 && info.ID != (fsview.FileID{}) {
				t.Errorf("opened %s, by the name %s", path, view.opened[i])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNothingOutsideIsOpenedInAnyTree(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(51, 52))
	targets := []string{
		"BASE/secret", "../secret", "../../secret", "../../../secret/AGENTS.md", "BASE/r/.git/config", "../.git/AGENTS.md", ".git/AGENTS.md",
		"BASE/r/AGENTS.md", "../AGENTS.md", "AGENTS.md", "d/AGENTS.md", "../out/AGENTS.md", "BASE/store/worktrees/r/AGENTS.md", "/dev/null", "nothing",
	}
	refused := map[Code]int{}
	for range agentsdoctest.Rounds(300) {
		base := build(t, files{
			"secret/AGENTS.md": "key", "store/worktrees/r/AGENTS.md": "key", "r/.git/AGENTS.md": "key", "r/.git/config": "key", "r/out": "-> ../secret",
		})
		dir := filepath.Join(base, "r")
		for range 1 + rng.IntN(5) {
			for _, name := range []string{"AGENTS.override.md", "AGENTS.md", "AGENTS.local.md"} {
				target := strings.ReplaceAll(targets[rng.IntN(len(targets))], "BASE", base)
				var err error
				switch path := filepath.Join(dir, name); rng.IntN(5) {
				case 0, 1:
					err = os.Symlink(target, path)
				case 2:
					err = os.WriteFile(path, []byte(target), 0o644)
				case 3:
					err = os.WriteFile(path, []byte("fine\n@./"+strings.TrimPrefix(target, base)+"\n@"+target), 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			dir = filepath.Join(dir, "d")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		view := &faultFS{FS: OS{}}
		c := Resolve(view, dir, defaults(func(o *Options) {
			o.Imports, o.Trust, o.Untrusted = ImportLines, []Trust{TrustAll, TrustNone}[rng.IntN(2)], UntrustedText
		}))
		for _, d := range c.Diagnostics {
			refused[d.Code]++
		}
		for _, path := range view.opened {
			if !Within(filepath.Join(base, "r"), path) || Within(filepath.Join(base, "r/.git"), path) || Within(filepath.Join(base, "r/out"), path) {
				t.Fatalf("opened %s", path)
			}
		}
		checkOpened(t, view, filepath.Join(base, "secret"), filepath.Join(base, "store"), filepath.Join(base, "r/.git"))
		if text := Render(c, Budget{plenty, plenty}).Text; strings.Contains(text, "key") || view.open != 0 {
			t.Fatalf("%d handles left open, text is\n%s", view.open, text)
		}
	}
	for _, code := range []Code{CodeSymlinkEscape, CodeGitMetadata, CodeReadError, CodeSymlinkStub, CodeStubLoop, CodeImportRefused} {
		if refused[code] < agentsdoctest.Rounds(20) {
			t.Errorf("%s came only %d times: the test sees too little", code, refused[code])
		}
	}
}

// TestSwapsAtEachStep does to the tree what somebody could do who knows each step
// before it is taken: a file or directory becomes a link to a secret of the same
// shape.
func TestSwapsAtEachStep(t *testing.T) {
	t.Parallel()
	tree := files{
		"r/.git/": "", "r/AGENTS.md": "-> d/AGENTS.md", "r/a/AGENTS.md": "../d/x/AGENTS.md", "r/a/AGENTS.local.md": "mine\n@../d/import.md\n",
		"r/in": "-> d/x", "r/d/AGENTS.md": "one", "r/d/x/AGENTS.md": "two", "r/d/import.md": "three",
		"secret/AGENTS.md": "key", "secret/x/AGENTS.md": "key", "secret/import.md": "key", "secret/AGENTS.local.md": "key",
	}
	swaps := map[string]string{
		"r/d": "secret", "r/d/x": "secret/x", "r/d/AGENTS.md": "secret/AGENTS.md", "r/d/import.md": "secret/import.md",
		"r/AGENTS.md": "secret/AGENTS.md", "r/a/AGENTS.md": "secret/AGENTS.md", "r/in": "secret/x",
	}
	touched := map[string]string{"r/a": "secret"}
	maps.Copy(touched, swaps)
	tests := []struct {
		name, dir string
		resolve   func(view FS, dir string, o Options) Chain
		swaps     map[string]string
	}{
		// A directory on the way that a person named may be a link to anywhere.
		{"named", "r/a", Resolve, swaps},
		{"touched", "r/a", ResolveTouched, touched},
		{"touched by way of a link", "r/in", ResolveTouched, touched},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := build(t, tree)
			o := defaults(func(o *Options) {
				o.Root, o.Imports, o.Checks = filepath.Join(base, "r"), ImportLines, Checks{Stubs: true}
			})
			aside := filepath.Join(base, "aside")
			run := func(op, path, target string) (*faultFS, string) {
				path = filepath.Join(base, path)
				view := &faultFS{FS: OS{}, swap: map[string]func(){op: func() {
					if err := errors.Join(os.Rename(path, aside), os.Symlink(filepath.Join(base, target), path)); err != nil {
						t.Fatal(err)
					}
				}}}
				c := tt.resolve(view, filepath.Join(base, tt.dir), o)
				if len(view.swap) == 0 {
					if err := errors.Join(os.Remove(path), os.Rename(aside, path)); err != nil {
						t.Fatal(err)
					}
				}
				checkOpened(t, view, filepath.Join(base, "secret"))
				text := Render(c, Budget{plenty, plenty}).Text
				if strings.Contains(text, "key") || view.open != 0 {
					t.Fatalf("before %s %s became a link: %d handles left open, text is\n%s", op, path, view.open, text)
				}
				return view, outline(c, base)
			}
			whole, before := run("", "", "")
			ops := slices.Compact(slices.Sorted(slices.Values(whole.ops)))
			ops = slices.DeleteFunc(ops, func(op string) bool { return !strings.Contains(op, base+"/") }) // those above the tree are no different from its first
			differ := 0
			for path, target := range tt.swaps {
				for _, op := range ops {
					if view, after := run(op, path, target); len(view.swap) == 0 && after != before {
						differ++
					}
				}
			}
			if len(ops) < 20 || differ < len(ops) {
				t.Errorf("of %d steps %d came out differently: the test sees too little", len(ops), differ)
			}
		})
	}
}

func TestAllowedDirectorySwapped(t *testing.T) {
	t.Parallel()
	base := build(t, files{"r/.git/": "", "r/AGENTS.md": "-> ../ok/d/AGENTS.md", "ok/d/AGENTS.md": "two", "secret/d/AGENTS.md": "key"})
	allowed := filepath.Join(base, "ok")
	view := &faultFS{FS: OS{}, swap: map[string]func(){"opendir " + allowed: func() {
		if err := replaceByLink(allowed, "secret"); err != nil {
			t.Error(err)
		}
	}}}
	c := Resolve(view, filepath.Join(base, "r"), defaults(func(o *Options) { o.Allow = []string{allowed} }))
	checkOpened(t, view, filepath.Join(base, "secret"))
	want := lines(`root "r" found=true`, "skipped project AGENTS.md (read_error)", "! warning read_error r/AGENTS.md")
	if diff := cmp.Diff(outline(c, base), want); diff != "" || len(view.swap) > 0 || view.open != 0 {
		t.Errorf("swapped: %t, left open: %d (-got +want)\n%s", len(view.swap) == 0, view.open, diff)
	}
}

package chain

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

func TestNothingOutsideIsOpened(t *testing.T) {
	t.Parallel()
	base := build(t, files{
		"AGENTS.md": "above", "secret": "key", "g/AGENTS.md": "all", "r/.git": "gitdir: ../store/worktrees/r",
		"store/worktrees/r/commondir": "../..", "r/AGENTS.md": "-> ../secret", "r/a/AGENTS.md": "../../secret/AGENTS.md",
		"r/a/b/AGENTS.md": "-> ../../../store/worktrees/r/commondir", "r/a/b/c/AGENTS.md": "-> ../../../x.md", "r/x.md": "fine",
	})
	view := &faultFS{FS: OS{}}
	c := Resolve(view, filepath.Join(base, "r/a/b/c"), Options{GlobalDir: filepath.Join(base, "g")})
	for _, path := range view.opened {
		if !within(filepath.Join(base, "r"), path) && !within(filepath.Join(base, "g"), path) {
			t.Errorf("opened %s", path)
		}
	}
	if len(view.opened) < 4 {
		t.Errorf("only %v were opened: the test sees nothing", view.opened)
	}
	if text := Render(c, Budget{1 << 20, 1 << 20}).Text; strings.Contains(text, "key") || !strings.Contains(text, "fine") {
		t.Errorf("text is\n%s", text)
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
	for range 300 {
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
		c := Resolve(view, dir, Options{Imports: true, Trust: []option.Trust{option.TrustAll, option.TrustNone}[rng.IntN(2)], Untrusted: option.UntrustedText})
		for _, d := range c.Diagnostics {
			refused[d.Code]++
		}
		for _, path := range view.opened {
			if !within(filepath.Join(base, "r"), path) || within(filepath.Join(base, "r/.git"), path) || within(filepath.Join(base, "r/out"), path) {
				t.Fatalf("opened %s", path)
			}
		}
		if text := Render(c, Budget{plenty, plenty}).Text; strings.Contains(text, "key") || view.open != 0 {
			t.Fatalf("%d handles left open, text is\n%s", view.open, text)
		}
	}
	for _, code := range []Code{CodeSymlinkEscape, CodeGitMetadata, CodeReadError, CodeSymlinkStub, CodeStubLoop, CodeImportRefused} {
		if refused[code] < 20 {
			t.Errorf("%s came only %d times: the test sees too little", code, refused[code])
		}
	}
}

package main

import (
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/lazy"
)

// writeTree plants files below a new directory.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	base := t.TempDir()
	plant(t, base, files)
	return base
}

// onTerminal runs a command as if its results went to a terminal.
func onTerminal(t *testing.T, args ...string) (string, error) {
	t.Helper()
	a := &app{in: strings.NewReader(""), err: io.Discard, terminal: true}
	err := a.execute(t.Context(), args)
	return a.result(), err
}

// TestAgentsOnTerminal: neither names nor texts of files move a cursor, colour a
// line, or turn one around.
func TestAgentsOnTerminal(t *testing.T) {
	t.Parallel()

	const evil = "a\x1b[31m\u202eb\nc\u0085"
	base := writeTree(t, map[string]string{
		".git/HEAD": "", "AGENTS.md": "Red \x1b[31m bell \a\u0085\n", evil + "/AGENTS.md": "\x9b31m\x00\n", evil + "/agents.md": "x\n",
		"no.yaml": "version: 1\nplugins:\n  - {name: agentsdoc, builtin: agentsdoc, config: {global: false}}\n",
	})
	dir, state := filepath.Join(base, evil), filepath.Join(base, "state.json")
	for _, args := range [][]string{
		{"chain", "--dir", dir, "--state", state},
		{"chain", "--dir", dir, "--text"},
		{"chain", "--dir", dir, "--text", "--preset", "codelia"},
		{"chain", "--dir", base, "--marker", evil},
		{"lint", "--dir", base},
		{"explain", filepath.Join(dir, "AGENTS.md")},
		{"explain", filepath.Join(dir, evil)},
		{"touch", "--state", state, dir, "--epoch", "new"},
		{"touch", "--state", state, "/" + evil},
		{"resume", "--state", state, "--dir", base},
	} {
		out, err := onTerminal(t, append([]string{"agents", "--config", filepath.Join(base, "no.yaml")}, args...)...)
		if codeOf(err) > exitNo || out == "" {
			t.Errorf("%q: %v, %d bytes of output", args, err, len(out))
		}
		for i, r := range out {
			if r != '\n' && unicode.IsControl(r) || r == '\u202e' {
				t.Errorf("%q: %U at %d of %q", args, r, i, out)
				break
			}
		}
	}
}

// newState writes a state file.
func newState(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.json")
	c := chain.Resolve(chain.OS{}, t.TempDir(), chain.Default())
	if err := beginState(t.Context(), path, lazy.Begin(0, c, chain.Rendering{})); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestStateHammer: no change is lost, however many want to make one.
func TestStateHammer(t *testing.T) {
	t.Parallel()

	if runtime.GOOS == "windows" {
		t.Skip("there are no such locks here")
	}
	path := newState(t)
	const workers, changes = 8, 10
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range changes {
				if err := changeState(t.Context(), path, func(s *lazy.State) { s.NewEpoch(s.Epoch + 1) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	err := changeState(t.Context(), path, func(s *lazy.State) {
		if s.Epoch != workers*changes {
			t.Errorf("%d of %d changes are there", s.Epoch, workers*changes)
		}
	})
	if err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".grapnel-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, error %v", left, err)
	}
}

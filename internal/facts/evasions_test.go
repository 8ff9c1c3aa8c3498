package facts_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/facts"
	"github.com/grapnelhq/grapnel/phases"
)

var prove = flag.Bool("prove", false, "run the evasions with bash")

const marker = "plantedsecret"

// project is a directory with a secret, links to it, and a script that prints it.
func project(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"sub", ".git"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{".env": "SECRET=" + marker + "\n", "sub/x.sh": "cat .env\n", "main.go": "package main\n", ".git/HEAD": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"notes.txt": ".env", "sub/up": "../.env"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	return dir
}

// rows returns the lines of a file of test data as kind and text.
func rows(t *testing.T, file string) (list [][2]string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		kind, text, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || kind == "#" {
			continue
		}
		if plain, err := strconv.Unquote(text); err == nil && text[0] == '"' {
			text = plain
		}
		list = append(list, [2]string{kind, text})
	}
	return list
}

func bash(t testing.TB, command string) json.RawMessage {
	t.Helper()
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	return args
}

// TestEvasions has ways to hide what a call does: what it does must be found, or said to be unknown.
func TestEvasions(t *testing.T) {
	t.Parallel()
	dir := project(t)
	found, unknown := 0, 0
	for _, row := range rows(t, "evasions.txt") {
		kind, text := row[0], row[1]
		tool, args := "Bash", bash(t, text)
		if kind == "call" {
			name, rest, _ := strings.Cut(text, " ")
			tool, args = name, json.RawMessage(rest)
		}
		f := facts.Of(tool, args, nil, dir, "/home/u")
		known := len(f.Secrets) > 0
		if kind == "rm" || kind == "curl" {
			known = slices.ContainsFunc(f.Commands, func(c phases.Command) bool { return c.Program == kind })
		}
		switch {
		case kind == "beyond":
		case known:
			found++
		case f.Unparsed:
			unknown++
		default:
			t.Errorf("%s %q is not found: %+v", kind, text, f)
		}
	}
	t.Logf("%d found, %d said to be unknown", found, unknown)
}

// TestEvasionsAreReal runs what the table says can be run.
func TestEvasionsAreReal(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil || !*prove {
		t.Skip("needs bash and -prove")
	}
	for _, row := range rows(t, "evasions.txt") {
		if row[0] != "run" {
			continue
		}
		t.Run(row[1], func(t *testing.T) {
			t.Parallel()
			dir := project(t)
			if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			run := func(command string) string {
				cmd := exec.CommandContext(ctx, "bash", "-c", command)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_GLOBAL=/dev/null", "PAGER=cat")
				cmd.WaitDelay = time.Second
				out, _ := cmd.CombinedOutput()
				return string(out)
			}
			if strings.Contains(row[1], "git") {
				run("git init -q && git config user.name a && git config user.email a@b && git add -A && git commit -qm a")
			}
			if out := run(row[1]); !strings.Contains(out, marker) {
				t.Errorf("%.300s", out)
			}
		})
	}
}

package conformance_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/sdk/plugintest"
)

// TestExamples: what authors copy keeps the contract.
func TestExamples(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("it builds and starts programs of several languages")
	}
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	if err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(examples, "plugin-ts", "dist", "main.js")
	const forbidden = `{"forbidden": "rm -rf"}`
	const house = `{"rules": ["Answer in English."], "forbidden": ["rm"]}`
	const freeze = `{"until": "2099-12-24T12:00:00Z", "tools": ["deploy"], "reason": "the year is ending"}`
	tests := []struct {
		name, transport, config string
		command                 func(t *testing.T) []string
	}{
		{"go over grpc", wire.Transport, freeze, goProgram(filepath.Join(examples, "plugin-go"))},
		{"go over stdio", wire.TransportStdio, freeze, goProgram(filepath.Join(examples, "plugin-go"))},
		{"python", wire.TransportStdio, house, script("python3", filepath.Join(examples, "plugin-python", "plugin.py"))},
		{"python without a kit", wire.TransportStdio, "", script("python3", filepath.Join(examples, "plugin-python-bare", "plugin.py"))},
		{"typescript", wire.TransportStdio, forbidden, script("node", built)},
		{"typescript in Bun", wire.TransportStdio, forbidden, script("bun", built)},
		{"typescript in Deno", wire.TransportStdio, forbidden, script("deno", "run", "-A", built)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			plugintest.Conformance(t, plugintest.Program{
				Command: tt.command(t), Transport: tt.transport, Config: tt.config, Env: []string{"PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"},
			})
		})
	}
}

func goProgram(dir string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()

		program := filepath.Join(t.TempDir(), "plugin")
		build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
		build.Dir = dir
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		return []string{program}
	}
}

// script is an interpreter and its arguments, of which the last is the script's file. The interpreter is the one behind
// wrappers such as pyenv's, which want an environment of their own.
func script(interpreter string, args ...string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()

		path, err := exec.LookPath(interpreter)
		if err != nil {
			t.Skipf("%s is not installed", interpreter)
		}
		file := args[len(args)-1]
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			t.Skipf("%s is not built", filepath.Base(filepath.Dir(filepath.Dir(file))))
		}
		if interpreter == "python3" {
			path = interpreterOf(t.Context(), path)
		}
		return append([]string{path}, args...)
	}
}

// interpreterOf is the program behind a wrapper.
func interpreterOf(ctx context.Context, path string) string {
	out, err := exec.CommandContext(ctx, path, "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return path
	}
	return strings.TrimSpace(string(out))
}

package docstest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/plugins/cedar"
	"github.com/grapnelhq/grapnel/plugins/commandhooks"
	"github.com/grapnelhq/grapnel/plugins/fileguard"
	"github.com/grapnelhq/grapnel/plugins/mcp"
	"github.com/grapnelhq/grapnel/plugins/memory"
	"github.com/grapnelhq/grapnel/plugins/scripted"
	"github.com/grapnelhq/grapnel/plugins/skills"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// firstParty are the plugins that documents may declare as built-in.
func firstParty() serve.Plugins {
	return serve.Plugins{agentsdoc.New, cedar.New, commandhooks.New, fileguard.New, mcp.New, memory.New, scripted.New, skills.New}
}

// goCommand runs the go command in a directory of a module, whose go.mod must be up
// to date unless args say -mod=mod. Modules come from where the developer's settings say; what the
// main module needs is in the cache already.
func goCommand(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// programs lists the blocks that are whole Go programs.
func programs(t *testing.T) []block {
	t.Helper()
	var out []block
	for _, b := range blocksOf(t, "go") {
		if strings.HasPrefix(b.text, "package ") || strings.Contains(b.text, "\npackage ") {
			out = append(out, b)
		}
	}
	return out
}

// userModule makes a module beside the repository, as a user of it and of its nested
// modules has one: one package a program, in p0, p1 and so on.
func userModule(t *testing.T, dir string, list []block) {
	t.Helper()
	const self = "github.com/grapnelhq/grapnel"
	var mod, sum strings.Builder
	mod.WriteString("module example.com/user\n\ngo 1.26.0\n")
	for _, below := range []string{"", "/providers", "/telemetry"} {
		module := filepath.Join(root(t), filepath.FromSlash(below))
		fmt.Fprintf(&mod, "\nrequire %s v0.0.0\nreplace %s => %s\n", self+below, self+below, module)
		for _, block := range requireBlock.FindAllString(fileText(t, filepath.Join(module, "go.mod")), -1) {
			mod.WriteString(block)
		}
		sum.WriteString(fileText(t, filepath.Join(module, "go.sum")))
	}
	writeFile(t, filepath.Join(dir, "go.mod"), mod.String())
	writeFile(t, filepath.Join(dir, "go.sum"), sum.String())
	for i, b := range list {
		writeFile(t, filepath.Join(dir, fmt.Sprintf("p%d", i), fileName(b)), b.text)
	}
}

// requireBlock is a list of requirements in a go.mod file.
var requireBlock = regexp.MustCompile(`(?s)\nrequire \(\n.*?\n\)\n`)

func fileText(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fileName is where a program belongs: tests are files of tests.
func fileName(b block) string {
	if strings.Contains(b.text, "\"testing\"") {
		return "main_test.go"
	}
	return "main.go"
}

// TestProgramsCompile builds all programs, those of README.md included, and
// runs those that are tests.
func TestProgramsCompile(t *testing.T) {
	t.Parallel()

	list, dir := programs(t), t.TempDir()
	userModule(t, dir, list)
	if err := goCommand(t.Context(), dir, "vet", "-mod=mod", "./..."); err != nil {
		for i, b := range list {
			t.Logf("p%d is %s:%d", i, b.doc, b.line)
		}
		t.Error(err)
	}
	for i, b := range list {
		if fileName(b) == "main_test.go" {
			if err := goCommand(t.Context(), dir, "test", "-mod=mod", fmt.Sprintf("./p%d", i)); err != nil {
				t.Errorf("%s:%d: %v", b.doc, b.line, err)
			}
		}
	}
}

// readme returns README.md's one block that holds a text.
func readme(t *testing.T, lang, holds string) block {
	t.Helper()
	for _, b := range blocksOf(t, lang) {
		if b.doc == "README.md" && strings.Contains(b.text, holds) {
			return b
		}
	}
	t.Fatalf("README.md has no block of %s with %q", lang, holds)
	return block{}
}

// TestReadmePrograms does what README.md tells its readers to do: build the
// plugin, declare it, build the host, run it. The prompt must hold what the
// plugin says.
func TestReadmePrograms(t *testing.T) {
	if !storetest.Long() {
		t.Skip("it builds programs: it runs with GRAPNEL_LONG=1")
	}
	t.Parallel()

	dir := t.TempDir()
	host, plugin := readme(t, "go", "runtime.Load"), readme(t, "go", "serve.Main")
	declaration := readme(t, "yaml", "command: ./greeter")
	userModule(t, dir, []block{host, plugin})
	for i, name := range []string{"host", "greeter"} {
		if err := goCommand(t.Context(), dir, "build", "-mod=mod", "-o", filepath.Join(dir, name), fmt.Sprintf("./p%d", i)); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count([]block{host, plugin}[i].text, "\n"); n > 85-45*i {
			t.Errorf("the %s has %d lines, too many for README.md", name, n)
		}
	}
	writeFile(t, filepath.Join(dir, "grapnel.yaml"), declaration.text)
	writeFile(t, filepath.Join(dir, "tree", "AGENTS.md"), "Answer in whole sentences.\n")
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "host"), filepath.Join(dir, "tree"))
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("host: %v\n%s%s", err, out, &stderr)
	}
	for _, want := range []string{"Answer in whole sentences.", "## Greeting\n\nGreet the user by name.", "greeting from greeter"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the host's output lacks %q:\n%s", want, out)
		}
	}
}

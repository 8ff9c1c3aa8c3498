package docstest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// goCommand runs the go command in a folder. Modules come from where the
// developer's settings say; what the main module needs is in the cache already.
func goCommand(dir string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off")
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

// userModule makes a module beside the repository, as a user has one: one
// package a program, in p0, p1 and so on.
func userModule(t *testing.T, dir string, list []block) {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root(t), "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	_, requires, _ := strings.Cut(string(mod), "\n") // all but the module's name
	const self = "github.com/grapnelhq/grapnel"
	writeFile(t, filepath.Join(dir, "go.mod"), fmt.Sprintf("module example.com/user\n%s\nrequire %s v0.0.0\nreplace %s => %s\n", requires, self, self, root(t)))
	writeFile(t, filepath.Join(dir, "go.sum"), string(sum))
	for i, b := range list {
		writeFile(t, filepath.Join(dir, fmt.Sprintf("p%d", i), fileName(b)), b.text)
	}
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
	if err := goCommand(dir, "vet", "./..."); err != nil {
		for i, b := range list {
			t.Logf("p%d is %s:%d", i, b.doc, b.line)
		}
		t.Error(err)
	}
	for i, b := range list {
		if fileName(b) == "main_test.go" {
			if err := goCommand(dir, "test", fmt.Sprintf("./p%d", i)); err != nil {
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
	t.Parallel()

	dir := t.TempDir()
	host, plugin := readme(t, "go", "runtime.Load"), readme(t, "go", "serve.Main")
	declaration := readme(t, "yaml", "command: ./greeter")
	userModule(t, dir, []block{host, plugin})
	for i, name := range []string{"host", "greeter"} {
		if err := goCommand(dir, "build", "-o", filepath.Join(dir, name), fmt.Sprintf("./p%d", i)); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count([]block{host, plugin}[i].text, "\n"); n > 40 {
			t.Errorf("the %s has %d lines; README.md says about thirty", name, n)
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

// TestExamplePlugin builds examples/plugin-go from its own module and runs it by
// its own configuration.
func TestExamplePlugin(t *testing.T) {
	t.Parallel()

	dir, source := t.TempDir(), filepath.Join(root(t), "examples", "plugin-go")
	if err := goCommand(source, "build", "-o", filepath.Join(dir, "freeze"), "."); err != nil {
		t.Fatal(err)
	}
	declaration, err := os.ReadFile(filepath.Join(source, "grapnel.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "grapnel.yaml"), string(declaration))
	cfg, err := config.Load(filepath.Join(dir, "grapnel.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	eng := newEngine(t, cfg, runtime.Options{})
	done, err := eng.CompileTurn(t.Context(), phases.Turn{ThreadID: "t", TurnID: "1"}, runtime.CompileInput{ToolCalling: true})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(done.Prompt.FullText, "No changes until 24 December 2099") || len(done.Tools) != 1 {
		t.Errorf("%d tools, prompt:\n%s", len(done.Tools), done.Prompt.FullText)
	}
}

// TestPhaseTable compares the author's table of phases with the engine's.
func TestPhaseTable(t *testing.T) {
	t.Parallel()

	guide := text(t, "docs/PLUGINS.md")
	for _, row := range phases.Standard().Rows() {
		kinds, budget := "–", "background"
		if len(row.Kinds) > 0 {
			words := make([]string, len(row.Kinds))
			for i, k := range row.Kinds {
				words[i] = "`" + string(k) + "`"
			}
			kinds = strings.Join(words, ", ")
		}
		if !row.Queue {
			budget = row.Budget.String()
		}
		field := strings.TrimSuffix(reflect.TypeOf(row.NewInput()).Elem().Name(), "Input")
		if line := fmt.Sprintf("| `%s` | `%s` | %s | %s | %s |\n", row.Phase, field, row.When, kinds, budget); !strings.Contains(guide, line) {
			t.Errorf("docs/PLUGINS.md lacks the line\n%s", line)
		}
	}
	for _, kind := range phases.Kinds() {
		if !strings.Contains(guide, fmt.Sprintf("\n| `%s` | ", kind)) {
			t.Errorf("docs/PLUGINS.md lacks the kind %s", kind)
		}
	}
}

// qualified is a name of one of our public packages in code.
var qualified = regexp.MustCompile(`\b(phases|sdk|serve|plugintest|runtime|builtin|config|compiler|manifest)\.([A-Z]\w*)`)

// TestNames looks up every qualified name of ours that a document mentions, in
// running text and in fragments of code.
func TestNames(t *testing.T) {
	t.Parallel()

	known := map[string]map[string]bool{}
	for pkg, dir := range map[string]string{"serve": "sdk/serve", "plugintest": "sdk/plugintest"} {
		known[pkg] = exported(t, dir)
	}
	for _, pkg := range []string{"phases", "sdk", "runtime", "builtin", "config", "compiler", "manifest"} {
		known[pkg] = exported(t, pkg)
	}
	found := 0
	for _, d := range documents(t) {
		number := 0
		for line := range strings.Lines(d.text) {
			number++
			for _, m := range qualified.FindAllStringSubmatch(line, -1) {
				found++
				if !known[m[1]][m[2]] {
					t.Errorf("%s:%d: package %s has no %s", d.name, number, m[1], m[2])
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d names: the search does not work", found)
	}
}

// exported returns the exported top-level names of a package.
func exported(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(dir), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			addNames(names, decl)
		}
	}
	return names
}

// addNames notes what one declaration declares.
func addNames(names map[string]bool, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names[d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names[s.Name.Name] = true
			case *ast.ValueSpec:
				for _, id := range s.Names {
					names[id.Name] = true
				}
			}
		}
	}
}

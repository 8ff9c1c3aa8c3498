package docstest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

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

// TestFrames wants every frame of the wire contract, every feature and every
// cause explained.
func TestFrames(t *testing.T) {
	t.Parallel()

	proto, err := os.ReadFile(filepath.Join(root(t), "proto", "grapnel", "plugin", "v1", "plugin.proto"))
	if err != nil {
		t.Fatal(err)
	}
	wire := text(t, "docs/WIRE.md")
	bodies := 0
	for _, frame := range []string{"HostFrame", "PluginFrame"} {
		_, message, _ := strings.Cut(string(proto), "\nmessage "+frame+" {")
		message, _, _ = strings.Cut(message, "\n}")
		_, oneof, _ := strings.Cut(message, "oneof body {")
		for _, m := range regexp.MustCompile(`(\w+) = \d+;`).FindAllStringSubmatch(oneof, -1) {
			bodies++
			if !strings.Contains(wire, "`"+m[1]+"`") {
				t.Errorf("docs/WIRE.md does not explain %s of %s", m[1], frame)
			}
		}
	}
	if bodies < 17 {
		t.Errorf("found %d bodies: the search does not work", bodies)
	}
	for _, feature := range phases.Features() {
		if !strings.Contains(wire, "`"+feature+"`") {
			t.Errorf("docs/WIRE.md does not name the feature %s", feature)
		}
	}
	guide := text(t, "docs/CONFIGURATION.md")
	for _, cause := range phases.FailureCauses() {
		if !strings.Contains(guide, "`"+string(cause)+"`") {
			t.Errorf("docs/CONFIGURATION.md does not explain the cause %s", cause)
		}
	}
}

// TestManifestKeys wants every top-level key of a manifest in its reference.
func TestManifestKeys(t *testing.T) {
	t.Parallel()

	var record map[string]json.RawMessage
	if err := json.Unmarshal(canonical(t), &record); err != nil {
		t.Fatal(err)
	}
	reference := text(t, "docs/MANIFEST.md")
	for _, key := range slices.Sorted(maps.Keys(record)) {
		if !strings.Contains(reference, "`"+key+"`") {
			t.Errorf("docs/MANIFEST.md does not explain %s", key)
		}
	}
	if len(record) < 25 {
		t.Errorf("found %d keys: the search does not work", len(record))
	}
}

// canonical is an empty manifest in JSON.
func canonical(t *testing.T) []byte {
	t.Helper()
	m := manifest.New()
	data, err := manifest.Canonical(&m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// qualified is a name of one of our public packages in code.
var qualified = regexp.MustCompile(`(?:^|[^\w.])(phases|sdk|serve|plugintest|runtime|builtin|config|compiler|manifest)\.([A-Z]\w*)`)

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

// TestArchitecture compares the table of packages with what they import.
func TestArchitecture(t *testing.T) {
	t.Parallel()

	rows := regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\|.*\\| ([^|]+) \\|$").FindAllStringSubmatch(text(t, "docs/ARCHITECTURE.md"), -1)
	if len(rows) < 15 {
		t.Fatalf("found %d packages: the search does not work", len(rows))
	}
	for _, row := range rows {
		if row[1] == "cmd/grapnel" {
			continue
		}
		want := strings.Join(slices.Sorted(maps.Keys(imports(t, row[1]))), ", ")
		if want == "" {
			want = "–"
		}
		if row[2] != want {
			t.Errorf("docs/ARCHITECTURE.md: %s imports %s, and the table says %s", row[1], want, row[2])
		}
	}
}

// imports returns the last elements of our own packages that a package imports.
func imports(t *testing.T, dir string) map[string]bool {
	t.Helper()
	pkg, err := build.ImportDir(filepath.Join(root(t), filepath.FromSlash(dir)), 0)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, imp := range pkg.Imports {
		if rest, ok := strings.CutPrefix(imp, "github.com/grapnelhq/grapnel/"); ok {
			own[path.Base(rest)] = true
		}
	}
	return own
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

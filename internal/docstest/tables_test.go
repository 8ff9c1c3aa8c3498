package docstest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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

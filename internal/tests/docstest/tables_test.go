package docstest

import (
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
	for _, dir := range []string{"phases", "sdk", "sdk/serve", "sdk/plugintest", "runtime", "builtin", "config", "compiler", "manifest"} {
		known[filepath.Base(dir)], _ = declared(t, dir, false)
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

// declared returns the top-level names of a package's files, and their text.
func declared(t *testing.T, dir string, tests bool) (names map[string]bool, source string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(dir), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names = map[string]bool{}
	var all strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") != tests {
			continue
		}
		data := fileText(t, file)
		all.WriteString(data)
		parsed, err := parser.ParseFile(token.NewFileSet(), file, data, 0)
		if err != nil {
			t.Fatal(err)
		}
		for name := range parsed.Scope.Objects {
			names[name] = true
		}
	}
	return names, all.String()
}

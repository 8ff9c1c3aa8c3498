package docstest

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testName is a test in code: its package below the root, its name, and for one
// of the table of failures the number and name of the case.
var testName = regexp.MustCompile("(?:`|\\./)([a-z/0-9]+):((?:Test|Benchmark|Fuzz)[A-Za-z0-9_]+)(?:/(?:[a-z]+/)?([0-9]{2})_([a-z0-9-]+))?")

// TestSecurityClaims wants every test that the document about security names to
// exist, since each claim stands with the test that proves it, and those of `make fuzz`.
func TestSecurityClaims(t *testing.T) {
	t.Parallel()

	claims := testName.FindAllStringSubmatch(text(t, "docs/SECURITY.md"), -1)
	fuzzed := testName.FindAllStringSubmatch(fileText(t, filepath.Join(root(t), "Makefile")), -1)
	if len(claims) < 40 || len(fuzzed) < 5 {
		t.Fatalf("%d names of tests, %d to fuzz: the search does not work", len(claims), len(fuzzed))
	}
	tests, sources := map[string]map[string]bool{}, map[string]string{}
	for _, m := range append(claims, fuzzed...) {
		pkg, name, number, title := m[1], m[2], m[3], m[4]
		if tests[pkg] == nil {
			tests[pkg], sources[pkg] = declared(t, pkg)
		}
		if !tests[pkg][name] {
			t.Errorf("docs/SECURITY.md or the Makefile names %s:%s, and there is no such test", pkg, name)
		}
		if number == "" {
			continue
		}
		row := regexp.MustCompile(`row: ` + strings.TrimPrefix(number, "0") + `, (name|mode): "` + regexp.QuoteMeta(title) + `"`)
		if !row.MatchString(sources[pkg]) {
			t.Errorf("docs/SECURITY.md names %s:%s/%s_%s, and the table has no such case", pkg, name, number, title)
		}
	}
}

// declared returns the top-level names of a package's tests, and their text.
func declared(t *testing.T, dir string) (names map[string]bool, source string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names = map[string]bool{}
	var all strings.Builder
	for _, file := range files {
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

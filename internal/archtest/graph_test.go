package archtest

import (
	"errors"
	"fmt"
	"go/build"
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// importGraph maps each package (its folder below the root) to what its
// non-test files import, and each import to the first place that does it.
type importGraph map[string]map[string]string

// loadGraph reads the import graph of all modules below root, as the union
// over platforms. It reads sources only: nothing is resolved or built, so a
// nested module needs no download.
func loadGraph(root string) (importGraph, error) {
	dirs, err := goDirs(root)
	if err != nil {
		return nil, err
	}
	graph := importGraph{}
	for _, dir := range dirs {
		imports := map[string]string{}
		buildable := false
		for _, ctxt := range platforms() {
			pkg, err := ctxt.ImportDir(filepath.Join(root, filepath.FromSlash(dir)), 0)
			if _, none := errors.AsType[*build.NoGoError](err); none {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("package %s for %s: %w", dir, ctxt.GOOS, err)
			}
			buildable = buildable || len(pkg.GoFiles)+len(pkg.CgoFiles) > 0
			addImports(imports, root, pkg)
		}
		if buildable {
			graph[dir] = imports
		}
	}
	return graph, nil
}

// addImports notes where pkg imports what.
func addImports(imports map[string]string, root string, pkg *build.Package) {
	for imp, at := range pkg.ImportPos {
		if _, known := imports[imp]; known {
			continue
		}
		file, err := filepath.Rel(root, at[0].Filename)
		if err != nil {
			file = at[0].Filename
		}
		imports[imp] = fmt.Sprintf("%s:%d", filepath.ToSlash(file), at[0].Line)
	}
}

// checkGraph lists the edges that the rules do not allow, and the packages
// that they do not know.
func checkGraph(rules ruleSet, graph importGraph) []string {
	var problems []string
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		if !rules.covers(pkg) {
			problems = append(problems, fmt.Sprintf("package %s is in no rule of layers_test.go", pkg))
			continue
		}
		for _, imp := range slices.Sorted(maps.Keys(graph[pkg])) {
			if !rules.allows(pkg, imp) {
				problems = append(problems, fmt.Sprintf("%s: %s must not import %s (layers_test.go)", graph[pkg][imp], pkg, imp))
			}
		}
	}
	return problems
}

// impure are the parts of the standard library through which a package reaches
// files, processes, the network, logs or chance.
var impure = []string{
	"crypto/rand", "io/ioutil", "log", "math/rand", "net", "os", "plugin", "runtime/pprof", "syscall", "testing",
}

// purePackages promise to be functions of their arguments: values in, values
// out.
var purePackages = []string{
	"phases", "manifest", "compiler", "internal/digest", "internal/text", "internal/recent", "internal/cond", "internal/engine/plan", "internal/engine/merge",
	"internal/tree",
	"internal/facts/protect", "internal/facts/shell", "internal/facts/secret",
	"internal/memory/recall", "internal/memory/turnpolicy", "plugins/memory/internal/toolset",
}

// checkPure lists imports that break the promise of purePackages. Importing
// net/url is no I/O; all else below the names of impure counts.
func checkPure(graph importGraph) []string {
	var problems []string
	for _, pkg := range purePackages {
		for _, imp := range slices.Sorted(maps.Keys(graph[pkg])) {
			bad := slices.ContainsFunc(impure, func(p string) bool { return matchPath(p+"/...", imp) })
			if bad && imp != "net/url" {
				problems = append(problems, fmt.Sprintf("%s: %s is pure and must not import %s", graph[pkg][imp], pkg, imp))
			}
		}
	}
	return problems
}

func TestImportGraph(t *testing.T) {
	t.Parallel()

	rules, err := parseRules(layers)
	if err != nil {
		t.Fatal(err)
	}
	graph, err := loadGraph(repoRoot(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := graph["internal/archtest"]; !ok {
		t.Fatal("the graph lacks this very package: the walk does not work")
	}
	report(t, checkGraph(rules, graph))
	report(t, checkPure(graph))
}

// TestLayersForbid pins edges whose absence is a promise to users, so that a
// too generous line in the text is noticed.
func TestLayersForbid(t *testing.T) {
	t.Parallel()

	rules, err := parseRules(layers)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ pkg, imp string }{
		{"runtime", modulePath + "/sdk"},
		{"sdk", modulePath + "/runtime"},
		{"sdk/serve", modulePath + "/runtime"},
		{"runtime", modulePath + "/plugins/agentsdoc"},
		{"runtime", "google.golang.org/grpc"},
		{"phases", modulePath + "/internal/text"},
		{"compiler", modulePath + "/plugins/agentsdoc"},
		{"plugins/memory", modulePath + "/plugins/agentsdoc"},
		{"plugins/agentsdoc", modulePath + "/internal/text"},
		{"examples/host", modulePath + "/internal/wire"},
		{"internal/wire", modulePath + "/runtime"},
	}
	for _, tt := range tests {
		if rules.allows(tt.pkg, tt.imp) {
			t.Errorf("layers allow %s to import %s", tt.pkg, tt.imp)
		}
	}
}

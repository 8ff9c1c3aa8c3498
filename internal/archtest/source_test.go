package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sourcePkg is the syntax of one folder, test files and files for all systems
// included. It need not compile.
type sourcePkg struct {
	dir   string // slash-separated, below the root
	fset  *token.FileSet
	files []sourceFile
}

// sourceFile is one parsed file.
type sourceFile struct {
	name string // base name
	ast  *ast.File
}

// isTest reports whether the file is only part of tests.
func (f sourceFile) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// loadSources parses all Go files below root.
func loadSources(root string) ([]sourcePkg, error) {
	dirs, err := goDirs(root)
	if err != nil {
		return nil, err
	}
	var pkgs []sourcePkg
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
		if err != nil {
			return nil, err
		}
		pkg := sourcePkg{dir: dir, fset: token.NewFileSet()}
		for _, name := range names {
			file, err := parser.ParseFile(pkg.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, fmt.Errorf("package %s: %w", dir, err)
			}
			pkg.files = append(pkg.files, sourceFile{filepath.Base(name), file})
		}
		pkgs = append(pkgs, pkg)
	}
	return pkgs, nil
}

// problem formats a finding with its place.
func (p sourcePkg) problem(pos token.Pos, format string, args ...any) string {
	at := p.fset.Position(pos)
	return fmt.Sprintf("%s:%d: %s", path.Join(p.dir, filepath.Base(at.Filename)), at.Line, fmt.Sprintf(format, args...))
}

// checkTestSleep lists sleeps in tests and test kits that take real time: they
// wait for a signal instead. In a synctest bubble a sleep only moves the fake
// clock, so a function that itself uses package synctest may sleep.
func checkTestSleep(p sourcePkg) []string {
	bubbles := bubbleHelpers(p)
	var problems []string
	for _, f := range p.files {
		if !f.isTest() && !isTestKit(p.dir) {
			continue
		}
		for _, decl := range f.ast.Decls {
			if len(usesOf(f.ast, decl, "testing/synctest", "Test", "Wait")) > 0 || callsAny(decl, bubbles) {
				continue
			}
			for _, use := range usesOf(f.ast, decl, "time", "Sleep") {
				problems = append(problems, p.problem(use.Pos(), "time.Sleep in a test: wait for a signal, or use a synctest bubble"))
			}
		}
	}
	return problems
}

// bubbleHelpers are the package's own functions that run a test in a bubble.
func bubbleHelpers(p sourcePkg) map[string]bool {
	names := map[string]bool{}
	for _, f := range p.files {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && len(usesOf(f.ast, decl, "testing/synctest", "Test")) > 0 {
				names[fn.Name.Name] = true
			}
		}
	}
	return names
}

// callsAny reports whether a declaration calls one of the named functions of its
// own package.
func callsAny(decl ast.Decl, names map[string]bool) bool {
	found := false
	ast.Inspect(decl, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if id, ok := call.Fun.(*ast.Ident); ok && names[id.Name] {
				found = true
			}
		}
		return !found
	})
	return found
}

// clockNames are the functions of package time that read or wait for a clock.
var clockNames = []string{
	"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until",
}

// checkClock lists uses of the clock in packages that promise to be pure: the
// caller passes the time as a value.
func checkClock(p sourcePkg) []string {
	var problems []string
	if !slices.Contains(purePackages, p.dir) {
		return nil
	}
	for _, f := range p.files {
		if f.isTest() {
			continue
		}
		for _, use := range usesOf(f.ast, f.ast, "time", clockNames...) {
			problems = append(problems, p.problem(use.Pos(), "%s is pure and must not use time.%s", p.dir, use.Sel.Name))
		}
	}
	return problems
}

// goroutineOwners are the packages that may start goroutines; they also wait
// for them.
var goroutineOwners = []string{
	"runtime", "internal/engine/pool", "internal/engine/bounded", "internal/engine/memqueue", "internal/proc", "internal/engine/supervise", "internal/wire", "sdk/serve",
	// The system tells of changed files when it likes, and somebody has to listen.
	"plugins/agentsdoc/internal/watch",
	// Each job runs in one.
	"store/internal/jobqueue",
	// Each server is kept connected by one; one waits for its program, one for its session.
	"plugins/mcp/internal/mcpclient",
	// One listens to the database, one reads what changed, one thins, while it serves.
	"gateway",
	// One reads and one writes each connection; calls end before their connection.
	"internal/rpc", "internal/cli/client",
	// Somebody waits for SIGHUP while the gateway serves, and a vocabulary is unpacked while plugins start.
	"cmd/grapnel",
	// Records are settled beside the appends, which must not wait for that, and verified on all processors.
	"store",
	// It reads what a plugin sends while it sends, and may wait for a connection that is closed.
	"internal/conformance",
	// One passes on the events of a run, which the framework has in a channel.
	"adapters/eino",
	// Sessions are judged several at once.
	"internal/agents/backtest",
	// It runs several agents at once, which take long to start.
	"tools/hosts",
}

// checkGoroutines lists starts of goroutines outside goroutineOwners, tests and
// test kits. A method named Go that is given one function counts as one:
// sync.WaitGroup and errgroup.Group start goroutines by it.
func checkGoroutines(p sourcePkg) []string {
	var problems []string
	if slices.Contains(goroutineOwners, p.dir) || isTestKit(p.dir) {
		return nil
	}
	for _, f := range p.files {
		if f.isTest() {
			continue
		}
		for n := range ast.Preorder(f.ast) {
			if startsGoroutine(n) {
				problems = append(problems, p.problem(n.Pos(), "goroutine started in %s", p.dir))
			}
		}
	}
	return problems
}

// startsGoroutine reports whether a node is a go statement or a call of the
// shape group.Go(func).
func startsGoroutine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Go" && len(n.Args) == 1
	default:
		return false
	}
}

// isTestKit reports whether a package exists for tests, by its name: sdk/plugintest.
func isTestKit(dir string) bool { return strings.HasSuffix(dir, "test") }

// usesOf returns the places below node that name one of the given members of
// a package of the standard library, also under a name chosen by the import.
func usesOf(file *ast.File, node ast.Node, pkgPath string, names ...string) []*ast.SelectorExpr {
	local := ""
	for _, imp := range file.Imports {
		if imp.Path.Value != `"`+pkgPath+`"` {
			continue
		}
		local = path.Base(pkgPath)
		if imp.Name != nil {
			local = imp.Name.Name
		}
	}
	var uses []*ast.SelectorExpr
	if local == "" {
		return nil
	}
	for n := range ast.Preorder(node) {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains(names, sel.Sel.Name) {
			continue
		}
		if id, ok := sel.X.(*ast.Ident); ok && id.Name == local {
			uses = append(uses, sel)
		}
	}
	return uses
}

func TestSources(t *testing.T) {
	t.Parallel()

	pkgs, err := loadSources(repoRoot(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) == 0 {
		t.Fatal("no packages found: the walk does not work")
	}
	for _, pkg := range pkgs {
		report(t, checkTestSleep(pkg))
		report(t, checkClock(pkg))
		report(t, checkGoroutines(pkg))
	}
}

package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fileGraph maps each file of a package to the files whose functions it calls, and each
// of those to one such function.
type fileGraph map[string]map[string]string

// noImports gives every import an empty package: calls within one package can be
// resolved without the others.
type noImports struct{}

func (noImports) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

// loadFileGraph reads which file of the package in a directory calls which other one.
// Functions and methods count, calls through an interface and types do not.
func loadFileGraph(dir string) (fileGraph, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	check := types.Config{Importer: noImports{}, Error: func(error) {}} // what other packages have is not known
	_, _ = check.Check(dir, fset, files, info)
	graph := fileGraph{}
	for id, object := range info.Uses {
		fn, ok := object.(*types.Func)
		if !ok || fn.Pkg() == nil || fn.Pkg().Path() != dir || isInterfaceMethod(fn) {
			continue
		}
		from, to := filepath.Base(fset.Position(id.Pos()).Filename), filepath.Base(fset.Position(fn.Pos()).Filename)
		if from == to {
			continue
		}
		if graph[from] == nil {
			graph[from] = map[string]string{}
		}
		if known := graph[from][to]; known == "" || fn.Name() < known {
			graph[from][to] = fn.Name()
		}
	}
	return graph, nil
}

// isInterfaceMethod reports whether a method is that of an interface.
func isInterfaceMethod(fn *types.Func) bool {
	sig, ok := fn.Type().(*types.Signature)
	return ok && sig.Recv() != nil && types.IsInterface(sig.Recv().Type())
}

// cycle returns a way from a file back to itself, with the functions called on it; nil
// if there is none.
func (g fileGraph) cycle() []string {
	done := map[string]bool{}
	var way []string
	var visit func(file string) []string
	visit = func(file string) []string {
		if i := slices.Index(way, file); i >= 0 {
			var lines []string
			for j := i; j < len(way); j++ {
				next := file
				if j+1 < len(way) {
					next = way[j+1]
				}
				lines = append(lines, fmt.Sprintf("%s calls %s of %s", way[j], g[way[j]][next], next))
			}
			return lines
		}
		if done[file] {
			return nil
		}
		way = append(way, file)
		for _, next := range slices.Sorted(maps.Keys(g[file])) {
			if found := visit(next); found != nil {
				return found
			}
		}
		way, done[file] = way[:len(way)-1], true
		return nil
	}
	for _, file := range slices.SortedFunc(maps.Keys(g), cmp.Compare) {
		if found := visit(file); found != nil {
			return found
		}
	}
	return nil
}

// TestFilesCallDownwards: the files of the engine can be read from top to bottom. None
// calls a file that calls it, directly or through others.
func TestFilesCallDownwards(t *testing.T) {
	t.Parallel()

	graph, err := loadFileGraph(filepath.Join("..", "..", "runtime"))
	if err != nil {
		t.Fatal(err)
	}
	if len(graph) == 0 {
		t.Fatal("no calls were found")
	}
	if cycle := graph.cycle(); cycle != nil {
		t.Errorf("runtime: files call each other in a cycle:\n\t%s", strings.Join(cycle, "\n\t"))
	}
}

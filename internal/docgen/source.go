package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/grapnelhq/grapnel"

// parse reads the non-test files of a package, comments included, in order of their names.
func parse(root, dir string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no Go files", dir)
	}
	return files, nil
}

type constant struct{ name, value, doc string }

func constants(root, dir string, match func(name string) bool) ([]constant, error) {
	files, err := parse(root, dir)
	if err != nil {
		return nil, err
	}
	var found []constant
	for _, file := range files {
		for _, decl := range file.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, spec := range d.Specs {
				s := spec.(*ast.ValueSpec) //nolint:forcetypeassert // a constant is one
				doc := s.Doc.Text()
				if doc == "" {
					doc = s.Comment.Text()
				}
				if doc == "" && !d.Lparen.IsValid() {
					doc = d.Doc.Text()
				}
				for i, id := range s.Names {
					if i < len(s.Values) && match(id.Name) {
						if value, ok := stringOf(s.Values[i]); ok {
							found = append(found, constant{id.Name, value, cell(id.Name, doc)})
						}
					}
				}
			}
		}
	}
	return found, nil
}

func stringOf(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(lit.Value)
	return value, err == nil
}

var docLink = regexp.MustCompile(`\[\*?([\w.]+)\]`)

// cell makes the text of a cell from a doc comment: without the name that it begins
// with, without line breaks and the last full stop.
func cell(name, doc string) string {
	text := strings.Join(strings.Fields(doc), " ")
	for _, start := range []string{name + " is ", name + " are ", name + " means: ", name + " means ", name + ": ", name + " "} {
		if rest, ok := strings.CutPrefix(text, start); ok {
			text = rest
			break
		}
	}
	return docLink.ReplaceAllString(strings.TrimSuffix(text, "."), "`$1`")
}

type goPackage struct {
	// dir is slash-separated, below the root.
	dir, doc string
	imports  []string
	// level is 0 for a package that imports none of ours, else one more than the highest of its imports.
	level int
}

// packages reads all packages of the repository, nested modules included, without
// examples, and without commands but cmd/grapnel. Platform files are those of Linux.
func packages(root string) (map[string]*goPackage, error) {
	context := build.Default
	context.GOOS, context.GOARCH = "linux", "amd64"
	all := map[string]*goPackage{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(rel)
		if strings.HasPrefix(d.Name(), ".") && dir != "." || d.Name() == "testdata" || dir == "examples" || dir == "tools" {
			return filepath.SkipDir
		}
		pkg, err := context.ImportDir(name, build.ImportComment)
		if err != nil || len(pkg.GoFiles) == 0 || pkg.Name == "main" && dir != "cmd/grapnel" {
			return nil //nolint:nilerr // not a package
		}
		p := &goPackage{dir: dir, doc: cell("Package "+pkg.Name, pkg.Doc)}
		for _, imp := range pkg.Imports {
			if own, ok := strings.CutPrefix(imp, module+"/"); ok {
				p.imports = append(p.imports, own)
			}
		}
		all[dir] = p
		return nil
	})
	for _, p := range all {
		p.setLevel(all)
	}
	return all, err
}

func (p *goPackage) setLevel(all map[string]*goPackage) {
	if p.level > 0 {
		return
	}
	for _, imp := range p.imports {
		if q := all[imp]; q != nil {
			q.setLevel(all)
			p.level = max(p.level, q.level+1)
		}
	}
}

// engine lists the packages that make up the engine: runtime and all that it imports.
func engine(root string) ([]string, error) {
	all, err := packages(root)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	var visit func(dir string)
	visit = func(dir string) {
		if all[dir] == nil || found[dir] {
			return
		}
		found[dir] = true
		for _, imp := range all[dir].imports {
			visit(imp)
		}
	}
	visit("runtime")
	return slices.Sorted(maps.Keys(found)), nil
}

func packageTable(root string) (string, error) {
	all, err := packages(root)
	if err != nil {
		return "", err
	}
	var rows [][]string
	for _, p := range slices.SortedFunc(maps.Values(all), func(a, b *goPackage) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(a.dir, b.dir))
	}) {
		names := "–"
		switch {
		case p.dir == "cmd/grapnel":
			names = "whatever it needs"
		case len(p.imports) > 0:
			own := make([]string, len(p.imports))
			for i, imp := range p.imports {
				own[i] = path.Base(imp)
			}
			slices.Sort(own)
			names = strings.Join(own, ", ")
		}
		rows = append(rows, []string{code(p.dir), p.doc, names})
	}
	return grid([]string{"package", "duty", "imports of ours"}, rows), nil
}

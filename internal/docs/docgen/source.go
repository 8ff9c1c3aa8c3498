package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
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

// engine lists the packages that make up the engine, for Linux: runtime and all of ours that it imports.
func engine(root string) ([]string, error) {
	list := exec.CommandContext(context.Background(), "go", "list", "-deps", "./runtime")
	list.Dir, list.Env = root, append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var own []string
	for path := range strings.FieldsSeq(string(out)) {
		if dir, ok := strings.CutPrefix(path, module+"/"); ok {
			own = append(own, dir)
		}
	}
	slices.Sort(own)
	return own, nil
}

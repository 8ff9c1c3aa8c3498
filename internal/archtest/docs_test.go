package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// checkPackageDoc reports a package that no file introduces. Folders that hold
// tests only need none.
func checkPackageDoc(p sourcePkg) []string {
	shipped := false
	for _, f := range p.files {
		if f.isTest() {
			continue
		}
		shipped = true
		if f.ast.Doc != nil && strings.TrimSpace(f.ast.Doc.Text()) != "" {
			return nil
		}
	}
	if !shipped {
		return nil
	}
	return []string{fmt.Sprintf("%s: no package comment", p.dir)}
}

// checkExportedDoc lists exported names of public packages without a doc
// comment: constants, variables, types, functions and methods of exported
// types. A comment on a group, or behind a value on its line, counts for the
// values in it.
func checkExportedDoc(p sourcePkg) []string {
	var problems []string
	if !isPublic(p.dir) {
		return nil
	}
	for _, f := range p.files {
		if f.isTest() || f.ast.Name.Name == "main" || ast.IsGenerated(f.ast) {
			continue
		}
		for _, decl := range f.ast.Decls {
			for _, id := range undocumented(decl) {
				problems = append(problems, p.problem(id.Pos(), "exported %s has no doc comment", id.Name))
			}
		}
	}
	return problems
}

// undocumented returns the exported names of one declaration that lack a doc
// comment.
func undocumented(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && isExportedReceiver(d.Recv) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		return undocumentedSpecs(d)
	}
	return nil
}

// undocumentedSpecs is undocumented for const, var and type declarations. The
// comment of a parenthesised type group does not introduce each type.
func undocumentedSpecs(decl *ast.GenDecl) []*ast.Ident {
	var missing []*ast.Ident
	for _, spec := range decl.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			alone := decl.Doc != nil && decl.Lparen == token.NoPos
			if s.Name.IsExported() && s.Doc == nil && !alone {
				missing = append(missing, s.Name)
			}
		case *ast.ValueSpec:
			for _, id := range s.Names {
				if id.IsExported() && s.Doc == nil && s.Comment == nil && decl.Doc == nil {
					missing = append(missing, id)
				}
			}
		}
	}
	return missing
}

// isExportedReceiver reports whether a function is shown by godoc: it has no
// receiver, or one of an exported type.
func isExportedReceiver(recv *ast.FieldList) bool {
	if recv == nil || len(recv.List) == 0 {
		return true
	}
	typ := recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return false
		}
	}
}

func TestDocChecksFindProblems(t *testing.T) {
	t.Parallel()

	bare := strings.Join([]string{
		"package a", "type T struct{}", "func (*T) M() {}", "func (g G[K]) N() {}", "func F() {}", "const C = 1",
		"// Group.", "type (", "U int", ")", "type t int", "func (t) M() {}", "var v int",
	}, "\n")
	documented := strings.Join([]string{
		"package a", "// T is.", "type T struct{}", "// M does.", "func (*T) M() {}", "// Group.", "const (", "A = 1", "B = 2", ")",
		"var V int // V is.", "type (", "// U is.", "U int", ")",
	}, "\n")
	allBare := []string{
		"a/a.go:2: exported T has no doc comment", "a/a.go:3: exported M has no doc comment", "a/a.go:4: exported N has no doc comment",
		"a/a.go:5: exported F has no doc comment", "a/a.go:6: exported C has no doc comment", "a/a.go:9: exported U has no doc comment",
	}
	tests := []sourceCheck{
		{"no package comment", checkPackageDoc, "a", map[string]string{"a.go": "package a"}, []string{"a: no package comment"}},
		{"comment in the test only", checkPackageDoc, "a", map[string]string{"a.go": "package a", "a_test.go": "// Doc.\npackage a"}, []string{"a: no package comment"}},
		{"comment in one file", checkPackageDoc, "a", map[string]string{"a.go": "package a", "doc.go": "// Package a is.\npackage a"}, nil},
		{"directive is no comment", checkPackageDoc, "a", map[string]string{"a.go": "//go:build linux\n\npackage a"}, []string{"a: no package comment"}},
		{"tests only", checkPackageDoc, "a", map[string]string{"a_test.go": "package a"}, nil},
		{"undocumented", checkExportedDoc, "a", map[string]string{"a.go": bare}, allBare},
		{"documented", checkExportedDoc, "a", map[string]string{"a.go": documented}, nil},
		{"internal", checkExportedDoc, "internal/a", map[string]string{"a.go": bare}, nil},
		{"test file", checkExportedDoc, "a", map[string]string{"a_test.go": bare}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			tt.run(t)
		})
	}
}

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
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

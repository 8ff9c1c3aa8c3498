package lint

import (
	"fmt"
	"path/filepath"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
)

// findings are the problems of a tree. A file is in as many chains as there are
// folders below it, and what is wrong with it is told once.
type findings struct {
	root string
	rows []row
	at   map[findingKey]int // index of its row
}

// row is one problem, and what is known of the chains in which it is one.
type row struct {
	chain.Diagnostic
	chains int   // that a file is cut in
	kept   int64 // bytes of it in the worst of them
	bytes  int64
	worst  string // the folder of that chain
}

// findingKey tells problems apart.
type findingKey struct {
	code         chain.Code
	path, detail string
}

func newFindings(root string) findings {
	return findings{root: root, at: map[findingKey]int{}}
}

// add adds a problem of lint's own.
func (f *findings) add(code chain.Code, path, detail string) {
	f.addRow(chain.Diagnostic{Code: code, Severity: code.Severity(), Path: path, Detail: detail})
}

// addRows adds the problems that were met on the way to a folder.
func (f *findings) addRows(rows []chain.Diagnostic) {
	for i := range rows {
		f.addRow(rows[i])
	}
}

// addRow adds a problem unless it is known, and returns its row.
func (f *findings) addRow(d chain.Diagnostic) *row {
	key := findingKey{code: d.Code, path: d.Path}
	if d.Code == chain.CodeImportRefused {
		key.detail = d.Detail // one for each line of the file
	}
	at, known := f.at[key]
	if !known {
		at = len(f.rows)
		f.at[key] = at
		f.rows = append(f.rows, row{Diagnostic: d})
	}
	return &f.rows[at]
}

// addCuts adds the problems that a folder's chain has with its budget. A file that
// is cut in many chains is one problem, shown by the chain that keeps least of it.
func (f *findings) addCuts(dir string, r *chain.Rendering) {
	for i := range r.Diagnostics {
		row := f.addRow(r.Diagnostics[i])
		if !isCut(row.Code) {
			continue
		}
		row.chains++
		s := sourceOf(r, row.Path)
		if s == nil || row.chains > 1 && s.Kept >= row.kept {
			continue
		}
		row.kept, row.bytes, row.worst = s.Kept, s.Bytes, dir
	}
}

// isCut reports whether a code says that a file is not whole for want of room.
func isCut(c chain.Code) bool {
	return c == chain.CodeTruncated || c == chain.CodeOmittedBudget || c == chain.CodeOmittedCount
}

// sourceOf finds the source that a row of a rendering is about.
func sourceOf(r *chain.Rendering, path string) *chain.Source {
	for i := range r.Sources {
		if s := &r.Sources[i]; s.Path == path && s.State != chain.StateKept {
			return s
		}
	}
	return nil
}

// report completes a report with the problems.
func (f *findings) report(r Report) Report {
	r.Problems = make([]chain.Diagnostic, len(f.rows))
	for i := range f.rows {
		row := &f.rows[i]
		if row.worst != "" {
			row.Detail = f.cutDetail(row)
		}
		r.Problems[i] = row.Diagnostic
	}
	return r
}

// cutDetail says how much of a file is left, and where.
func (f *findings) cutDetail(r *row) string {
	detail := fmt.Sprintf("kept %d of %d bytes in the chain of %s", r.kept, r.bytes, f.folder(r.worst))
	switch r.chains {
	case 1:
		return detail
	case 2:
		return detail + "; not whole in 1 more chain"
	default:
		return fmt.Sprintf("%s; not whole in %d more chains", detail, r.chains-1)
	}
}

// folder names a folder of the tree in a sentence.
func (f *findings) folder(path string) string {
	if path == f.root {
		return "the root"
	}
	return chain.PrintPath(display(f.root, path) + string(filepath.Separator))
}

package lint

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/sdk"
)

// findings are the problems of a tree, each once however many chains its file is in.
type findings struct {
	root string
	rows []row
	at   map[findingKey]int // index of its row
}

type row struct {
	chain.Diagnostic
	chains int   // that a file is cut in
	kept   int64 // bytes of it in the worst of them
	bytes  int64
	worst  string // the directory of that chain
}

type findingKey struct {
	code         chain.Code
	path, detail string
}

// add adds a problem of lint's own.
func (f *findings) add(code chain.Code, path, detail string) {
	f.addRow(chain.Diagnostic{Code: code, Severity: code.Severity(), Path: path, Detail: detail})
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

// addCuts adds a chain's problems with its budget. A file that is cut in many chains is one problem, shown by the
// chain that keeps least of it.
func (f *findings) addCuts(dir string, r *chain.Rendering) {
	for i := range r.Diagnostics {
		row := f.addRow(r.Diagnostics[i])
		if !slices.Contains([]chain.Code{chain.CodeTruncated, chain.CodeOmittedBudget, chain.CodeOmittedCount}, row.Code) {
			continue
		}
		row.chains++
		for _, s := range r.Sources {
			if s.Path == row.Path && s.State != chain.StateKept && (row.chains == 1 || s.Kept < row.kept) {
				row.kept, row.bytes, row.worst = s.Kept, s.Bytes, dir
				break
			}
		}
	}
}

func (f *findings) report(r Report) Report {
	r.Problems = make([]chain.Diagnostic, len(f.rows))
	for i := range f.rows {
		row := &f.rows[i]
		if row.worst != "" {
			directory := "the root"
			if row.worst != f.root {
				directory = sdk.PlainName(display(f.root, row.worst) + string(filepath.Separator))
			}
			row.Detail = fmt.Sprintf("kept %d of %d bytes in the chain of %s", row.kept, row.bytes, directory)
			if more := row.chains - 1; more > 0 {
				row.Detail += fmt.Sprintf("; not whole in %d more %s", more, []string{"chain", "chains"}[min(more-1, 1)])
			}
		}
		r.Problems[i] = row.Diagnostic
	}
	return r
}

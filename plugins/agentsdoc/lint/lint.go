package lint

import (
	"context"
	"path/filepath"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
)

// Options say by which rules a tree is looked at.
type Options struct {
	// Chain are the options that a chain would be resolved with.
	Chain chain.Options
	// Chars bounds the text of a chain in Unicode scalar values, beside the bytes
	// of the options; 0 does not.
	Chars int
	// Seen, if there, is called once for each folder, for those who show progress.
	Seen func()
	_    struct{}
}

// Report is what was found. Its JSON is a documented shape.
type Report struct {
	Files            int                `json:"files"              jsonschema:"instruction files that were found"`
	Folders          int                `json:"folders"            jsonschema:"folders that were looked at"`
	Problems         []chain.Diagnostic `json:"problems"           jsonschema:"one row per problem, in the order of the walk"`
	ChainsOverBudget int                `json:"chains_over_budget" jsonschema:"folders with an instruction file whose chain does not fit"`

	// Root is the tree that was walked; empty where there was none to walk.
	Root string `json:"-"`
	// Nested, Ignored and Foreign count folders that were not entered: trees of
	// their own, what git ignores, and what belongs to tools.
	Nested, Ignored, Foreign int `json:"-"`
}

// Count counts the problems of a severity.
func (r *Report) Count(s chain.Severity) int {
	n := 0
	for i := range r.Problems {
		if r.Problems[i].Severity == s {
			n++
		}
	}
	return n
}

// Run walks the tree that a working folder, an absolute path, lies in. Whatever
// stands in the way is a row in the report; the only error is the context's, whose
// report is not whole.
func Run(ctx context.Context, dir string, o Options) (Report, error) {
	return run(ctx, chain.OS{}, dir, o)
}

// run is Run on a view of the file system. Folders are listed on the machine
// itself: a view cannot do that.
func run(ctx context.Context, view chain.FS, dir string, o Options) (Report, error) {
	first := chain.Resolve(view, dir, o.Chain)
	if first.Root == "" {
		return Report{Problems: first.Diagnostics}, ctx.Err()
	}
	w := newWalker(ctx, view, first.Root, &o)
	defer w.memory.close()
	w.walkTree()
	w.reportTracked()
	return w.findings.report(w.report), ctx.Err()
}

// display is a path as a person in the tree would call it.
func display(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

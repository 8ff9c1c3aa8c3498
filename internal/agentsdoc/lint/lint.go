// Package lint reports what is wrong with the instruction files of a whole source tree. [Run] walks the tree once and
// asks package chain, for each directory with an instruction file, what a session there would get. It adds findings
// of its own: a personal file that git tracks, a CLAUDE.md that nothing reads, a directory or a git index that cannot
// be read.
//
// The walk skips directories of tools (.git, .jj, .hg, node_modules, vendor, third_party, .venv, target), directories
// that git ignores, symbolic links, and nested trees (a directory with .git or a marker, counted in [Report].Nested).
// Ignored files are read: people ignore their personal ones. Only directories with a
// name that could be an instruction file's have a chain, so that a tree of a hundred thousand takes seconds.
package lint

import (
	"cmp"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
)

// Options are the rules for a tree.
type Options struct {
	Chain chain.Options // Chain has the options of each directory's chain
	Chars int           // Chars bounds the text of a chain in characters; 0 is no bound
	Seen  func()        // Seen, if set, is called once for each directory, to show progress
	_     struct{}
}

// Report is what was found. Its JSON is documented.
type Report struct {
	Files            int                `json:"files"              jsonschema:"instruction files that were found"`
	Directories      int                `json:"directories"        jsonschema:"directories that were looked at"`
	Problems         []chain.Diagnostic `json:"problems"           jsonschema:"one row per problem, in the order of the walk"`
	ChainsOverBudget int                `json:"chains_over_budget" jsonschema:"directories with an instruction file whose chain does not fit"`

	// Root is the tree that was walked; empty if there was none.
	Root string `json:"-"`
	// Nested, Ignored and Foreign count directories that were not entered: nested trees, what git ignores, and
	// directories of tools.
	Nested, Ignored, Foreign int `json:"-"`
}

// Count counts the problems of a severity.
func (r *Report) Count(s phases.Severity) int {
	n := 0
	for _, p := range r.Problems {
		if p.Severity == s {
			n++
		}
	}
	return n
}

// Run walks the tree of a working directory, an absolute path. The only error is the context's, with an incomplete
// report.
func Run(ctx context.Context, dir string, o Options) (Report, error) {
	return run(ctx, chain.OS{}, dir, o)
}

// run is Run on a view.
func run(ctx context.Context, view chain.FS, dir string, o Options) (Report, error) {
	first := chain.Resolve(view, dir, o.Chain)
	if first.Root == "" {
		return Report{Problems: first.Diagnostics}, ctx.Err()
	}
	w := newWalker(ctx, view, first.Root, &o)
	w.walkTree()
	w.reportTracked()
	return w.findings.report(w.report), ctx.Err()
}

func display(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// judge resolves the chain of a directory that could have files of its own, and always that of the root, which shows
// problems of the options and of the user's files.
func (w *walker) judge(path string, list listing) {
	if path != w.root && !w.notable.any(list.notable, candidate) && !slices.ContainsFunc(list.notable, isMiss) {
		return
	}
	c := chain.ResolveTouched(w.view, path, w.options.Chain)
	for _, d := range c.Diagnostics {
		w.findings.addRow(d)
	}
	own := ownSources(&c, path)
	for _, s := range own {
		if s.Scope == chain.ScopeLocal {
			w.locals = append(w.locals, s.Path)
		}
	}
	w.report.Files += len(own)
	if len(own) == 0 {
		w.hint(path, list, &c)
		return
	}
	r := chain.RenderForHost(c, chain.Budget{Bytes: c.Options.Budget.Total, Chars: cmp.Or(w.options.Chars, math.MaxInt)})
	w.findings.addCuts(path, &r)
	if r.Cut() {
		w.report.ChainsOverBudget++
	}
}

// ownSources are the sources in a chain's last directory that the options do not exclude.
func ownSources(c *chain.Chain, path string) []chain.Source {
	var own []chain.Source
	for i := len(c.Sources) - 1; i >= 0; i-- {
		s := &c.Sources[i]
		if s.ImportedBy != "" || s.Rule {
			continue
		}
		if s.Scope != chain.ScopeProject && s.Scope != chain.ScopeLocal || filepath.Dir(s.Path) != path {
			break // they are the last of the chain
		}
		if s.Reason != chain.ReasonExcluded {
			own = append(own, *s)
		}
	}
	return own
}

const codeFallback chain.Code = "fallback_suggested"

// hint reports the instruction files of other agents in a directory without any that is read. A file in .github is for
// the directory above.
func (w *walker) hint(path string, list listing, c *chain.Chain) {
	o, of := &c.Options, path
	if filepath.Base(path) == ".github" {
		of = filepath.Dir(path)
	}
	if n := len(c.Sources); n > 0 && filepath.Dir(c.Sources[n-1].Path) == of {
		return
	}
	for _, name := range list.notable {
		file := chain.Below(path, name)
		agent, remedy := o.AgentOf(file)
		info, err := os.Lstat(file)
		if err != nil || info.IsDir() || agent == "" || chain.Excluded(o.Exclude, display(w.root, file)) {
			continue
		}
		code := chain.CodeNearMissName
		if name == "CLAUDE.md" {
			code = codeFallback
		}
		w.findings.add(code, file, "not read: a file for "+agent+", in a directory without another instruction file; "+remedy)
	}
}

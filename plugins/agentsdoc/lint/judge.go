package lint

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
)

// judge looks at the chain of one folder, if there is anything in it that could
// belong to one. The root has a chain in any case: that is where problems show
// that are of the options or of the user's own files.
func (w *walker) judge(path string, list listing) {
	if path != w.root && !w.notable.judged(list.notable) {
		return
	}
	c := chain.Resolve(w.memory, path, w.options.Chain)
	w.findings.addRows(c.Diagnostics)
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

// ownSources are the sources of a chain that lie in its last folder, but for those
// that the options say are not there.
func ownSources(c *chain.Chain, path string) []chain.Source {
	var own []chain.Source
	for i := len(c.Sources) - 1; i >= 0; i-- {
		s := &c.Sources[i]
		if s.Scope != chain.ScopeProject && s.Scope != chain.ScopeLocal || filepath.Dir(s.Path) != path {
			break // they are the last of the chain
		}
		if s.Reason != chain.ReasonExcluded {
			own = append(own, *s)
		}
	}
	return own
}

// codeFallback is lint's own code.
const codeFallback chain.Code = "fallback_suggested"

// hint tells of a CLAUDE.md in a folder without any instruction file.
func (w *walker) hint(path string, list listing, c *chain.Chain) {
	o, file := &c.Options, join(path, suggested)
	read := slices.Contains(o.Names, suggested) || slices.Contains(o.FallbackNames, suggested)
	other := len(c.Sources) > 0 && filepath.Dir(c.Sources[len(c.Sources)-1].Path) == path
	if read || other || !slices.Contains(list.notable, suggested) || chain.Excluded(o.Exclude, display(w.root, file)) || !w.memory.isFile(suggested) {
		return
	}
	w.findings.add(codeFallback, file,
		"not read, and its folder has no other instruction file; fallback_names: ["+suggested+"] would read it")
}

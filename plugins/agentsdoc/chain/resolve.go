package chain

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// Resolve finds the chain of files for a working folder, an absolute path,
// which is walked as it is written: a folder reached through a link keeps its
// logical parents. Of the options it takes a copy, with defaults filled in.
//
// It never fails and never blocks on what it finds: whatever stands in the way
// becomes a diagnostic, and the chain is made of the rest. A root given by the
// options without the working folder below it gives a chain without sources.
// All that was opened is closed when it returns.
func Resolve(view FS, dir string, o Options) Chain { return resolve(view, dir, o, false) }

// ResolveTouched is [Resolve] for a folder that a tool touched, which no person
// named: a link on the way that leaves the root ends the chain above it.
func ResolveTouched(view FS, dir string, o Options) Chain { return resolve(view, dir, o, true) }

func resolve(view FS, dir string, o Options, touched bool) Chain {
	r := &resolver{view: view, touched: touched, chain: Chain{
		Dir: filepath.Clean(dir), Options: o.Filled(),
		Sources: []Source{}, Diagnostics: []Diagnostic{},
	}}
	n := r.candidates()
	s, ok := r.survey()
	if !ok {
		return r.chain
	}
	defer s.close()
	r.tree = s.tree()
	r.trusted = r.isTrusted()
	r.chain.Sources = make([]Source, 0, min(len(r.tree)+1, usualChain))
	r.visitUserWide(n)
	r.visitTree(n)
	if r.chain.Options.Checks.Twins {
		r.markTwins()
	}
	return r.chain
}

// usualChain is room for the files of all but the deepest folders.
const usualChain = 64

// resolver is one call of Resolve.
type resolver struct {
	reader
	view    fsview.FS
	touched bool
	chain   Chain
	markers []string

	tree    []folder // root to working folder, as far as they exist
	trusted bool     // the root
	allowed *[]string
	gitDirs *[]string

	// known is the memory of one visit, lent to the next.
	known []fsview.Info
}

// names are the candidates, checked.
type names struct {
	project, local, global []string
}

// candidates checks what the options name.
func (r *resolver) candidates() names {
	o := &r.chain.Options
	r.markers = r.plain(o.Markers)
	n := names{
		project: r.plain(slices.Concat(o.Names, o.FallbackNames)),
		local:   r.plain(o.LocalNames),
		global:  r.plain(o.GlobalNames),
	}
	n.local = slices.DeleteFunc(n.local, func(name string) bool { return slices.Contains(n.project, name) })
	for _, pattern := range o.Exclude {
		if !option.IsGlob(pattern) {
			r.report(diagnostic(CodeMarkerInvalid, pattern, "not a pattern of a path in the tree; it excludes nothing"))
		}
	}
	return n
}

// report adds a row.
func (r *resolver) report(d Diagnostic) { r.chain.Diagnostics = append(r.chain.Diagnostics, d) }

// plain keeps the names that are file names and reports the others.
func (r *resolver) plain(names []string) []string {
	good, bad := plainNames(names)
	for _, name := range bad {
		r.report(diagnostic(CodeMarkerInvalid, name, "not a plain file name; it is not looked for"))
	}
	return good
}

// plainNames splits a list into file names and what is none.
func plainNames(names []string) (good, bad []string) {
	for _, name := range names {
		switch {
		case !option.IsFileName(name):
			bad = append(bad, name)
		case !slices.Contains(good, name):
			good = append(good, name)
		}
	}
	return good, bad
}

// visitUserWide takes the managed and the global file, if there is a place for
// them.
func (r *resolver) visitUserWide(n names) {
	o := &r.chain.Options
	if o.Managed != "" {
		dir, name := filepath.Split(filepath.Clean(o.Managed))
		r.visitPlace(dir, ScopeManaged, []string{name})
	}
	if o.GlobalDir != "" {
		r.visitPlace(o.GlobalDir, ScopeGlobal, n.global)
	}
}

// visitPlace takes the file of a folder outside of the tree.
func (r *resolver) visitPlace(path string, scope Scope, names []string) {
	f := folder{path: filepath.Clean(path)}
	if !filepath.IsAbs(f.path) {
		r.report(diagnostic(CodeReadError, path, "the folder of the %s file: its path is not absolute", scope))
		return
	}
	var err error
	if f.real, err = r.view.RealPath(f.path); err == nil {
		f.dir, err = r.view.OpenDir(f.real)
	}
	if err != nil {
		if p := problemOf(err); !p.gone {
			r.report(diagnostic(p.code, f.path, "the folder of the %s file: %s", scope, p.detail))
		}
		return
	}
	defer func() { _ = f.dir.Close() }()
	r.visit(f, scope, names)
}

// visitTree takes the files from the root to the working folder. A folder's
// handle is let go when the folder below is done; only the root's stays, for
// links that lead into it.
func (r *resolver) visitTree(n names) {
	for i := range r.tree {
		f := &r.tree[i]
		if f.dir == nil {
			dir, err := f.open(r.view, r.tree[i-1].dir)
			if err != nil {
				r.reportFolder(f.path, err)
				return
			}
			f.dir = dir
		}
		if r.visit(*f, ScopeProject, n.project) {
			r.visitLocal(*f, n.local)
		}
		if i > 1 {
			r.tree[i-1].close()
		}
	}
}

// reportFolder reports a folder of the tree that cannot be entered.
func (r *resolver) reportFolder(path string, err error) {
	p := problemOf(err)
	if p.gone {
		p = &problem{code: CodeReadError, detail: "no such folder"}
	}
	r.report(diagnostic(p.code, path, "the folder cannot be entered: %s", p.detail))
}

// display is the path of a file as a person in the tree would call it.
func (r *resolver) display(path string, scope Scope) string {
	switch scope { //nolint:exhaustive // the others lie in the tree
	case ScopeGlobal:
		return "~"
	case ScopeManaged:
		return filepath.ToSlash(path)
	}
	rest := strings.TrimPrefix(path, r.chain.Root)
	return filepath.ToSlash(strings.TrimLeft(rest, string(filepath.Separator)))
}

package chain

import (
	"path/filepath"
	"slices"
	"strings"
)

// Resolve finds the chain of files for a working folder, an absolute path,
// which is walked as it is written: a folder reached through a link keeps its
// logical parents. Of the options it takes a copy, with defaults filled in.
//
// It never fails and never blocks on what it finds: whatever stands in the way
// becomes a diagnostic, and the chain is made of the rest. A root given by the
// options without the working folder below it gives a chain without sources.
// All that was opened is closed when it returns.
func Resolve(view FS, dir string, o Options) Chain {
	r := &resolver{view: view, chain: Chain{
		Dir: filepath.Clean(dir), Options: o.filled(),
		Sources: []Source{}, Diagnostics: []Diagnostic{},
	}}
	r.markers = r.plain(r.chain.Options.Markers)
	names := r.plain(slices.Concat(r.chain.Options.Names, r.chain.Options.FallbackNames))
	global := r.plain(r.chain.Options.GlobalNames)

	s, ok := r.survey()
	if !ok {
		return r.chain
	}
	defer s.close()
	r.tree, r.root = s.tree(), s.root
	r.chain.Sources = make([]Source, 0, min(len(r.tree)+1, defaultFiles))
	r.visitGlobal(global)
	r.visitTree(names)
	r.markTwins()
	return r.chain
}

// resolver is one call of Resolve.
type resolver struct {
	view    FS
	chain   Chain
	markers []string

	tree    []folder // root to working folder, as far as they exist
	root    Dir      // handle of the first of them
	gitDirs *[]string
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

// visitGlobal takes the global file, if there is a place for one.
func (r *resolver) visitGlobal(names []string) {
	path := r.chain.Options.GlobalDir
	if path == "" {
		return
	}
	f := folder{path: filepath.Clean(path)}
	var err error
	if f.real, err = r.view.RealPath(f.path); err == nil {
		f.dir, err = r.view.OpenDir(f.real)
	}
	if err != nil {
		if p := problemOf(err); !p.gone {
			r.report(diagnostic(p.code, f.path, "the folder of the global file: %s", p.detail))
		}
		return
	}
	defer func() { _ = f.dir.Close() }()
	r.visit(f, ScopeGlobal, names)
}

// visitTree takes the files from the root to the working folder. Two handles
// are open at a time, however deep the tree is.
func (r *resolver) visitTree(names []string) {
	parent := r.root
	for i, f := range r.tree {
		f.dir = r.root
		if i > 0 {
			var err error
			f.dir, err = f.open(r.view, parent)
			if i > 1 {
				_ = parent.Close()
			}
			if err != nil {
				r.reportFolder(f.path, err)
				return
			}
			parent = f.dir
		}
		r.visit(f, ScopeProject, names)
	}
	if len(r.tree) > 1 {
		_ = parent.Close()
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
	if scope == ScopeGlobal {
		return "~"
	}
	rest := strings.TrimPrefix(path, r.chain.Root)
	return filepath.ToSlash(strings.TrimLeft(rest, string(filepath.Separator)))
}

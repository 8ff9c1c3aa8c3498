package chain

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/pathglob"
	"github.com/grapnelhq/grapnel/sdk"
)

// Resolve finds the chain of files for a working directory, an absolute path, which is walked as it is written: a
// directory reached through a link keeps its logical parents. It copies the options and fills in defaults.
//
// It never fails and never blocks on what it finds: each obstacle becomes a diagnostic, and the chain is made of the
// rest. A root given by the options without the working directory below it gives a chain without sources. All that
// was opened is closed when it returns.
func Resolve(view FS, dir string, o Options) Chain { return resolve(view, dir, o, false) }

// ResolveTouched is [Resolve] for a directory that a tool touched, which no person named: a link on the way that
// leaves the root ends the chain above it.
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
	r.trusted = r.isTrusted()
	if r.chain.Options.Imports == ImportListed {
		r.once = map[string]bool{}
	}
	r.chain.Sources = make([]Source, 0, min(len(r.tree)+1, 64))
	if o := &r.chain.Options; o.Managed != "" {
		dir, name := filepath.Split(filepath.Clean(o.Managed))
		r.visitPlace(dir, ScopeManaged, []string{name})
	}
	if o := &r.chain.Options; o.GlobalDir != "" {
		r.visitPlace(o.GlobalDir, ScopeGlobal, n.global)
	}
	wide := len(r.chain.Sources)
	r.choose(&n)
	for _, path := range r.above {
		if isAbove(path, slices.Concat(n.project, n.local)) {
			r.report(diagnostic(CodeReadByAgent, path, "it is above the tree: the agent reads a file of this name there by itself; only the name was looked at"))
		}
	}
	r.visitTree(n)
	if r.chain.Options.NearestFirst {
		slices.Reverse(r.chain.Sources[wide:])
	}
	r.leaveToReaders()
	if r.chain.Options.Checks.Duplicates {
		r.markDuplicates()
	}
	return r.chain
}

type resolver struct {
	reader
	view    fsview.FS
	touched bool
	chain   Chain
	markers []string

	tree    []directory // root to working directory, as far as they exist
	above   []string    // paths of candidates above the root, from the top down
	trusted bool        // the root
	allowed *[]string
	gitDirs *[]string

	once   map[string]bool // real paths that were taken, if each may be only once
	global directory       // the user's directory, while it is open
	rules  int             // files that were looked at in directories of rules

	known []fsview.Info // visitor's list of existing candidates, reused between visits
}

// names are the valid candidates.
type names struct {
	project, local, global []string
	otherwise              [][]string // instead of project
	rulesFirst             bool       // project is one of those, and follows the rules of its directory
}

func (r *resolver) candidates() names {
	o := &r.chain.Options
	r.markers = r.plain(o.Markers, IsFileName)
	n := names{
		project: r.plain(slices.Concat(o.Names, o.FallbackNames), IsFilePath),
		local:   r.plain(o.LocalNames, IsFilePath),
		global:  r.plain(o.GlobalNames, IsFilePath),
	}
	for _, list := range o.Otherwise {
		n.otherwise = append(n.otherwise, r.plain(list, IsFilePath))
	}
	n.local = slices.DeleteFunc(n.local, func(name string) bool { return slices.Contains(n.project, name) })
	for _, pattern := range o.Exclude {
		if !IsGlob(pattern) {
			r.report(diagnostic(CodeMarkerInvalid, pattern, "not a pattern of a path in the tree; it excludes nothing"))
		}
	}
	return n
}

// choose decides which names count in the tree.
func (r *resolver) choose(n *names) {
	if len(n.otherwise) == 0 || len(r.tree) == 0 || r.has(slices.Concat(n.project, n.local)) {
		return
	}
	if i := slices.IndexFunc(n.otherwise, r.has); i >= 0 {
		n.project, n.rulesFirst = n.otherwise[i], true
	}
}

// isAbove reports whether a path above the root ends with one of the names.
func isAbove(path string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.HasSuffix(path, string(filepath.Separator)+filepath.FromSlash(name))
	})
}

// has reports whether one of the names is in a directory of the tree.
func (r *resolver) has(names []string) bool {
	if slices.ContainsFunc(r.above, func(path string) bool { return isAbove(path, names) }) {
		return true
	}
	found := false
	r.walkTree(func(f *directory) bool {
		v := visitor{resolver: r, directory: *f, scope: ScopeProject}
		found = slices.ContainsFunc(names, v.has)
		return !found
	})
	return found
}

func (r *resolver) report(d Diagnostic) { r.chain.Diagnostics = append(r.chain.Diagnostics, d) }

// plain keeps the names that are file names and reports the others.
func (r *resolver) plain(names []string, ok func(string) bool) (good []string) {
	for _, name := range names {
		switch {
		case !ok(name):
			r.report(diagnostic(CodeMarkerInvalid, name, "not a plain file name; it is not looked for"))
		case !slices.Contains(good, name):
			good = append(good, name)
		}
	}
	return good
}

func (r *resolver) visitPlace(path string, scope Scope, names []string) {
	f := directory{path: filepath.Clean(path)}
	if !filepath.IsAbs(f.path) {
		r.report(diagnostic(CodeReadError, path, "the directory of the %s file: its path is not absolute", scope))
		return
	}
	var err error
	if f.real, err = r.view.RealPath(f.path); err == nil {
		f.dir, err = r.view.OpenDir(f.real)
	}
	if err != nil {
		if p := problemOf(err); !p.gone {
			r.report(diagnostic(p.code, f.path, "the directory of the %s file: %s", scope, p.detail))
		}
		return
	}
	defer func() { _ = f.dir.Close() }()
	rules := ""
	if scope == ScopeGlobal {
		r.global, rules = f, r.chain.Options.Rules.GlobalDir
	}
	r.visit(f, scope, names)
	r.visitRules(f, scope, rules)
	r.global = directory{}
}

// visitTree takes the files from the root to the working directory.
func (r *resolver) visitTree(n names) {
	r.walkTree(func(f *directory) bool {
		dir := r.chain.Options.Rules.Dir
		if n.rulesFirst {
			r.visitRules(*f, ScopeProject, dir)
			dir = ""
		}
		if r.visit(*f, ScopeProject, n.project) {
			r.visitRules(*f, ScopeProject, dir)
			r.visit(*f, ScopeLocal, n.local)
		}
		return true
	})
}

// walkTree goes from the root to the working directory, while do says so. A directory's handle is closed when the
// directory below is done; only the root's stays, for links that lead into it.
func (r *resolver) walkTree(do func(f *directory) bool) {
	for i := range r.tree {
		f := &r.tree[i]
		if f.dir == nil {
			dir, err := f.open(r.view, r.tree[i-1].dir)
			if err != nil {
				r.reportDirectory(f.path, err)
				return
			}
			f.dir = dir
		}
		if !do(f) {
			return
		}
		if i > 1 {
			r.tree[i-1].close()
		}
	}
}

func (r *resolver) reportDirectory(path string, err error) {
	p := problemOf(err)
	if p.gone {
		p = &problem{code: CodeReadError, detail: "no such directory"}
	}
	r.report(diagnostic(p.code, path, "the directory cannot be entered: %s", p.detail))
}

// display is the path of a file as a person in the tree would call it.
func (r *resolver) display(path string, scope Scope) string {
	switch scope { //nolint:exhaustive // the others lie in the tree
	case ScopeGlobal:
		if rest := strings.TrimPrefix(path, filepath.Clean(r.chain.Options.GlobalDir)+string(filepath.Separator)); strings.ContainsRune(rest, filepath.Separator) {
			return "~/" + filepath.ToSlash(rest)
		}
		return "~"
	case ScopeManaged:
		return filepath.ToSlash(path)
	}
	rest := strings.TrimPrefix(path, r.chain.Root)
	return filepath.ToSlash(strings.TrimLeft(rest, string(filepath.Separator)))
}

// isTrusted judges the root. Unknown values trust nothing.
func (r *resolver) isTrusted() bool {
	switch r.chain.Options.Trust {
	case TrustAll, "":
		return true
	case TrustListed:
		return len(r.tree) > 0 && slices.ContainsFunc(r.allowedDirectories(), func(dir string) bool {
			return Within(dir, r.tree[0].real)
		})
	default:
		return false
	}
}

// withhold keeps only the name of an untrusted source.
func (r *resolver) withhold(src *Source) {
	src.State, src.Reason = StateSkipped, string(CodeUntrustedRoot)
	if r.chain.Options.Untrusted == UntrustedSkip {
		src.Reason = ReasonUntrusted
		r.report(diagnostic(CodeUntrustedRoot, src.Path, "its root is not trusted, so it is skipped"))
		return
	}
	r.report(diagnostic(CodeUntrustedRoot, src.Path, "its root is not trusted, so only its name is given"))
}

// allowedDirectories are the real paths of the directories that the options allow, looked up on first use.
func (r *resolver) allowedDirectories() []string {
	if r.allowed != nil {
		return *r.allowed
	}
	r.allowed = new([]string)
	for _, path := range r.chain.Options.Allow {
		if !filepath.IsAbs(path) {
			continue
		}
		if real, err := r.view.RealPath(filepath.Clean(path)); err == nil {
			*r.allowed = append(*r.allowed, real)
		}
	}
	return *r.allowed
}

// markDuplicates keeps only the nearest of sources that are one file or have one text.
func (r *resolver) markDuplicates() {
	sources := r.chain.Sources
	// A file is known by its number or, without one, by its real path.
	type key struct {
		id   fsview.FileID
		path string
		text textSum
	}
	seen := make(map[key]int, 2*len(sources))
	for i := len(sources) - 1; i >= 0; i-- {
		s := &sources[i]
		if !s.usable() || s.origin.untrusted {
			continue
		}
		file, text := key{id: s.origin.id}, key{text: s.origin.sum}
		if s.origin.id == (fsview.FileID{}) {
			file.path = s.RealPath
		}
		at, ok := seen[file]
		if !ok {
			at, ok = seen[text]
		}
		if !ok {
			seen[file], seen[text] = i, i
			continue
		}
		s.State, s.Reason, s.DuplicateOf = StateDuplicate, string(CodeDuplicate), sources[at].Path
		s.Text, s.origin = "", origin{}
	}
	for _, s := range sources {
		if s.State == StateDuplicate {
			r.report(diagnostic(CodeDuplicate, s.Path, "stands nearer in the chain as well, as %s", sdk.PlainName(s.DuplicateOf)))
		}
	}
}

// Excluded reports whether patterns, as in [Options].Exclude, exclude a file, or a directory that it is in. The file
// is given by its path below the root, with slashes. Invalid patterns exclude nothing.
func Excluded(patterns []string, display string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		glob, err := excludeGlob(pattern)
		return err == nil && glob.Match(display)
	})
}

// excludeGlob matches what a pattern excludes and all that is in it.
func excludeGlob(pattern string) (pathglob.Glob, error) {
	glob := strings.Trim(pattern, "/")
	if !strings.Contains(strings.TrimRight(pattern, "/"), "/") {
		glob = "**/" + glob
	}
	return pathglob.Parse(glob + "/**")
}

package lint

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/ignore"
)

// maxPath bounds the paths that are looked at, in bytes, as it bounds those of
// working folders.
const maxPath = 4096

// maxDepth bounds how deep below the root folders are looked at: each has a chain of all
// those above it.
const maxDepth = 80

// errTooDeep is the error for a folder below that.
var errTooDeep = errors.New("it is nested more than 80 folders deep")

// isForeign reports whether what lies in a folder was written by others, or by a
// tool, by the folder's name.
func isForeign(name string) bool {
	switch name {
	case "node_modules", "vendor", "third_party", ".venv", "target":
		return true
	}
	return false
}

// isMetadata reports whether a folder is a version control system's own.
func isMetadata(name string) bool { return name == gitName || name == ".jj" || name == ".hg" }

// walker is one run.
type walker struct {
	ctx      context.Context //nolint:containedctx // of one call, which does not outlive it
	options  *Options
	root     string
	memory   *memory
	lister   lister
	notable  notable
	ignored  ignore.Way
	findings findings
	report   Report

	// locals are the personal files of the tree, for reportTracked.
	locals []string
}

func newWalker(ctx context.Context, view chain.FS, root string, o *Options) *walker {
	w := &walker{ctx: ctx, options: o, root: root, report: Report{Root: root}}
	w.notable = newNotable(o.Chain.Filled())
	w.memory = newMemory(view, root, w.notable.all)
	w.findings = newFindings(root)
	return w
}

// walkTree visits the root and everything below. A root that cannot be listed
// still has a chain.
func (w *walker) walkTree() {
	w.ignored.Add(ownPatterns(w.memory.view, w.root))
	top, err := openTop(w.root)
	if err != nil {
		w.reportFolder(w.root, err)
		w.report.Folders++
		w.memory.enter(w.root, nil, false)
		w.judge(w.root, listing{})
		return
	}
	defer top.close()
	w.visit(top, w.root)
}

// visit looks at one folder, and then at those in it.
func (w *walker) visit(f folder, path string) {
	list, err := w.lister.list(f, &w.notable)
	if err != nil {
		w.reportFolder(path, err)
	}
	if path != w.root && w.notable.isTree(list.notable) {
		w.report.Nested++
		return
	}
	w.report.Folders++
	if w.options.Seen != nil {
		w.options.Seen()
	}
	w.memory.enter(path, list.notable, err == nil)
	defer w.memory.leave()
	if slices.Contains(list.notable, ignore.File) {
		w.ignored.Add(w.memory.readBeside(ignore.File, ignore.MaxBytes))
	}
	w.judge(path, list)
	for _, name := range list.folders {
		if w.ctx.Err() != nil {
			return
		}
		w.descend(f, path, name)
	}
}

// descend visits a folder in another one, unless it is one of those that are not
// looked at.
func (w *walker) descend(parent folder, parentPath, name string) {
	switch {
	case isMetadata(name):
		return
	case isForeign(name):
		w.report.Foreign++
		return
	}
	w.ignored.Enter(name)
	defer w.ignored.Leave()
	if w.ignored.Ignored() {
		w.report.Ignored++
		return
	}
	path := join(parentPath, name)
	switch {
	case len(path) > maxPath:
		w.reportFolder(path, syscall.ENAMETOOLONG)
		return
	case strings.Count(path[len(w.root):], string(filepath.Separator)) > maxDepth:
		w.reportFolder(path, errTooDeep)
		return
	}
	f, err := parent.child(name)
	if err != nil {
		// It was a folder a moment ago: gone or replaced is no problem.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errReplaced) {
			w.reportFolder(path, err)
		}
		return
	}
	defer f.close()
	w.visit(f, path)
}

// reportFolder reports a folder that cannot be listed.
func (w *walker) reportFolder(path string, err error) {
	code := chain.CodeReadError
	switch {
	case errors.Is(err, fs.ErrPermission):
		code = chain.CodePermission
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, errTooDeep):
		code = chain.CodePathTooLong
	}
	w.findings.add(code, path, "the folder cannot be listed, so nothing below it is looked at: "+cause(err))
}

// cause is the innermost text of an error: the path has a field of its own.
func cause(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// listing is what is of interest in one folder.
type listing struct {
	folders []string // sorted
	notable []string
}

// notable are the names that lint wants to know of in each folder.
type notable struct {
	all map[string]bool
	// candidates are the names that make a chain worth looking at.
	candidates map[string]bool
	// markers make a folder a tree of its own.
	markers map[string]bool
}

// suggested is the name that people most often have in a tree that has no
// AGENTS.md.
const suggested = "CLAUDE.md"

func newNotable(o chain.Options) notable {
	n := notable{all: map[string]bool{}, candidates: map[string]bool{suggested: true}, markers: map[string]bool{gitName: true}}
	for _, list := range [][]string{o.Names, o.FallbackNames, o.LocalNames} {
		for _, name := range list {
			n.candidates[name] = true
		}
	}
	for _, name := range o.Markers {
		n.markers[name] = true
	}
	for _, set := range []map[string]bool{n.candidates, n.markers, {ignore.File: true}} {
		for name := range set {
			n.all[name] = true
		}
	}
	return n
}

// wants reports whether a name is one of them. It is asked for every entry of
// every folder, so most names have to be told apart by their length.
func (n *notable) wants(name []byte) bool {
	return n.all[string(name)] || isMiss(name)
}

// isMiss reports whether a name could be taken for that of an instruction file.
// Whether it counts as a near miss is chain's to say.
func isMiss(name []byte) bool {
	return (len(name) == len("AGENT.md") || len(name) == len("AGENTS.md")) &&
		(strings.EqualFold(string(name), "AGENT.md") || strings.EqualFold(string(name), "AGENTS.md"))
}

// isTree reports whether a folder with these names is a tree of its own.
func (n *notable) isTree(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return n.markers[name] })
}

// judged reports whether a folder with these names has a chain worth looking at.
func (n *notable) judged(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return n.candidates[name] || isMiss([]byte(name)) })
}

// join joins a clean path and a name.
func join(path, name string) string {
	if strings.HasSuffix(path, string(filepath.Separator)) {
		return path + name
	}
	return path + string(filepath.Separator) + name
}

package lint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/ignore"
)

const (
	maxPath  = 4096 // bytes, as of the path of a working directory
	maxDepth = 80   // each directory has a chain of all above it
)

var errTooDeep = fmt.Errorf("it is nested more than %d directories deep: %w", maxDepth, syscall.ENAMETOOLONG)

type walker struct {
	ctx      context.Context //nolint:containedctx // of one call, which does not outlive it
	options  *Options
	root     string
	view     chain.FS
	notable  notable
	ignored  ignore.Way
	findings findings
	report   Report

	locals []string // the personal files of the tree
}

func newWalker(ctx context.Context, view chain.FS, root string, o *Options) *walker {
	n := newNotable(o.Chain.Filled())
	return &walker{
		ctx: ctx, options: o, root: root, report: Report{Root: root}, notable: n, view: view,
		findings: findings{root: root, at: map[findingKey]int{}},
	}
}

// walkTree visits the root and everything below. A root that cannot be listed still has a chain.
func (w *walker) walkTree() {
	w.ignored.Add(ownPatterns(w.view, w.root))
	top, err := w.view.OpenDir(w.root)
	if err != nil {
		w.reportDirectory(w.root, err)
		return
	}
	defer func() { _ = top.Close() }()
	w.visit(top, w.root)
}

func (w *walker) visit(dir fsview.Dir, path string) {
	list, err := w.notable.list(dir)
	if err != nil {
		w.reportDirectory(path, err)
		if path != w.root {
			return
		}
	}
	if path != w.root && w.notable.any(list.notable, marker) {
		w.report.Nested++
		for _, d := range chain.Resolve(w.view, path, w.options.Chain).Diagnostics {
			if d.Code == chain.CodeMarkerInvalid {
				w.findings.addRow(d)
			}
		}
		return
	}
	w.report.Directories++
	if w.options.Seen != nil {
		w.options.Seen()
	}
	if slices.Contains(list.notable, ignore.File) {
		text, _ := fsview.ReadText(dir, ignore.File, ignore.MaxBytes) // a link is an error, and git follows none either
		w.ignored.Add(text)
	}
	w.judge(path, list)
	for _, name := range list.directories {
		if w.ctx.Err() != nil {
			return
		}
		w.descend(dir, path, name)
	}
}

// descend visits a directory in another one unless it is skipped.
func (w *walker) descend(parent fsview.Dir, parentPath, name string) {
	switch {
	case ignore.IsMetadata(name):
		return
	case ignore.IsForeign(name):
		w.report.Foreign++
		return
	}
	w.ignored.Enter(name)
	defer w.ignored.Leave()
	if w.ignored.Ignored() {
		w.report.Ignored++
		return
	}
	path := chain.Below(parentPath, name)
	switch {
	case len(path) > maxPath:
		w.reportDirectory(path, syscall.ENAMETOOLONG)
		return
	case strings.Count(path[len(w.root):], string(filepath.Separator)) > maxDepth:
		w.reportDirectory(path, errTooDeep)
		return
	}
	dir, err := parent.OpenDir(name)
	if err != nil {
		// It was a directory a moment ago: that it is gone, or another thing, is not a problem.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fsview.ErrLink) && !errors.Is(err, syscall.ENOTDIR) {
			w.reportDirectory(path, err)
		}
		return
	}
	defer func() { _ = dir.Close() }()
	w.visit(dir, path)
}

func (w *walker) reportDirectory(path string, err error) {
	w.findings.add(chain.CodeOf(err), path, "the directory cannot be listed, so nothing below it is looked at: "+fsview.Cause(err))
}

type listing struct {
	directories []string // sorted
	notable     []string
}

// notable are the names that lint looks for, and what they are.
type notable map[string]int

const (
	candidate = 1 << iota // makes a chain worth looking at
	marker                // makes a directory a nested tree
)

func newNotable(o chain.Options) notable {
	n := notable{ignore.File: 0}
	for _, name := range slices.Concat(chain.AgentFileNames(), o.Names, o.FallbackNames, o.LocalNames) {
		n[name] |= candidate
	}
	for _, name := range append([]string{gitName}, o.Markers...) {
		n[name] |= marker
	}
	return n
}

// any reports whether one of the names is of a kind.
func (n notable) any(names []string, kind int) bool {
	return slices.ContainsFunc(names, func(name string) bool { return n[name]&kind != 0 })
}

// isMiss reports whether a name could be taken for an instruction file's; package chain decides.
func isMiss(name string) bool {
	return strings.EqualFold(name, "AGENT.md") || strings.EqualFold(name, "AGENTS.md")
}

// list returns what is of interest in a directory; with an error, what was seen before it.
func (n notable) list(dir fsview.Dir) (listing, error) {
	var list listing
	entries, err := dir.Entries(-1)
	for _, e := range entries {
		if e.IsDir() {
			list.directories = append(list.directories, e.Name())
		}
		if _, ok := n[e.Name()]; ok || isMiss(e.Name()) {
			list.notable = append(list.notable, e.Name())
		}
	}
	return list, err
}

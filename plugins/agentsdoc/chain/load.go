package chain

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

// maxStubHops bounds how many stubs may lead to each other.
const maxStubHops = 8

// maxStub is the size, in bytes, up to which a file can be a stub.
const maxStub = 256

// place is where a candidate's text was found.
type place struct {
	path    string // real path; empty if unknown
	content content
	linked  bool // behind a link or a stub
	stub    bool // behind a stub
}

// load reads a candidate of the folder, which is at real, behind links and stubs
// if that is where it is. With a problem, the place tells how far it got.
func (r *resolver) load(f folder, name, real string, info fsview.Info) (place, *problem) {
	at := place{path: real, linked: info.IsLink()}
	var p *problem
	if at.linked {
		at.path, at.content, p = r.follow(f, at.path)
	} else {
		at.content, p = r.read(f.dir, name)
	}
	for hops := 0; p == nil && r.chain.Options.Checks.Stubs; hops++ {
		target, ok := r.stubTarget(f, at)
		if !ok {
			return at, nil
		}
		at.linked, at.stub = true, true
		if hops == maxStubHops {
			return at, &problem{code: CodeStubLoop, detail: "more than 8 files lead from one to the next"}
		}
		at.path, at.content, p = r.follow(f, target)
	}
	return at, p
}

// stubTarget reports whether a file is a stub, as git writes a link where the
// system has none: nothing but a relative path to a candidate name, which
// exists, in a place that may be read. The path is taken from where the file
// really is.
func (r *resolver) stubTarget(f folder, at place) (string, bool) {
	raw := at.content.raw
	if len(raw) == 0 || len(raw) > maxStub {
		return "", false
	}
	text := strings.TrimSpace(strings.TrimPrefix(raw, textrule.ByteOrderMark))
	path := filepath.FromSlash(text)
	if strings.ContainsFunc(text, isControl) || filepath.IsAbs(path) || !r.isCandidate(filepath.Base(path)) {
		return "", false
	}
	target := filepath.Join(filepath.Dir(at.path), path)
	inside := slices.ContainsFunc(r.bases(f), func(b base) bool { return within(b.real, target) })
	if !inside {
		return "", false
	}
	// A line that says "see docs/AGENTS.md" has the form of a path, too.
	_, err := r.view.RealPath(target)
	return target, !errors.Is(err, fs.ErrNotExist)
}

// isCandidate reports whether a name is one that is looked for.
func (r *resolver) isCandidate(name string) bool {
	o := &r.chain.Options
	return slices.Contains(o.Names, name) || slices.Contains(o.FallbackNames, name) ||
		slices.Contains(o.LocalNames, name) || slices.Contains(o.GlobalNames, name)
}

// isControl reports whether a character cannot be part of a stub's line.
func isControl(c rune) bool { return c < ' ' || c == 0x7f }

// base is a folder that links may lead into.
type base struct {
	real string
	dir  fsview.Dir // nil where it has to be opened first
}

// bases returns the folders that files may be read from when the chain folder
// is f: the root, the folder itself, and those that the options allow.
func (r *resolver) bases(f folder) []base {
	var list []base
	if len(r.tree) > 0 {
		list = append(list, base{r.tree[0].real, r.tree[0].dir})
	}
	list = append(list, base{f.real, f.dir})
	for _, real := range r.allowedFolders() {
		list = append(list, base{real: real})
	}
	return list
}

// follow reads the file that a path leads to, if it may be read. Nothing is
// opened before the real path is known to lie in one of the bases; then it is
// walked from that folder's handle, where no element may be a link any more.
func (r *resolver) follow(f folder, path string) (string, content, *problem) {
	real, err := r.view.RealPath(path)
	if err != nil {
		p := problemOf(err)
		switch {
		case p.gone:
			p = &problem{code: CodeReadError, detail: "the link leads to nothing"}
		case p.code == CodeReadError:
			p.detail = "the link cannot be followed to its end"
		}
		return "", content{}, p
	}
	from, p := r.containing(r.bases(f), real)
	if p != nil {
		return real, content{}, p
	}
	found, p := r.walkTo(from, real)
	return real, found, p
}

// containing returns the base that a real path lies in, if it may be read.
func (r *resolver) containing(bases []base, real string) (base, *problem) {
	i := slices.IndexFunc(bases, func(b base) bool { return within(b.real, real) && b.real != real })
	if i < 0 {
		return base{}, &problem{code: CodeSymlinkEscape, detail: "the link leads out of the tree"}
	}
	if r.inGitFolder(bases[i].real, real) {
		return base{}, gitProblem()
	}
	return bases[i], nil
}

// walkTo reads a file below a base, folder by folder.
func (r *resolver) walkTo(from base, real string) (found content, p *problem) {
	dir := from.dir
	if dir == nil {
		var err error
		if dir, err = openReal(r.view, from.real, nil); err != nil {
			return content{}, linkProblem(err)
		}
		defer func() { _ = dir.Close() }()
	}
	rest := strings.Trim(real[len(from.real):], string(filepath.Separator))
	return r.descend(dir, strings.Split(rest, string(filepath.Separator)))
}

// descend reads the file at the end of the names, of which all others are
// folders. A folder with the structure of a git repository ends it.
func (r *reader) descend(from fsview.Dir, names []string) (content, *problem) {
	dir, release := from, func() {}
	defer func() { release() }()
	for len(names) > 1 {
		if hasGitStructure(dir) {
			return content{}, gitProblem()
		}
		next, err := dir.OpenDir(names[0])
		if err != nil {
			return content{}, linkProblem(err)
		}
		release()
		dir, release = next, func() { _ = next.Close() }
		names = names[1:]
	}
	if hasGitStructure(dir) {
		return content{}, gitProblem()
	}
	return r.readChecked(dir, names[0])
}

// readChecked reads what a link leads to, if it is a regular file.
func (r *reader) readChecked(dir fsview.Dir, name string) (content, *problem) {
	info, err := dir.Lstat(name)
	switch {
	case err != nil:
		return content{}, linkProblem(err)
	case info.IsLink():
		return content{}, linkProblem(fsview.ErrLink)
	case !info.Mode.IsRegular():
		return content{}, &problem{code: CodeNotRegular, detail: "the link leads to " + describe(info)}
	}
	return r.read(dir, name)
}

// linkProblem classifies an error on the way that a link led. A link there
// means that the tree changed after the real path was found out; whatever it
// leads to now was not checked.
func linkProblem(err error) *problem {
	if errors.Is(err, fsview.ErrLink) {
		return &problem{code: CodeReadError, detail: "the link's target changed while it was read"}
	}
	return problemOf(err)
}

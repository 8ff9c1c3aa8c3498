package chain

import (
	"path/filepath"
	"syscall"
)

// errTooLong is what the system would say of a path that it cannot take.
const errTooLong = syscall.ENAMETOOLONG

// givenRoot is a root that the options name; without path there is none.
type givenRoot struct {
	path string
	real string
	info Info
	// byName says that the working folder lies below it as it is written.
	byName bool
}

// givenRoot looks at the options' root. Not ok means that it was refused.
func (r *resolver) givenRoot() (givenRoot, bool) {
	if r.chain.Options.Root == "" {
		return givenRoot{}, true
	}
	g := givenRoot{path: filepath.Clean(r.chain.Options.Root)}
	if r.refuse(!filepath.IsAbs(g.path), "the root's path is not absolute") {
		return g, false
	}
	g.byName = within(g.path, r.chain.Dir)
	var err error
	if g.real, err = r.view.RealPath(g.path); err == nil {
		g.info, err = statFolder(r.view, g.real)
	}
	if err != nil {
		r.refuse(true, "the root cannot be opened: "+cause(err))
		return g, false
	}
	return g, true
}

// refuse ends the chain if the condition holds: the root in the options cannot
// be one, and a guess in its place could read what was not meant.
func (r *resolver) refuse(condition bool, detail string) bool {
	if condition {
		r.chain.Root, r.chain.RootFound = "", false
		r.report(diagnostic(CodeRootRefused, r.chain.Options.Root, "%s; no file is read", detail))
	}
	return condition
}

// is reports whether a folder on the way is the root, be it under another name.
func (g givenRoot) is(f folder, dir Dir) bool {
	if g.byName || f.path == g.path {
		return f.path == g.path
	}
	if f.real == g.real {
		return true
	}
	info, err := dir.Info()
	return err == nil && info.same(g.info)
}

// elsewhere reports whether the working folder's name gives no sign that it
// lies in the root.
func (g givenRoot) elsewhere() bool { return g.path != "" && !g.byName }

// statFolder describes the folder at an absolute path.
func statFolder(view FS, path string) (Info, error) {
	dir, err := view.OpenDir(path)
	if err != nil {
		return Info{}, err
	}
	info, err := dir.Info()
	if closeErr := dir.Close(); err == nil {
		err = closeErr
	}
	return info, err
}

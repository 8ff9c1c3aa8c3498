package chain

import (
	"path/filepath"
	"slices"
	"syscall"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"
)

// errTooLong is what the system would say of a path that it cannot take.
const errTooLong = syscall.ENAMETOOLONG

// givenRoot is a root that the options name; without path there is none.
type givenRoot struct {
	path string
	real string
	info fsview.Info
	// byName says that the working folder lies below it as it is written.
	byName bool
}

// givenRoot looks at the options' root. Not ok means that it was refused.
func (r *resolver) givenRoot() (givenRoot, bool) {
	if r.chain.Options.Root == "" {
		return givenRoot{}, true
	}
	g := givenRoot{path: filepath.Clean(r.chain.Options.Root)}
	if boundary := r.chain.Options.Boundary; boundary != "" && within(g.path, boundary) {
		g.path = boundary
	}
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
func (g givenRoot) is(f folder) bool {
	if g.byName || f.path == g.path {
		return f.path == g.path
	}
	if f.real == g.real {
		return true
	}
	info, err := f.dir.Info()
	return err == nil && info.Same(g.info)
}

// elsewhere reports whether the working folder's name gives no sign that it
// lies in the root.
func (g givenRoot) elsewhere() bool { return g.path != "" && !g.byName }

// statFolder describes the folder at an absolute path.
func statFolder(view fsview.FS, path string) (fsview.Info, error) {
	dir, err := view.OpenDir(path)
	if err != nil {
		return fsview.Info{}, err
	}
	info, err := dir.Info()
	if closeErr := dir.Close(); err == nil {
		err = closeErr
	}
	return info, err
}

// ownPlaces are the user's own folders, as written and behind links.
type ownPlaces struct {
	homes, configs []string
	wide           bool // the home folder and the top are no roots
}

// ownPlaces reads them from the options.
func (r *resolver) ownPlaces() ownPlaces {
	o := &r.chain.Options
	own := ownPlaces{wide: o.Checks.WideRoots}
	if len(r.markers) == 0 {
		return own
	}
	if o.Home != "" && own.wide {
		own.homes = r.bothPaths(o.Home)
	}
	for _, path := range o.ConfigDirs {
		if path != "" {
			own.configs = append(own.configs, r.bothPaths(path)...)
		}
	}
	return own
}

// bothPaths returns a path as written and, where it exists, behind links.
func (r *resolver) bothPaths(path string) []string {
	paths := []string{filepath.Clean(path)}
	if real, err := r.view.RealPath(paths[0]); err == nil && real != paths[0] {
		paths = append(paths, real)
	}
	return paths
}

// config reports whether a folder is one of the user's configuration, or below.
func (o ownPlaces) config(f folder) bool {
	return slices.ContainsFunc(o.configs, func(p string) bool { return within(p, f.path) || within(p, f.real) })
}

// noRoot reports whether a folder is the home folder or the top of the file
// system, which hold too much to be meant as a source tree.
func (o ownPlaces) noRoot(f folder) bool {
	return o.wide && (filepath.Dir(f.path) == f.path || filepath.Dir(f.real) == f.real ||
		slices.Contains(o.homes, f.path) || slices.Contains(o.homes, f.real))
}

package chain

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

const (
	maxPath = 4096 // bytes of the working directory's path, as systems bound the path of one call
	maxHeld = 128  // handles that the survey keeps; a directory without one is opened again when it is visited
)

// survey is the first walk, from the top of the file system to the working directory. It finds the root and the real
// paths and opens no file. The handles of the directories below the root stay open for the second walk.
type survey struct {
	r           *resolver
	directories []directory
	held        int // open handles
	most        int // how many may be
	rootAt      int // index of the root, or -1
	own         ownPlaces
	given       givenRoot
}

// survey walks to the working directory. Not ok means that the options' root was refused: then the chain is empty.
func (r *resolver) survey() (*survey, bool) {
	given, ok := r.givenRoot()
	if !ok {
		return nil, false
	}
	s := &survey{r: r, rootAt: -1, most: maxHeld, given: given, own: r.ownPlaces()}
	if err := s.walk(); err != nil {
		s.close()
		r.reportDirectory(r.chain.Dir, err)
		return &survey{r: r, rootAt: -1}, !r.refuse(given.path != "" && !given.byName, "the working directory is not below it")
	}
	if r.refuse(given.path != "" && s.rootAt < 0, "the working directory is not below it") {
		s.close()
		return nil, false
	}
	r.chain.RootFound = s.rootAt >= 0
	if s.rootAt < 0 {
		s.rootAt = len(s.directories) - 1
	}
	r.tree = s.directories[s.rootAt:]
	r.chain.Root = r.tree[0].path
	r.above = slices.DeleteFunc(r.above, func(path string) bool { return Within(r.chain.Root, path) })
	return s, true
}

func (s *survey) close() { s.release(len(s.directories)) }

func (s *survey) release(n int) {
	for i := range s.directories[:n] {
		s.held -= s.directories[i].close()
	}
}

func (f *directory) close() int {
	if f.dir == nil {
		return 0
	}
	_ = f.dir.Close()
	f.dir = nil
	return 1
}

// setRoot makes the last directory the root, or drops the root, and closes all handles but the last directory's.
func (s *survey) setRoot(at int) {
	if s.rootAt >= 0 {
		s.release(len(s.directories) - 1)
	}
	s.rootAt = at
}

func (s *survey) walk() error {
	const separator = string(filepath.Separator)
	path := s.r.chain.Dir
	top := cmp.Or(s.r.chain.Options.Boundary, filepath.VolumeName(path)+separator)
	switch {
	case !filepath.IsAbs(path):
		return errors.New("the working directory's path is not absolute")
	case len(path) > maxPath:
		return syscall.ENAMETOOLONG
	case !Within(top, path):
		return ErrLeaves
	}
	dir, err := openReal(s.r.view, top, nil)
	if err != nil {
		return err
	}
	s.directories = make([]directory, 0, strings.Count(path, separator)+1)
	s.enter(directory{path: top, real: top}, dir)
	for end := len(strings.TrimSuffix(top, separator)) + 1; end < len(path); end++ {
		start := end
		if n := strings.IndexByte(path[start:], filepath.Separator); n >= 0 {
			end += n
		} else {
			end = len(path)
		}
		if err := s.step(path[:end], path[start:end]); err != nil {
			return s.end(path[:end], err)
		}
	}
	return nil
}

// These end the walk of a touched path at a link, and keep the chain above it.
var (
	// ErrLeaves is also for a boundary that is left.
	ErrLeaves = errors.New("the directory leads out of the tree")
	errGit    = errors.New("the directory leads into git's own files")
)

// end turns the error that ended the walk into a diagnostic, or returns it if it ends the chain.
func (s *survey) end(path string, err error) error {
	if !s.r.touched || !errors.Is(err, ErrLeaves) && !errors.Is(err, errGit) {
		return err
	}
	s.r.report(diagnostic(CodeOf(err), path, "%v; nothing below it is looked at", err))
	return nil
}

// step goes down to the directory at path, whose last element is name.
func (s *survey) step(path, name string) error {
	parent := s.directories[len(s.directories)-1]
	f := directory{path: path, real: path}
	if parent.real != parent.path {
		f.real = Below(parent.real, name)
	}
	dir, err := parent.dir.OpenDir(name)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		s.most = 0 // free handles for the process
		for i := range s.directories[:len(s.directories)-1] {
			if i != s.rootAt {
				s.held -= s.directories[i].close()
			}
		}
		dir, err = parent.dir.OpenDir(name)
	}
	if errors.Is(err, fsview.ErrLink) {
		dir, err = s.openLink(&f)
	}
	if err != nil {
		return err
	}
	s.enter(f, dir)
	return nil
}

// openLink opens a directory that is a link, if it may be followed: a person named the directories of the working
// directory's path, but not those of paths that tools touch. Below a boundary paths are real, so that a link has
// taken a directory's place.
func (s *survey) openLink(f *directory) (fsview.Dir, error) {
	inTree := s.r.touched && s.rootAt >= 0
	if s.r.chain.Options.Boundary != "" && !inTree {
		return nil, ErrLeaves
	}
	real, err := s.r.view.RealPath(f.real)
	if err != nil {
		return nil, err
	}
	f.link, f.real = true, real
	if !inTree {
		return openReal(s.r.view, real, nil)
	}
	root := s.directories[s.rootAt].real
	switch {
	case !Within(root, real):
		return nil, ErrLeaves
	case hasGitName(real[len(root):]):
		return nil, errGit
	}
	return openReal(s.r.view, real, func(path string, dir fsview.Dir) error {
		if Within(root, path) && hasGitStructure(dir) {
			return errGit
		}
		return nil
	})
}

// enter makes a directory the last one and looks whether it is the root.
func (s *survey) enter(f directory, dir fsview.Dir) {
	if last := len(s.directories) - 1; last >= 0 && last != s.rootAt && (s.rootAt < 0 || s.held >= s.most) {
		s.held -= s.directories[last].close()
	}
	f.dir = dir
	if o := &s.r.chain.Options; o.Above && filepath.Dir(f.path) != f.path { // the agent leaves out the top
		v := visitor{resolver: s.r, directory: f, scope: ScopeProject}
		for _, name := range slices.Concat(o.Names, o.LocalNames, slices.Concat(o.Otherwise...)) {
			if path := Below(f.path, filepath.FromSlash(name)); filepath.Dir(path) != o.GlobalDir && v.has(name) {
				s.r.above = append(s.r.above, path)
			}
		}
	}
	s.directories = append(s.directories, f)
	s.held++
	switch {
	case s.given.path != "":
		if s.rootAt < 0 && s.given.is(f) {
			s.setRoot(len(s.directories) - 1)
		}
	case s.own.config(f) || !s.marked(f):
	case s.own.noRoot(f):
		// The nearest marker decides, and here it makes nothing a root.
		s.setRoot(-1)
	default:
		s.setRoot(len(s.directories) - 1)
	}
}

// marked reports whether a directory holds a marker. An unreadable marker counts as absent.
func (s *survey) marked(f directory) bool {
	for _, name := range s.r.markers {
		info, err := f.dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		path, real := f.file(name)
		if err != nil {
			if p := problemOf(err); p.code == CodePermission {
				d := diagnostic(p.code, path, "the marker counts as absent: %s", p.detail)
				d.Severity = phases.SeverityWarning
				s.r.report(d)
				return false
			}
			continue
		}
		if info.IsLink() {
			_, err = s.r.view.RealPath(real)
		}
		if err == nil && (info.Mode.IsRegular() || info.Mode.IsDir() || info.IsLink()) {
			if s.rootAt >= 0 && info.Mode.IsDir() && !s.own.noRoot(f) && isEmpty(f.dir, name) {
				above := sdk.PlainName(s.directories[s.rootAt].path)
				s.r.report(diagnostic(CodeMarkerInvalid, path, "an empty directory, which hides the files of %s: remove it", above))
			}
			return true
		}
	}
	return false
}

func isEmpty(parent fsview.Dir, name string) bool {
	dir, err := parent.OpenDir(name)
	if err != nil {
		return false
	}
	defer func() { _ = dir.Close() }()
	list, err := dir.Entries(1)
	return err == nil && len(list) == 0
}

// givenRoot is the root that the options name; without path there is none.
type givenRoot struct {
	path, real string
	info       fsview.Info
	byName     bool // the working directory lies below it as written
}

// givenRoot looks at the options' root. Not ok means that it was refused.
func (r *resolver) givenRoot() (givenRoot, bool) {
	if r.chain.Options.Root == "" {
		return givenRoot{}, true
	}
	g := givenRoot{path: filepath.Clean(r.chain.Options.Root)}
	if boundary := r.chain.Options.Boundary; boundary != "" && Within(g.path, boundary) {
		g.path = boundary
	}
	if r.refuse(!filepath.IsAbs(g.path), "the root's path is not absolute") {
		return g, false
	}
	g.byName = Within(g.path, r.chain.Dir)
	var err error
	if g.real, err = r.view.RealPath(g.path); err == nil {
		var dir fsview.Dir
		if dir, err = r.view.OpenDir(g.real); err == nil {
			g.info, err = dir.Info()
			_ = dir.Close()
		}
	}
	if err != nil {
		r.refuse(true, "the root cannot be opened: "+fsview.Cause(err))
		return g, false
	}
	return g, true
}

// refuse ends the chain if the condition holds: an invalid root in the options must not be replaced by a guess.
func (r *resolver) refuse(condition bool, detail string) bool {
	if condition {
		r.chain.Root, r.chain.RootFound = "", false
		r.report(diagnostic(CodeRootRefused, r.chain.Options.Root, "%s; no file is read", detail))
	}
	return condition
}

// is reports whether a directory on the way is the root, possibly under another name.
func (g givenRoot) is(f directory) bool {
	if g.byName || f.path == g.path {
		return f.path == g.path
	}
	if f.real == g.real {
		return true
	}
	info, err := f.dir.Info()
	return err == nil && info.Same(g.info)
}

// ownPlaces are the user's own directories, as written and behind links.
type ownPlaces struct {
	homes, configs []string
	wide           bool // the home directory and the top are not roots
}

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

// bothPaths returns a path as written and, if it differs, behind links.
func (r *resolver) bothPaths(path string) []string {
	paths := []string{filepath.Clean(path)}
	if real, err := r.view.RealPath(paths[0]); err == nil && real != paths[0] {
		paths = append(paths, real)
	}
	return paths
}

func (o ownPlaces) config(f directory) bool {
	return slices.ContainsFunc(o.configs, func(p string) bool { return Within(p, f.path) || Within(p, f.real) })
}

// noRoot reports whether a directory is the home directory or the top of the file system, which are too wide to be
// meant as a source tree.
func (o ownPlaces) noRoot(f directory) bool {
	return o.wide && (filepath.Dir(f.path) == f.path || filepath.Dir(f.real) == f.real ||
		slices.Contains(o.homes, f.path) || slices.Contains(o.homes, f.real))
}

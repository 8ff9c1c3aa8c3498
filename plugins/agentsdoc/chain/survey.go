package chain

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// maxPath bounds the working folder's path, in bytes. It is what systems take
// as one path; there can be no folders beyond it that a tool could name.
const maxPath = 4096

// folder is one element of the working folder's path.
type folder struct {
	path string // as the working folder's path was written
	real string // behind links
	link bool   // the last element is a link
	dir  Dir    // its handle, while it is visited
}

// file returns the paths of a name in the folder. A name is one plain element,
// and the folder's paths are clean, so there is nothing to clean again: with
// long paths that would cost more than to look the file up.
func (f folder) file(name string) (path, real string) {
	path = below(f.path, name)
	if f.real == f.path {
		return path, path
	}
	return path, below(f.real, name)
}

// below joins a clean path and a name.
func below(path, name string) string {
	if path[len(path)-1] == filepath.Separator {
		return path + name
	}
	return path + string(filepath.Separator) + name
}

// open opens the folder, given its parent's handle.
func (f folder) open(view FS, parent Dir) (Dir, error) {
	if f.link {
		return view.OpenDir(f.real)
	}
	return parent.OpenDir(filepath.Base(f.path))
}

// survey is the first walk, from the top of the file system to the working
// folder. It finds the root, and the real paths; no file is opened on it.
type survey struct {
	r       *resolver
	folders []folder
	rootAt  int // index of the root, or -1
	root    Dir // handle of the root
	last    Dir // handle of the last folder
	own     ownPlaces
	given   givenRoot
}

// survey walks to the working folder. Not ok means that the options' root was
// refused: then there is no chain at all.
func (r *resolver) survey() (*survey, bool) {
	given, ok := r.givenRoot()
	if !ok {
		return nil, false
	}
	s := &survey{r: r, rootAt: -1, given: given, own: r.ownPlaces()}
	if err := s.walk(); err != nil {
		s.close()
		r.reportFolder(r.chain.Dir, err)
		return &survey{r: r, rootAt: -1}, !r.refuse(given.elsewhere(), "the working folder is not below it")
	}
	if r.refuse(given.path != "" && s.rootAt < 0, "the working folder is not below it") {
		s.close()
		return nil, false
	}
	r.chain.RootFound = s.rootAt >= 0
	if s.rootAt < 0 {
		s.keepRoot()
	}
	r.chain.Root = s.folders[s.rootAt].path
	return s, true
}

// tree returns the folders from the root down.
func (s *survey) tree() []folder {
	if s.rootAt < 0 {
		return nil
	}
	return s.folders[s.rootAt:]
}

// close closes the handles that the walk kept.
func (s *survey) close() {
	s.dropRoot()
	if s.last != nil {
		_ = s.last.Close()
	}
}

// keepRoot makes the last folder the root, whose handle then stays open.
func (s *survey) keepRoot() {
	s.dropRoot()
	s.rootAt, s.root = len(s.folders)-1, s.last
}

// dropRoot forgets the root. Its handle stays open while it is the last one's.
func (s *survey) dropRoot() {
	if s.rootAt >= 0 && s.rootAt < len(s.folders)-1 {
		_ = s.root.Close()
	}
	s.rootAt, s.root = -1, nil
}

// walk opens one folder after the other and judges each.
func (s *survey) walk() error {
	path := s.r.chain.Dir
	switch {
	case !filepath.IsAbs(path):
		return errors.New("the working folder's path is not absolute")
	case len(path) > maxPath:
		return errTooLong
	}
	top := filepath.VolumeName(path) + string(filepath.Separator)
	dir, err := s.r.view.OpenDir(top)
	if err != nil {
		return err
	}
	s.folders = make([]folder, 0, strings.Count(path, string(filepath.Separator))+1)
	s.enter(folder{path: top, real: top}, dir)
	for end := len(top); end < len(path); end++ {
		start := end
		if n := strings.IndexByte(path[start:], filepath.Separator); n >= 0 {
			end += n
		} else {
			end = len(path)
		}
		if err := s.step(path[:end], path[start:end]); err != nil {
			return err
		}
	}
	return nil
}

// step goes one folder down, to the one at path, whose last element is name.
func (s *survey) step(path, name string) error {
	parent := s.folders[len(s.folders)-1]
	f := folder{path: path, real: path}
	if parent.real != parent.path {
		f.real = below(parent.real, name)
	}
	dir, err := s.last.OpenDir(name)
	if errors.Is(err, ErrLink) {
		f.link = true
		if f.real, err = s.r.view.RealPath(f.real); err == nil {
			dir, err = s.r.view.OpenDir(f.real)
		}
	}
	if err != nil {
		return err
	}
	s.enter(f, dir)
	return nil
}

// enter makes a folder the last one and looks whether it is the root.
func (s *survey) enter(f folder, dir Dir) {
	if s.last != nil && s.rootAt != len(s.folders)-1 {
		_ = s.last.Close()
	}
	s.last = dir
	s.folders = append(s.folders, f)
	switch {
	case s.given.path != "":
		if s.rootAt < 0 && s.given.is(f, dir) {
			s.keepRoot()
		}
	case s.own.config(f) || !s.marked(f, dir):
	case s.own.noRoot(f):
		// The nearest marker decides, and here it makes nothing a root.
		s.dropRoot()
	default:
		s.keepRoot()
	}
}

// marked reports whether a folder holds a marker. A marker that may not be
// looked at counts as absent.
func (s *survey) marked(f folder, dir Dir) bool {
	for _, name := range s.r.markers {
		info, err := dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		path, real := f.file(name)
		if err != nil {
			if p := problemOf(err); p.code == CodePermission {
				d := diagnostic(p.code, path, "the marker counts as absent: %s", p.detail)
				d.Severity = SeverityWarning
				s.r.report(d)
				return false
			}
			continue
		}
		if info.isLink() {
			_, err = s.r.view.RealPath(real)
		}
		if err == nil && (info.Mode.IsRegular() || info.Mode.IsDir() || info.isLink()) {
			return true
		}
	}
	return false
}

// ownPlaces are the user's own folders, as written and behind links.
type ownPlaces struct {
	homes, configs []string
}

// ownPlaces reads them from the options.
func (r *resolver) ownPlaces() ownPlaces {
	var own ownPlaces
	if len(r.markers) == 0 {
		return own
	}
	if home := r.chain.Options.Home; home != "" {
		own.homes = r.bothPaths(home)
	}
	for _, path := range r.chain.Options.ConfigDirs {
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
	return filepath.Dir(f.path) == f.path || filepath.Dir(f.real) == f.real ||
		slices.Contains(o.homes, f.path) || slices.Contains(o.homes, f.real)
}

// within reports whether path is base or below it. Both are clean.
func within(base, path string) bool {
	rest, ok := strings.CutPrefix(path, base)
	return ok && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(base, string(filepath.Separator)))
}

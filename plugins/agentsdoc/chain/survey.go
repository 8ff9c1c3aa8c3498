package chain

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"
)

// maxPath bounds the working folder's path, in bytes. It is what systems take
// as one path; there can be no folders beyond it that a tool could name.
const maxPath = 4096

// maxHeld bounds the handles that the survey keeps. A folder without one is
// opened again when it is visited.
const maxHeld = 128

// survey is the first walk, from the top of the file system to the working
// folder. It finds the root, and the real paths; no file is opened on it. The
// handles of the folders below the root stay open for the second walk.
type survey struct {
	r       *resolver
	folders []folder
	held    int // open handles
	most    int // how many may be
	rootAt  int // index of the root, or -1
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
	s := &survey{r: r, rootAt: -1, most: maxHeld, given: given, own: r.ownPlaces()}
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

// tree returns the folders from the root down. They are the survey's, which
// closes those that are open.
func (s *survey) tree() []folder {
	if s.rootAt < 0 {
		return nil
	}
	return s.folders[s.rootAt:]
}

// close closes the handles that are still there.
func (s *survey) close() { s.release(len(s.folders)) }

// release closes the handles of the first n folders.
func (s *survey) release(n int) {
	for i := range s.folders[:n] {
		s.held -= s.folders[i].close()
	}
}

// releaseSpare closes all handles but the root's and the last folder's.
func (s *survey) releaseSpare() {
	for i := range s.folders[:len(s.folders)-1] {
		if i != s.rootAt {
			s.held -= s.folders[i].close()
		}
	}
}

// close closes the folder's handle and counts it.
func (f *folder) close() int {
	if f.dir == nil {
		return 0
	}
	_ = f.dir.Close()
	f.dir = nil
	return 1
}

// keepRoot makes the last folder the root.
func (s *survey) keepRoot() {
	s.dropRoot()
	s.rootAt = len(s.folders) - 1
}

// dropRoot forgets the root, and keeps no handle but the last folder's.
func (s *survey) dropRoot() {
	if s.rootAt >= 0 {
		s.release(len(s.folders) - 1)
	}
	s.rootAt = -1
}

// walk opens one folder after the other and judges each.
func (s *survey) walk() error {
	const separator = string(filepath.Separator)
	path := s.r.chain.Dir
	top := cmp.Or(s.r.chain.Options.Boundary, filepath.VolumeName(path)+separator)
	switch {
	case !filepath.IsAbs(path):
		return errors.New("the working folder's path is not absolute")
	case len(path) > maxPath:
		return errTooLong
	case !within(top, path):
		return errLeaves
	}
	dir, err := openReal(s.r.view, top, nil)
	if err != nil {
		return err
	}
	s.folders = make([]folder, 0, strings.Count(path, separator)+1)
	s.enter(folder{path: top, real: top}, dir)
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

// What ends the walk of a touched path at a link, and not the chain above it.
var (
	errLeaves = errors.New("it leads out of the root")
	errGit    = errors.New("the link leads into git's own files")
)

// end judges what ended the walk at a folder. An error is one of the whole walk.
func (s *survey) end(path string, err error) error {
	switch {
	case !s.r.touched:
		return err
	case errors.Is(err, errLeaves):
		s.r.report(diagnostic(CodeSymlinkEscape, path, "the folder leads out of the tree; nothing below it is looked at"))
	case errors.Is(err, errGit):
		s.r.report(diagnostic(CodeGitMetadata, path, "the folder leads into git's own files; nothing below it is looked at"))
	default:
		return err
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
	dir, err := parent.dir.OpenDir(name)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		s.most = 0 // the process has better uses for them
		s.releaseSpare()
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

// openLink opens a folder that is a link, where that may be followed: the
// folders of the working folder's path are those that the person named, and
// paths that tools touch have no such right. Below a boundary paths are real ones,
// so that a link has taken a folder's place.
func (s *survey) openLink(f *folder) (fsview.Dir, error) {
	inTree := s.r.touched && s.rootAt >= 0
	if s.r.chain.Options.Boundary != "" && !inTree {
		return nil, errLeaves
	}
	real, err := s.r.view.RealPath(f.real)
	if err != nil {
		return nil, err
	}
	f.link, f.real = true, real
	if !inTree {
		return openReal(s.r.view, real, nil)
	}
	root := s.folders[s.rootAt].real
	switch {
	case !within(root, real):
		return nil, errLeaves
	case hasGitName(real[len(root):]):
		return nil, errGit
	}
	return openReal(s.r.view, real, func(path string, dir fsview.Dir) error {
		if within(root, path) && hasGitStructure(dir) {
			return errGit
		}
		return nil
	})
}

// enter makes a folder the last one and looks whether it is the root.
func (s *survey) enter(f folder, dir fsview.Dir) {
	if last := len(s.folders) - 1; last >= 0 && last != s.rootAt && (s.rootAt < 0 || s.held >= s.most) {
		s.held -= s.folders[last].close()
	}
	f.dir = dir
	s.folders = append(s.folders, f)
	s.held++
	switch {
	case s.given.path != "":
		if s.rootAt < 0 && s.given.is(f) {
			s.keepRoot()
		}
	case s.own.config(f) || !s.marked(f):
	case s.own.noRoot(f):
		// The nearest marker decides, and here it makes nothing a root.
		s.dropRoot()
	default:
		s.keepRoot()
	}
}

// marked reports whether a folder holds a marker. A marker that may not be
// looked at counts as absent.
func (s *survey) marked(f folder) bool {
	for _, name := range s.r.markers {
		info, err := f.dir.Lstat(name)
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
		if info.IsLink() {
			_, err = s.r.view.RealPath(real)
		}
		if err == nil && (info.Mode.IsRegular() || info.Mode.IsDir() || info.IsLink()) {
			return true
		}
	}
	return false
}

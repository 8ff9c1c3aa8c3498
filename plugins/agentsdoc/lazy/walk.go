package lazy

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/ignore"
)

// Bounds of one walk.
const (
	maxPath  = 4096 // bytes of a path, as it bounds working folders
	maxLinks = 40   // links on a way, as systems bound them
)

// CodeOutsideRoot is a path that does not lie in the root, of which nothing is
// said.
const CodeOutsideRoot chain.Code = "outside_root"

// isForeign reports whether a folder belongs to a tool by its name: what lies in
// it was written by others, or by no person at all.
func isForeign(name string) bool {
	switch name {
	case ".git", ".jj", ".hg", "node_modules", "vendor", "third_party", ".venv", "target":
		return true
	}
	return false
}

// way is how far a path leads. Both are absolute, below the root as it is
// written.
type way struct {
	// folder is the last folder that is looked at.
	folder string
	// top is the folder that inheritance begins at: the root, or the top of a
	// nested repository.
	top string
}

// inside makes a path absolute and below the root as that is written. Not ok
// means that it is outside, which is reported.
func (t *toucher) inside(path string) (string, bool) {
	s := t.state
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Dir, path)
	}
	path = filepath.Clean(path)
	switch {
	case len(path) > maxPath:
		t.reportf(chain.CodePathTooLong, path, "the path is longer than %d bytes", maxPath)
		return path, false
	case s.Root == "" || !filepath.IsAbs(path):
		t.reportf(CodeOutsideRoot, path, "there is no root that it could lie in")
		return path, false
	case within(s.Root, path):
		return path, true
	}
	if rest, ok := t.behindLinks(path); ok {
		return filepath.Join(s.Root, rest), true
	}
	t.reportf(CodeOutsideRoot, path, "it is not in the root, %s", chain.PrintPath(s.Root))
	return path, false
}

// behindLinks finds the place in the root of a path that is written in another
// way: tools often print where a file really is.
func (t *toucher) behindLinks(path string) (rest string, ok bool) {
	root, ok := t.realRoot()
	if !ok {
		return "", false
	}
	for folder := path; ; folder = filepath.Dir(folder) {
		real, err := t.view.RealPath(folder)
		switch {
		case err == nil:
			real = filepath.Join(real, path[len(folder):])
			return strings.TrimPrefix(real[min(len(real), len(root)):], separator), within(root, real)
		case !errors.Is(err, fs.ErrNotExist) || filepath.Dir(folder) == folder:
			return "", false
		}
	}
}

// realRoot is where the root is. It is looked up when it is first needed.
func (t *toucher) realRoot() (string, bool) {
	if t.real == "" {
		real, err := t.view.RealPath(t.state.Root)
		if err != nil {
			return "", false
		}
		t.real = real
	}
	return t.real, true
}

// walk goes from the root towards a path, and finds where the way ends: at the
// folder that it leads to, or above what is missing, a file, or not looked at.
// It only says what is asked for. The chain that is then resolved from the root
// keeps its own rules, so nothing is gained by changing folders in between.
func (t *toucher) walk(path string) way {
	w := walker{toucher: t}
	defer w.close()
	names := split(path[len(t.state.Root):])
	n, top := w.run(names)
	folder := func(n int) string { return filepath.Join(append([]string{t.state.Root}, names[:n]...)...) }
	return way{folder: folder(n), top: folder(top)}
}

// walker is one walk. Where a path is written by way of a link, it goes on by
// the real names, of which each is a folder below the one before.
type walker struct {
	*toucher

	dir     fsview.Dir
	at      []string // real names from the root to dir
	ignored ignore.Way
	links   int
}

// run returns how many names lead to the last folder, and how many to the top.
func (w *walker) run(names []string) (n, top int) {
	if !w.start() {
		return 0, 0
	}
	var own []string // to the working folder: a person named these folders
	if within(w.state.Root, w.state.Dir) {
		own = split(w.state.Dir[len(w.state.Root):])
	}
	for i, name := range names {
		named := len(own) > i && slices.Equal(own[:i+1], names[:i+1])
		nested, err := w.enter(name, named)
		if errors.Is(err, fsview.ErrLink) {
			nested, err = w.follow(name, named)
		}
		if err != nil {
			w.reportFolder(filepath.Join(w.state.Root, filepath.Join(names[:i+1]...)), err)
			return i, top
		}
		if nested {
			top = i + 1
		}
	}
	return len(names), top
}

// What ends a walk beside errors of the view.
var (
	errBoundary = errors.New("the folder is not looked at")
	errLeaves   = errors.New("the link leads out of the root")
)

// start opens the root.
func (w *walker) start() bool {
	w.close()
	dir, err := chain.OpenRoot(w.view, w.state.Root, &w.options)
	if err != nil {
		w.reportFolder(w.state.Root, err)
		return false
	}
	w.dir, w.at, w.ignored = dir, w.at[:0], ignore.Way{}
	w.addPatterns(true)
	return true
}

// close lets the last folder go.
func (w *walker) close() {
	if w.dir != nil {
		_ = w.dir.Close()
		w.dir = nil
	}
}

// enter goes into a folder that is no link, and tells whether it is the top of a
// repository. Folders that a person named have no boundary.
func (w *walker) enter(name string, named bool) (nested bool, err error) {
	if !named && isForeign(name) {
		return false, errBoundary
	}
	child, err := w.dir.OpenDir(name)
	if err != nil {
		return false, err
	}
	w.close()
	w.dir, w.at = child, append(w.at, name)
	w.ignored.Enter(name)
	if !named && w.ignored.Ignored() {
		return false, errBoundary
	}
	if nested = w.isTop(); nested {
		w.ignored.Reset()
	}
	w.addPatterns(nested)
	return nested, nil
}

// follow goes to the folder that a link leads to, from the root: it may not lie
// behind a boundary either.
func (w *walker) follow(name string, named bool) (nested bool, err error) {
	root, ok := w.realRoot()
	if w.links++; !ok || w.links > maxLinks {
		return false, errBoundary
	}
	link := filepath.Join(append([]string{root}, append(slices.Clone(w.at), name)...)...)
	real, err := w.view.RealPath(link)
	if err != nil {
		return false, err
	}
	if !within(root, real) {
		return false, errLeaves
	}
	if !w.start() {
		return false, errBoundary
	}
	for _, name := range split(real[len(root):]) {
		top, err := w.enter(name, named)
		if err != nil {
			return false, err
		}
		nested = nested || top
	}
	return nested, nil
}

// isTop reports whether the folder holds a marker.
func (w *walker) isTop() bool {
	for _, name := range w.markers {
		if info, err := w.dir.Lstat(name); err == nil && (info.Mode.IsRegular() || info.Mode.IsDir() || info.IsLink()) {
			return true
		}
	}
	return false
}

// addPatterns reads what the folder says of ignored ones; at the top of a
// repository, also the list that it keeps for itself.
func (w *walker) addPatterns(top bool) {
	if top {
		if text := readIn(w.dir, ".git", "info", "exclude"); text != "" {
			w.ignored.Add(text)
		}
	}
	if text := readIn(w.dir, ignore.File); text != "" {
		w.ignored.Add(text)
	}
}

// readIn reads a small file below a folder. No element may be a link, and what
// cannot be read is not there.
func readIn(dir fsview.Dir, names ...string) string {
	if len(names) > 1 {
		child, err := dir.OpenDir(names[0])
		if err != nil {
			return ""
		}
		defer func() { _ = child.Close() }()
		return readIn(child, names[1:]...)
	}
	f, err := dir.Open(names[0]) //nolint:gosec // callers give one name at least
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	info, err := f.Info()
	if err != nil || !info.Mode.IsRegular() {
		return ""
	}
	var out bytes.Buffer
	out.Grow(int(min(info.Size, ignore.MaxBytes)) + bytes.MinRead)
	if _, err := out.ReadFrom(io.LimitReader(f, ignore.MaxBytes)); err != nil {
		return ""
	}
	return out.String()
}

// reportFolder reports why the way ends above a folder. That there is none, or a
// file, is what most paths end with.
func (t *toucher) reportFolder(path string, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, errBoundary):
	case errors.Is(err, errLeaves):
		t.reportf(chain.CodeSymlinkEscape, path, "the folder leads out of the tree; nothing below it is looked at")
	case errors.Is(err, fs.ErrPermission):
		t.reportf(chain.CodePermission, path, "the folder cannot be entered; nothing below it is looked at")
	case errors.Is(err, syscall.ENAMETOOLONG):
		t.reportf(chain.CodePathTooLong, path, "the name is too long for there to be such a folder")
	default:
		t.reportf(chain.CodeReadError, path, "the folder cannot be entered; nothing below it is looked at")
	}
}

// separator is between the names of a path.
const separator = string(filepath.Separator)

// split takes a path below a folder apart.
func split(path string) []string {
	path = strings.Trim(path, separator)
	if path == "" {
		return nil
	}
	return strings.Split(path, separator)
}

// within reports whether path is base or below it. Both are clean.
func within(base, path string) bool {
	rest, ok := strings.CutPrefix(path, base)
	return ok && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(base, separator))
}

package lazy

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/ignore"
	"github.com/grapnelhq/grapnel/sdk"
)

// Bounds of one walk.
const (
	maxPath  = 4096 // bytes of a path, as it bounds working directories
	maxLinks = 40   // links on a way, as systems bound them
)

// CodeOutsideRoot is a path outside of the root, which is ignored.
const CodeOutsideRoot chain.Code = "outside_root"

// way is how far a path leads. Both are absolute, below the root as written.
type way struct {
	directory string // the last one that is looked at
	top       string // where inheritance begins: the root, or the top of a nested repository
}

// inside makes a path absolute and below the root as written. Not ok means that it is outside, which is reported.
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
		t.reportf(CodeOutsideRoot, path, "the session has no root")
		return path, false
	case chain.Within(s.Root, path):
		return path, true
	}
	if rest, ok := t.behindLinks(path); ok {
		return filepath.Join(s.Root, rest), true
	}
	t.reportf(CodeOutsideRoot, path, "it is not in the root, %s", sdk.PlainName(s.Root))
	return path, false
}

// behindLinks finds the place in the root of a path that is written in another way: tools often print real paths.
func (t *toucher) behindLinks(path string) (rest string, ok bool) {
	root, ok := t.realRoot()
	if !ok {
		return "", false
	}
	for directory := path; ; directory = filepath.Dir(directory) {
		real, err := t.view.RealPath(directory)
		switch {
		case err == nil:
			real = filepath.Join(real, path[len(directory):])
			return strings.TrimPrefix(real[min(len(real), len(root)):], separator), chain.Within(root, real)
		case !errors.Is(err, fs.ErrNotExist) || filepath.Dir(directory) == directory:
			return "", false
		}
	}
}

// realRoot is the root behind links, looked up on first use.
func (t *toucher) realRoot() (string, bool) {
	if t.real == "" {
		t.real, _ = t.view.RealPath(t.state.Root)
	}
	return t.real, t.real != ""
}

// walk goes from the root towards a path and finds where the way ends: at its directory, above what is missing or a
// file, or at a boundary. It opens no instruction file; the chain that is then resolved has its own checks.
func (t *toucher) walk(path string) way {
	w := walker{toucher: t}
	defer w.close()
	names := split(path[len(t.state.Root):])
	n, top := w.run(names)
	directory := func(n int) string { return filepath.Join(append([]string{t.state.Root}, names[:n]...)...) }
	return way{directory: directory(n), top: directory(top)}
}

// walker is one walk. After a link it continues with the real names, each a directory below the one before.
type walker struct {
	*toucher

	dir     fsview.Dir
	at      []string // real names from the root to dir
	ignored ignore.Way
	links   int
}

// run returns how many names lead to the last directory, and how many to the top.
func (w *walker) run(names []string) (n, top int) {
	if !w.start() {
		return 0, 0
	}
	var own []string // to the working directory: a person named these directories
	if chain.Within(w.state.Root, w.state.Dir) {
		own = split(w.state.Dir[len(w.state.Root):])
	}
	for i, name := range names {
		named := len(own) > i && slices.Equal(own[:i+1], names[:i+1])
		nested, err := w.enter(name, named)
		if errors.Is(err, fsview.ErrLink) {
			nested, err = w.follow(name, named)
		}
		if err != nil {
			w.reportDirectory(filepath.Join(w.state.Root, filepath.Join(names[:i+1]...)), err)
			return i, top
		}
		if nested {
			top = i + 1
		}
	}
	return len(names), top
}

// errBoundary ends a walk, like errors of the view.
var errBoundary = errors.New("the directory is not looked at")

func (w *walker) start() bool {
	w.close()
	dir, err := chain.OpenRoot(w.view, w.state.Root, &w.options)
	if err != nil {
		w.reportDirectory(w.state.Root, err)
		return false
	}
	w.dir, w.at, w.ignored = dir, w.at[:0], ignore.Way{}
	w.addPatterns(true)
	return true
}

func (w *walker) close() {
	if w.dir != nil {
		_ = w.dir.Close()
		w.dir = nil
	}
}

// enter goes into a directory that is not a link, and reports whether it is the top of a repository. Directories that
// a person named have no boundary.
func (w *walker) enter(name string, named bool) (nested bool, err error) {
	if !named && (ignore.IsMetadata(name) || ignore.IsForeign(name)) {
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

// follow goes to the directory that a link leads to, from the root: it may not lie behind a boundary either.
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
	if !chain.Within(root, real) {
		return false, chain.ErrLeaves
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

func (w *walker) isTop() bool {
	for _, name := range w.markers {
		if info, err := w.dir.Lstat(name); err == nil && (info.Mode.IsRegular() || info.Mode.IsDir() || info.IsLink()) {
			return true
		}
	}
	return false
}

// addPatterns reads the directory's patterns; at the top of a repository, also its private ones.
func (w *walker) addPatterns(top bool) {
	if top {
		w.ignored.Add(readIn(w.dir, ".git", "info", "exclude"))
	}
	w.ignored.Add(readIn(w.dir, ignore.File))
}

// readIn reads a small file below a directory. No element may be a link; unreadable counts as missing.
func readIn(dir fsview.Dir, names ...string) string {
	if len(names) > 1 {
		child, err := dir.OpenDir(names[0])
		if err != nil {
			return ""
		}
		defer func() { _ = child.Close() }()
		return readIn(child, names[1:]...)
	}
	text, _ := fsview.ReadText(dir, names[0], ignore.MaxBytes) //nolint:gosec // callers give one name at least
	return text
}

// reportDirectory reports why the way ends above a directory, unless the rest is merely missing or a file.
func (t *toucher) reportDirectory(path string, err error) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, errBoundary) {
		return
	}
	detail := "the directory cannot be entered"
	if errors.Is(err, chain.ErrLeaves) {
		detail = err.Error()
	}
	t.reportf(chain.CodeOf(err), path, "%s; nothing below it is looked at", detail)
}

const separator = string(filepath.Separator)

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}

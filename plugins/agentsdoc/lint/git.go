package lint

import (
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
)

// gitName is what a repository has in its top folder: git's own folder, or a file
// that says where that is.
const gitName = ".git"

// maxGitText bounds git's small files.
const maxGitText = 1 << 20

// ownPatterns are those of ignored names that a repository keeps for itself, if the
// root is one.
func ownPatterns(view chain.FS, root string) string {
	folder := gitFolder(view, root)
	if folder == "" {
		return ""
	}
	if above := filepath.Dir(folder); filepath.Base(above) == "worktrees" {
		folder = filepath.Dir(above) // of a worktree, which shares the list
	}
	text, err := readText(view, filepath.Join(folder, "info"), "exclude")
	if err != nil {
		return ""
	}
	return text
}

// gitFolder is the real path of where git keeps what it knows of the repository at a
// folder; empty where there is none. Whoever wrote the tree may have written its .git: a
// link is not followed, and the folder that a file names counts only if it names the tree
// as one of its worktrees.
func gitFolder(view chain.FS, top string) string {
	top, err := view.RealPath(top)
	if err != nil {
		return ""
	}
	dir, err := view.OpenDir(top)
	if err != nil {
		return ""
	}
	defer func() { _ = dir.Close() }()
	info, err := dir.Lstat(gitName)
	own := filepath.Join(top, gitName)
	switch {
	case err != nil:
		return ""
	case info.Mode.IsDir():
		return own
	case !info.Mode.IsRegular():
		return ""
	}
	text, err := readText(view, top, gitName)
	target, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir:")
	if err != nil || !ok {
		return ""
	}
	folder, err := view.RealPath(resolvePath(top, target))
	if err != nil {
		return ""
	}
	back, err := readText(view, folder, "gitdir")
	if err != nil {
		return ""
	}
	if real, err := view.RealPath(resolvePath(folder, back)); err != nil || real != own {
		return ""
	}
	return folder
}

// resolvePath is a path in a file of git's.
func resolvePath(from, text string) string {
	path := filepath.FromSlash(strings.TrimSpace(text))
	if !filepath.IsAbs(path) {
		path = filepath.Join(from, path)
	}
	return filepath.Clean(path)
}

// errNotRegular is the error for something else than a file.
var errNotRegular = errors.New("is not a regular file")

// openRegular opens a file without ever blocking on what has its name. No element of the
// folder's real path may have become a link.
func openRegular(view chain.FS, folder, name string) (io.ReadCloser, error) {
	dir, err := chain.OpenRoot(view, folder, &chain.Options{Boundary: folder})
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Info()
	if err == nil && !info.Mode.IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// readText reads a small file.
func readText(view chain.FS, folder, name string) (string, error) {
	f, err := openRegular(view, folder, name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxGitText))
	return string(data), err
}

// reportTracked reports personal files that git tracks: they are the person's own,
// and everyone gets them. The index is read when there is such a file, and git is
// never run.
func (w *walker) reportTracked() {
	if len(w.locals) == 0 {
		return
	}
	top := w.repository()
	if top == "" {
		return
	}
	folder := gitFolder(w.memory.view, top)
	wanted := map[string]string{} // paths by the name in the index
	for _, path := range w.locals {
		wanted[display(top, path)] = path
	}
	found, err := tracked(w.memory.view, folder, wanted)
	if err != nil {
		w.findings.add(chain.CodeReadError, filepath.Join(folder, indexName), "git's index cannot be read, so personal files that are tracked may be missed: "+cause(err))
	}
	for _, path := range w.locals {
		if found[path] {
			w.findings.add(codeTrackedLocal, path, "a personal file that git tracks, so that everyone gets it; git rm --cached takes it out")
		}
	}
}

// codeTrackedLocal is lint's own code.
const codeTrackedLocal chain.Code = "tracked_local"

// repository is the top of the repository that the root lies in, or empty.
func (w *walker) repository() string {
	for path := w.root; ; path = filepath.Dir(path) {
		if gitFolder(w.memory.view, path) != "" {
			return path
		}
		if filepath.Dir(path) == path {
			return ""
		}
	}
}

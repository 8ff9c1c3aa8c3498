package lint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

// gitName is git's directory, or a file that names it.
const gitName = ".git"

const (
	maxGitText  = 1 << 20
	gitPatience = 20 * time.Second
)

// ownPatterns are the repository's own ignore patterns, if the root is a repository.
func ownPatterns(view chain.FS, root string) string {
	directory := gitDirectory(view, root)
	if directory == "" {
		return ""
	}
	if above := filepath.Dir(directory); filepath.Base(above) == "worktrees" {
		directory = filepath.Dir(above) // a worktree shares the list
	}
	text, _ := readText(view, filepath.Join(directory, "info"), "exclude", maxGitText)
	return text
}

// gitDirectory is the real path of the git directory of the repository at top, or "". The author of the tree may have
// written its .git: a link is not followed, and a directory that a .git file names counts only if it lists the tree
// as a worktree.
func gitDirectory(view chain.FS, top string) string {
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
	text, err := readText(view, top, gitName, maxGitText)
	target, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir:")
	if err != nil || !ok {
		return ""
	}
	var back, real string
	directory, err := view.RealPath(resolvePath(top, target))
	if err == nil {
		back, err = readText(view, directory, "gitdir", maxGitText)
	}
	if err == nil {
		real, err = view.RealPath(resolvePath(directory, back))
	}
	if err != nil || real != own {
		return ""
	}
	return directory
}

func resolvePath(from, text string) string {
	path := filepath.FromSlash(strings.TrimSpace(text))
	if !filepath.IsAbs(path) {
		path = filepath.Join(from, path)
	}
	return filepath.Clean(path)
}

// readText reads some bytes of a regular file without ever blocking. No element of the directory's real path may have become
// a link.
func readText(view chain.FS, directory, name string, most int64) (string, error) {
	dir, err := chain.OpenRoot(view, directory, &chain.Options{Boundary: directory})
	if err != nil {
		return "", err
	}
	defer func() { _ = dir.Close() }()
	return fsview.ReadText(dir, name, most)
}

const codeTrackedLocal chain.Code = "tracked_local"

// reportTracked reports personal files that git tracks. The index is read only if there are personal files.
func (w *walker) reportTracked() {
	if len(w.locals) == 0 {
		return
	}
	top, directory := w.repository()
	if directory == "" {
		return
	}
	names := make([]string, len(w.locals))
	for i, path := range w.locals {
		names[i] = display(top, path)
	}
	tracked, err := trackedFiles(w.ctx, w.view, directory, names)
	if err != nil {
		w.findings.add(chain.CodeReadError, filepath.Join(directory, "index"), "git's index cannot be read, so tracked personal files may be missed: "+fsview.Cause(err))
		return
	}
	for i, path := range w.locals {
		if slices.Contains(tracked, names[i]) {
			w.findings.add(codeTrackedLocal, path, "a personal file that git tracks, so that everyone gets it; git rm --cached takes it out")
		}
	}
}

// repository is the top of the repository around the root and its git directory; empty if there is none.
func (w *walker) repository() (top, directory string) {
	for path := w.root; ; path = filepath.Dir(path) {
		if directory := gitDirectory(w.view, path); directory != "" {
			return path, directory
		}
		if filepath.Dir(path) == path {
			return "", ""
		}
	}
}

// trackedFiles returns which of the names are in the index of a git directory. Git reads the index for an empty
// repository of ours, so that no configuration, hook or object of the tree's repository takes part.
func trackedFiles(ctx context.Context, view chain.FS, directory string, names []string) ([]string, error) {
	if _, err := readText(view, directory, "index", 0); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "grapnel-lint-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	format := "sha1"
	if text, _ := readText(view, directory, "config", maxGitText); sha256Format.MatchString(text) {
		format = "sha256"
	}
	ctx, cancel := context.WithTimeout(ctx, gitPatience)
	defer cancel()
	index := filepath.Join(directory, "index")
	if _, err := git(ctx, temp, index, "init", "--quiet", "--bare", "--template=", "--object-format="+format, temp); err != nil {
		return nil, err
	}
	args := []string{"--git-dir=" + temp, "--work-tree=" + temp, "--literal-pathspecs", "ls-files", "-z", "--cached", "--"}
	out, err := git(ctx, temp, index, append(args, names...)...)
	return strings.Split(out, "\x00"), err
}

var sha256Format = regexp.MustCompile(`(?im)^\s*objectformat\s*=\s*sha256\s*$`)

// git runs git in a directory, with another repository's index and without any configuration.
func git(ctx context.Context, directory, index string, args ...string) (string, error) {
	git := exec.CommandContext(ctx, "git", args...) //nolint:gosec // names from a tree are behind --
	git.Dir = directory
	git.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + directory, "GIT_INDEX_FILE=" + index, "GIT_CONFIG_NOSYSTEM=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "LC_ALL=C"}
	var complaint bytes.Buffer
	git.Stderr = &complaint
	out, err := git.Output()
	if err != nil {
		if text, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n"); text != "" {
			err = fmt.Errorf("git says: %s", text)
		}
	}
	return string(out), err
}

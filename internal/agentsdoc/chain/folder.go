package chain

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

type directory struct {
	path string     // as the working directory's path was written
	real string     // behind links
	link bool       // the last element is a link
	dir  fsview.Dir // its handle; may be nil
}

// file returns the paths of a name in the directory. Both are clean: cleaning a long path again would cost more than
// the lookup.
func (f directory) file(name string) (path, real string) {
	path = Below(f.path, name)
	if f.real == f.path {
		return path, path
	}
	return path, Below(f.real, name)
}

// open opens the directory, given its parent's handle.
func (f directory) open(view fsview.FS, parent fsview.Dir) (fsview.Dir, error) {
	if f.link {
		return openReal(view, f.real, nil)
	}
	return parent.OpenDir(filepath.Base(f.path))
}

// OpenRoot opens the root of a tree that the options led to.
func OpenRoot(view fsview.FS, root string, o *Options) (fsview.Dir, error) {
	switch {
	case o.Boundary == "":
		return view.OpenDir(root)
	case !Within(o.Boundary, root):
		return nil, ErrLeaves
	default:
		return openReal(view, root, nil)
	}
}

// openReal opens the directory at a real path, from the top down. An element that has become a link since the path
// was resolved leads to an unchecked place, and is an error. So is a directory on the way that judge refuses.
func openReal(view fsview.FS, real string, judge func(path string, dir fsview.Dir) error) (fsview.Dir, error) {
	const separator = string(filepath.Separator)
	path := filepath.VolumeName(real) + separator
	dir, err := view.OpenDir(path)
	for name := range strings.SplitSeq(strings.Trim(real[len(path)-1:], separator), separator) {
		if err != nil || name == "" {
			break
		}
		parent := dir
		dir, err = parent.OpenDir(name)
		_ = parent.Close()
		path = Below(path, name)
		if err == nil && judge != nil {
			if err = judge(path, dir); err != nil {
				_ = dir.Close()
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return dir, nil
}

// Below joins a clean path and a name.
func Below(path, name string) string {
	if path[len(path)-1] == filepath.Separator {
		return path + name
	}
	return path + string(filepath.Separator) + name
}

// Within reports whether path is base or below it. Both are clean.
func Within(base, path string) bool {
	rest, ok := strings.CutPrefix(path, base)
	return ok && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(base, string(filepath.Separator)))
}

// gitProblem: git's own files hold texts that others can put there, such as branch names and messages, and that no
// person sees in the tree.
func gitProblem() *problem {
	return &problem{code: CodeGitMetadata, detail: "the link leads into git's own files"}
}

// inGitDirectory reports whether a real path below base is git's by name, or lies in the git directory or common
// directory of a repository of the tree.
func (r *resolver) inGitDirectory(base, real string) bool {
	if hasGitName(real[len(base):]) {
		return true
	}
	return slices.ContainsFunc(r.gitDirectories(), func(dir string) bool { return Within(dir, real) })
}

func hasGitName(path string) bool {
	return slices.ContainsFunc(strings.Split(path, string(filepath.Separator)), isGitName)
}

// isGitName reports whether some system takes the name for .git.
func isGitName(name string) bool {
	name = strings.Map(func(c rune) rune {
		if unicode.In(c, unicode.Cf, unicode.Variation_Selector) { // some systems ignore these
			return -1
		}
		return c
	}, name)
	name = strings.TrimRight(name, " .")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// gitDirectories returns the real git directories that the tree's directories point to by something other than a
// directory named .git. They are looked up when the first link needs them.
func (r *resolver) gitDirectories() []string {
	if r.gitDirs != nil {
		return *r.gitDirs
	}
	r.gitDirs = new([]string)
	if len(r.tree) == 0 {
		return nil
	}
	dir, release := r.tree[0].dir, func() {} // the root's handle stays open
	for i, f := range r.tree {
		if i > 0 {
			next, err := f.open(r.view, dir)
			release()
			if err != nil {
				return *r.gitDirs
			}
			dir, release = next, func() { _ = next.Close() }
		}
		*r.gitDirs = append(*r.gitDirs, r.gitDirectoriesOf(f, dir)...)
	}
	release()
	return *r.gitDirs
}

// gitDirectoriesOf returns the git directory of one directory, and the one that it shares with other worktrees.
func (r *resolver) gitDirectoriesOf(f directory, dir fsview.Dir) []string {
	info, err := dir.Lstat(".git")
	if err != nil || info.Mode.IsDir() {
		return nil
	}
	path := filepath.Join(f.real, ".git")
	if !info.IsLink() {
		if path = r.gitFileTarget(f, dir, info); path == "" {
			return nil
		}
	}
	if real, err := r.view.RealPath(path); err == nil {
		path = real
	}
	directories := []string{path}
	// git keeps a worktree's directory at COMMON/worktrees/NAME. The file that names the common directory lies outside
	// of the tree, so it is not read.
	if above := filepath.Dir(path); filepath.Base(above) == "worktrees" {
		directories = append(directories, filepath.Dir(above))
	}
	return directories
}

func (r *reader) gitFileTarget(f directory, dir fsview.Dir, info fsview.Info) string {
	if !info.Mode.IsRegular() || info.Size > maxPath+int64(len("gitdir: \n")) {
		return ""
	}
	file, p := r.read(dir, ".git")
	if p != nil {
		return ""
	}
	target, ok := strings.CutPrefix(strings.TrimSpace(file.raw), "gitdir:")
	if !ok {
		return ""
	}
	target = filepath.FromSlash(strings.TrimSpace(target))
	if !filepath.IsAbs(target) {
		target = filepath.Join(f.real, target)
	}
	return filepath.Clean(target)
}

// hasGitStructure recognizes a git directory of any name: a bare repository, or a worktree's.
func hasGitStructure(dir fsview.Dir) bool {
	if !exists(dir, "HEAD") {
		return false
	}
	return exists(dir, "objects") && exists(dir, "refs") || exists(dir, "commondir")
}

func exists(dir fsview.Dir, name string) bool {
	_, err := dir.Lstat(name)
	return err == nil
}

package chain

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/textrule"
)

// gitProblem is the problem of a link into git's own files. They hold texts
// that others can put there, branch names and messages among them, and that no
// person sees in the tree.
func gitProblem() *problem {
	return &problem{code: CodeGitMetadata, detail: "the link leads into git's own files"}
}

// inGitFolder reports whether a real path below base is git's by name, or lies
// in the git folder or common folder of a repository of the tree, wherever that
// is.
func (r *resolver) inGitFolder(base, real string) bool {
	if hasGitName(real[len(base):]) {
		return true
	}
	return slices.ContainsFunc(r.gitFolders(), func(dir string) bool { return within(dir, real) })
}

// hasGitName reports whether a path has an element of git's name.
func hasGitName(path string) bool {
	return slices.ContainsFunc(strings.Split(path, string(filepath.Separator)), isGitName)
}

// isGitName reports whether some system takes the name for .git.
func isGitName(name string) bool {
	name = strings.TrimRight(textrule.WithoutInvisible(name), " .")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// gitFolders returns the real git folders that the tree's folders point to by
// something other than a folder named .git. They are looked up when the first
// link needs them.
func (r *resolver) gitFolders() []string {
	if r.gitDirs != nil {
		return *r.gitDirs
	}
	r.gitDirs = new([]string)
	if len(r.tree) == 0 {
		return nil
	}
	dir, release := r.tree[0].dir, func() {} // which stays open
	for i, f := range r.tree {
		if i > 0 {
			next, err := f.open(r.view, dir)
			release()
			if err != nil {
				return *r.gitDirs
			}
			dir, release = next, func() { _ = next.Close() }
		}
		*r.gitDirs = append(*r.gitDirs, r.gitFoldersOf(f, dir)...)
	}
	release()
	return *r.gitDirs
}

// gitFoldersOf returns the git folder of one folder of the tree, and the one
// that it shares with other worktrees.
func (r *resolver) gitFoldersOf(f folder, dir fsview.Dir) []string {
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
	folders := []string{path}
	// git keeps a worktree's folder at COMMON/worktrees/NAME. Reading the file
	// that names the common folder would be reading outside of the tree.
	if above := filepath.Dir(path); filepath.Base(above) == "worktrees" {
		folders = append(folders, filepath.Dir(above))
	}
	return folders
}

// gitFileTarget returns the path in a .git file, or nothing.
func (r *reader) gitFileTarget(f folder, dir fsview.Dir, info fsview.Info) string {
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

// hasGitStructure reports whether a folder looks like a git folder from inside,
// whatever its name: a bare repository, or the folder of a worktree.
func hasGitStructure(dir fsview.Dir) bool {
	if !exists(dir, "HEAD") {
		return false
	}
	return exists(dir, "objects") && exists(dir, "refs") || exists(dir, "commondir")
}

// exists reports whether a folder has the name.
func exists(dir fsview.Dir, name string) bool {
	_, err := dir.Lstat(name)
	return err == nil
}

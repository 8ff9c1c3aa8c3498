package guard

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/protect"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
)

const (
	maxEntries = 20_000 // of directories that are looked at for one call

	wildcards = string(shell.Star) + string(shell.Any) + string(shell.Unknown)
)

// View is the file system as one call sees it. It remembers, so that each path is looked at once, and each script read once.
type View struct {
	Dir  string // where relative paths begin: absolute, or empty if that is unknown
	home string
	left int // entries of directories that may still be looked at

	infos   map[string]fs.FileInfo // nil for what is not there
	lists   map[string][]fs.DirEntry
	real    map[string]string // paths without links
	scripts map[string]script
}

type script struct {
	commands []shell.Command
	err      error
}

// NewView returns a view that has seen nothing. dir is where relative paths begin, home the user's home directory; what is not
// absolute is unknown.
func NewView(dir, home string) *View {
	v := &View{left: maxEntries, infos: map[string]fs.FileInfo{}, lists: map[string][]fs.DirEntry{}, real: map[string]string{}, scripts: map[string]script{}}
	if filepath.IsAbs(dir) {
		v.Dir = dir
	}
	if filepath.IsAbs(home) {
		v.home = home
	}
	return v
}

// Full is a name in a directory as an absolute path, with links and .. as they are; not ok if it cannot be known.
func (v *View) Full(dir, name string) (full string, ok bool) {
	name, _, _ = strings.Cut(name, "\x00")
	name = shell.Join(dir, strings.TrimPrefix(strings.TrimPrefix(name, "file://"), "file:"))
	switch {
	case name == "" || len(name) > 4096 || strings.ContainsRune(name, shell.Unknown):
		return "", false
	case name == shell.Top || strings.HasPrefix(name, shell.Top+"/"):
		return v.Top(v.Dir) + name[len(shell.Top):], v.Dir != ""
	case name == "~" || strings.HasPrefix(name, "~/"):
		return v.home + name[1:], v.home != ""
	case filepath.IsAbs(name):
		return name, true
	}
	return v.Dir + "/" + name, v.Dir != "" && !strings.HasPrefix(name, "~")
}

// IsDir reports whether an absolute path leads to a directory.
func (v *View) IsDir(name string) bool {
	info := v.Lstat(v.Resolve(name))
	return info != nil && info.IsDir()
}

// list returns the entries of a directory by their names, as many as may still be looked at.
func (v *View) list(dir string) []fs.DirEntry {
	entries, known := v.lists[dir]
	if known || dir == "" || v.left <= 0 {
		return entries
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read
	entries, _ = f.ReadDir(v.left)
	v.left -= len(entries) + 1
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	v.lists[dir] = entries
	return entries
}

// Expand returns the paths that a shell puts in the place of an absolute path with wildcards: the path itself if there are
// none, and the directory for all below it. It is not ok if there is too much to look at.
func (v *View) Expand(name string) (paths []string, ok bool) {
	paths = []string{""}
	for elem := range strings.SplitSeq(strings.TrimPrefix(name, "/"), "/") {
		var next []string
		for _, dir := range paths {
			switch {
			case !shell.HasAny(elem, wildcards):
				if joined := dir + "/" + elem; len(paths) == 1 || v.Lstat(joined) != nil {
					next = append(next, joined)
				}
			case len(elem) > 3 && strings.Trim(elem, string(shell.Star)) == "": // **
				return paths, true
			default:
				for _, entry := range v.list(dir + "/") {
					if protect.Match(elem, entry.Name()) {
						next = append(next, dir+"/"+entry.Name())
					}
				}
			}
		}
		if paths = next; v.left <= 0 {
			return nil, false
		}
	}
	if len(paths) == 0 {
		paths = []string{shell.Plain(name)}
	}
	return paths, true
}

// Read is [shell.Read]. The commands are not to be changed.
func (v *View) Read(text string) ([]shell.Command, error) {
	s, known := v.scripts[text]
	if !known {
		s.commands, s.err = shell.Read(text)
		v.scripts[text] = s
	}
	return s.commands, s.err
}

// Lstat is [os.Lstat], with nil for an error. In a directory that is known not to be there, nothing is looked for.
func (v *View) Lstat(name string) fs.FileInfo {
	info, known := v.infos[name]
	if !known {
		parent, seen := v.infos[name[:max(strings.LastIndexByte(name, '/'), 0)]]
		if parent != nil || !seen {
			info, _ = os.Lstat(name)
		}
		v.infos[name] = info
	}
	return info
}

// Resolve follows the links in an absolute path, as far as it is there. Links of /proc stay: they differ from process
// to process.
func (v *View) Resolve(name string) string {
	return cmp.Or(v.resolve(filepath.ToSlash(name)), "/")
}

// resolve is Resolve, with an empty text for the root.
func (v *View) resolve(name string) string {
	slash := strings.LastIndexByte(name, '/')
	real, known := v.real[name]
	switch {
	case slash < 0:
		return name
	case known:
		return real
	}
	v.real[name] = name // what leads back to it leads nowhere
	dir := v.resolve(name[:slash])
	switch elem := name[slash+1:]; elem {
	case "", ".":
		real = dir
	case "..":
		real = dir[:max(strings.LastIndexByte(dir, '/'), 0)]
	default:
		real = dir + "/" + elem
		if target := v.target(real); path.IsAbs(target) {
			real = v.resolve(target)
		} else if target != "" {
			real = v.resolve(dir + "/" + target)
		}
	}
	v.real[name] = real
	return real
}

// target returns what a symbolic link leads to; empty if a path is not one.
func (v *View) target(name string) string {
	if strings.HasPrefix(name, "/proc/") {
		return ""
	}
	if info := v.Lstat(name); info == nil || info.Mode()&fs.ModeSymlink == 0 {
		return ""
	}
	target, _ := os.Readlink(name)
	return target
}

// Top is the directory at or above dir that has .git, or dir itself.
func (v *View) Top(dir string) string {
	dir = v.Resolve(dir)
	for top := dir; ; top = filepath.Dir(top) {
		if v.Lstat(filepath.Join(top, ".git")) != nil {
			return top
		}
		if top == filepath.Dir(top) {
			return dir
		}
	}
}

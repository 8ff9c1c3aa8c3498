package guard

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/shell"
)

const maxLinks = 40 // links in one path, as in a kernel

// View is what one call sees. It remembers, so that each path is looked at once, and each script read once.
type View struct {
	infos   map[string]fs.FileInfo // nil for what is not there
	real    map[string]string      // paths without links
	scripts map[string]script
}

type script struct {
	commands []shell.Command
	err      error
}

// NewView returns a view that has seen nothing.
func NewView() *View {
	return &View{infos: map[string]fs.FileInfo{}, real: map[string]string{}, scripts: map[string]script{}}
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
	return cmp.Or(v.resolve(filepath.ToSlash(name), maxLinks), "/")
}

// resolve is Resolve with as many links as may still be followed; the root is empty.
func (v *View) resolve(name string, links int) string {
	slash := strings.LastIndexByte(name, '/')
	if slash < 0 {
		return name
	}
	real, known := v.real[name]
	if known {
		return real
	}
	real = v.resolve(name[:slash], links)
	switch elem := name[slash+1:]; elem {
	case "", ".":
	case "..":
		real = real[:max(strings.LastIndexByte(real, '/'), 0)]
	default:
		dir := real
		real += "/" + elem
		if target := v.link(real); target != "" && links > 0 {
			if !path.IsAbs(target) {
				target = dir + "/" + target
			}
			real = v.resolve(target, links-1)
		}
	}
	v.real[name] = real
	return real
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

// link returns what a symbolic link leads to; empty if a path is not one.
func (v *View) link(name string) (target string) {
	if strings.HasPrefix(name, "/proc/") {
		return ""
	}
	if info := v.Lstat(name); info != nil && info.Mode()&fs.ModeSymlink != 0 {
		target, _ = os.Readlink(name)
	}
	return target
}

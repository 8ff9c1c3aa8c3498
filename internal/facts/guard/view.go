package guard

import (
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
	scripts map[string]script
}

type script struct {
	commands []shell.Command
	err      error
}

// NewView returns a view that has seen nothing.
func NewView() *View {
	return &View{infos: map[string]fs.FileInfo{}, scripts: map[string]script{}}
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

// Lstat is [os.Lstat], with nil for an error.
func (v *View) Lstat(name string) fs.FileInfo {
	info, known := v.infos[name]
	if !known {
		info, _ = os.Lstat(name)
		v.infos[name] = info
	}
	return info
}

// Resolve follows the links in an absolute path, as far as it is there. Links of /proc stay: they differ from process
// to process.
func (v *View) Resolve(name string) string {
	volume := filepath.VolumeName(name)
	at := volume + "/"
	rest := strings.Split(filepath.ToSlash(name[len(volume):]), "/")
	for links := 0; len(rest) > 0; {
		elem := rest[0]
		rest = rest[1:]
		switch elem {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, elem)
		target := v.link(next)
		if links++; target == "" || links > 255+maxLinks {
			at = next
			continue
		}
		if links += 255 / maxLinks; strings.HasPrefix(target, "/") {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at
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

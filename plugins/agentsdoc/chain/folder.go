package chain

import (
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"
)

// folder is one element of the working folder's path.
type folder struct {
	path string     // as the working folder's path was written
	real string     // behind links
	link bool       // the last element is a link
	dir  fsview.Dir // its handle, while there is one
}

// file returns the paths of a name in the folder. A name is one plain element,
// and the folder's paths are clean, so there is nothing to clean again: with
// long paths that would cost more than to look the file up.
func (f folder) file(name string) (path, real string) {
	path = below(f.path, name)
	if f.real == f.path {
		return path, path
	}
	return path, below(f.real, name)
}

// open opens the folder, given its parent's handle.
func (f folder) open(view fsview.FS, parent fsview.Dir) (fsview.Dir, error) {
	if f.link {
		return view.OpenDir(f.real)
	}
	return parent.OpenDir(filepath.Base(f.path))
}

// below joins a clean path and a name.
func below(path, name string) string {
	if path[len(path)-1] == filepath.Separator {
		return path + name
	}
	return path + string(filepath.Separator) + name
}

// within reports whether path is base or below it. Both are clean.
func within(base, path string) bool {
	rest, ok := strings.CutPrefix(path, base)
	return ok && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(base, string(filepath.Separator)))
}

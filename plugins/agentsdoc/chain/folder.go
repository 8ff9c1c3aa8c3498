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
		return openReal(view, f.real, nil)
	}
	return parent.OpenDir(filepath.Base(f.path))
}

// OpenRoot opens the root of a tree for options under which it was found.
func OpenRoot(view fsview.FS, root string, o *Options) (fsview.Dir, error) {
	switch {
	case o.Boundary == "":
		return view.OpenDir(root)
	case !within(o.Boundary, root):
		return nil, errLeaves
	default:
		return openReal(view, root, nil)
	}
}

// openReal opens the folder at a real path, from the top down. An element that
// has become a link since the path was found out leads to a place that nobody
// judged, and is an error. So is a folder on the way that judge has one for.
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
		path = below(path, name)
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

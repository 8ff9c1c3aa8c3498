package watch

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// places are names in folders that changes are to be told of. Folders are real
// paths: the system has one watch for a folder, however it is called.
type places map[string]map[string]bool

// add adds a name of a folder.
func (p places) add(folder, name string) {
	if p[folder] == nil {
		p[folder] = map[string]bool{}
	}
	p[folder][name] = true
}

// placesOf are the places where a change shows of what was seen: the names that
// were looked up, and for links all that they lead over.
func placesOf(seen Seen) places {
	where := places{}
	for folder, names := range seen {
		real := where.follow(folder, false)
		for name, found := range names {
			where.add(real, name)
			if found.mode&fs.ModeSymlink != 0 {
				where.follow(filepath.Join(real, name), true)
			}
		}
	}
	return where
}

// maxLinks bounds the links of one path, as systems do.
const maxLinks = 40

// follow adds the links that a path leads over, and its end as well if that is
// asked for. It returns the real path, as far as there is one: behind what is
// missing, names are as they are written.
func (p places) follow(path string, end bool) string {
	top := filepath.VolumeName(path) + string(filepath.Separator)
	at, rest := top, names(path[len(top)-1:])
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		isLink := err == nil && info.Mode()&fs.ModeSymlink != 0
		if isLink || end && (err != nil || len(rest) == 0) {
			p.add(at, name)
		}
		target := ""
		if isLink && links < maxLinks {
			links++
			target, err = os.Readlink(next)
		}
		switch {
		case err != nil:
			return filepath.Join(append([]string{next}, rest...)...)
		case target == "":
			at = next
			continue
		case filepath.IsAbs(target):
			at, target = top, target[len(filepath.VolumeName(target)):]
		}
		rest = append(names(target), rest...)
	}
	return at
}

// names takes a path apart.
func names(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' || c == filepath.Separator })
}

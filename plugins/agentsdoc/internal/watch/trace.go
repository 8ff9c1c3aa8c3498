package watch

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

// Trace is a view of a file system that records what is looked up through it. It is for one resolver at a time.
type Trace struct {
	view fsview.FS
	seen Seen
}

var _ fsview.FS = (*Trace)(nil)

// NewTrace returns a view that works as the given one and records what is looked up.
func NewTrace(view fsview.FS) *Trace { return &Trace{view: view, seen: Seen{}} }

// Seen is what was looked up so far. It is the trace's own: take it when the resolver has finished.
func (t *Trace) Seen() Seen { return t.seen }

// OpenDir implements fsview.FS. The directory is recorded as a name of its parent.
func (t *Trace) OpenDir(path string) (fsview.Dir, error) {
	path = filepath.Clean(path)
	dir, err := t.view.OpenDir(path)
	if err != nil {
		t.seen.look(t.view, path)
		return nil, err
	}
	return &tracedDir{Dir: dir, path: path, trace: t}, nil
}

// RealPath implements fsview.FS. It records the path, what it leads to, and that it leads there.
func (t *Trace) RealPath(path string) (string, error) {
	real, err := t.view.RealPath(path)
	path = filepath.Clean(path)
	t.seen.look(t.view, path)
	if err == nil {
		t.seen.look(t.view, real)
	}
	directory, name := filepath.Dir(path), filepath.Base(path)
	if found, known := t.seen[directory][name]; known && !found.absent && found.target == "" {
		found.target = targetOf(path, real, err)
		t.seen[directory][name] = found
	}
	return real, err
}

type tracedDir struct {
	fsview.Dir
	path  string
	trace *Trace
}

func (d *tracedDir) OpenDir(name string) (fsview.Dir, error) {
	child, err := d.Dir.OpenDir(name)
	if err != nil {
		d.note(name)
		return nil, err
	}
	// Only being a directory matters, not its times.
	d.trace.seen.put(d.path, name, stamp{mode: fs.ModeDir})
	return &tracedDir{Dir: child, path: filepath.Join(d.path, name), trace: d.trace}, nil
}

func (d *tracedDir) Lstat(name string) (fsview.Info, error) {
	info, err := d.Dir.Lstat(name)
	d.trace.seen.put(d.path, name, stampOf(info, err))
	return info, err
}

func (d *tracedDir) Open(name string) (fsview.File, error) {
	f, err := d.Dir.Open(name)
	d.note(name)
	return f, err
}

// Entries implements fsview.Dir. All names of the directory are recorded at once.
func (d *tracedDir) Entries(most int) ([]fs.DirEntry, error) {
	d.trace.seen.put(d.path, everyName, stampOfNames(fsview.Names(d.Dir)))
	return d.Dir.Entries(most)
}

func (d *tracedDir) note(name string) {
	if _, known := d.trace.seen[d.path][name]; !known {
		info, err := d.Dir.Lstat(name)
		d.trace.seen.put(d.path, name, stampOf(info, err))
	}
}

// Seen is what was looked up: by directory and name, what was found. Directories are absolute and clean. It is not
// safe for concurrent use while it is changed.
type Seen map[string]map[string]stamp

// stamp is what was found under a name, as far as a change of it matters. The zero value is a regular, empty file of
// 1970, so absence has a field.
type stamp struct {
	absent  bool
	failed  bool // it may not be looked at
	mode    fs.FileMode
	size    int64
	mtimeMs int64
	id      fsview.FileID
	target  string // the real path, if it differs
}

// everyName stands for the list of all names of a directory: no file can be called so.
const everyName = "/"

func stampOfNames(list []string, err error) stamp {
	found := stampOf(fsview.Info{Mode: fs.ModeDir}, err)
	found.target = strings.Join(list, "/")
	return found
}

// nowhere is the target of a dangling link.
const nowhere = "?"

func targetOf(path, real string, err error) string {
	switch {
	case err != nil:
		return nowhere
	case real == path:
		return ""
	default:
		return real
	}
}

func stampOf(info fsview.Info, err error) stamp {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return stamp{absent: true}
	case err != nil:
		return stamp{failed: true}
	case info.Mode.IsDir():
		return stamp{mode: fs.ModeDir}
	default:
		return stamp{mode: info.Mode.Type(), size: info.Size, mtimeMs: info.MTimeMs, id: info.ID}
	}
}

// put records what was found first, for it is what the resolver used.
func (s Seen) put(directory, name string, found stamp) {
	if s[directory] == nil {
		s[directory] = map[string]stamp{}
	}
	if _, known := s[directory][name]; !known {
		s[directory][name] = found
	}
}

// look looks a path up and records it under its directory. If that is missing too, it records the directory likewise,
// up to one that exists: there it would appear.
func (s Seen) look(view fsview.FS, path string) {
	for directory := filepath.Dir(path); directory != path; directory = filepath.Dir(path) {
		name := filepath.Base(path)
		if _, known := s[directory][name]; known {
			return
		}
		found, ok := lookUp(view, directory, []string{name})
		s.put(directory, name, found[0])
		if ok {
			return
		}
		path = directory
	}
}

// Changed looks everything up again and reports whether anything differs. It opens directories, but no files.
func (s Seen) Changed(view fsview.FS) bool {
	for directory, before := range s {
		names := slices.Collect(maps.Keys(before))
		found, _ := lookUp(view, directory, names)
		for i, now := range found {
			then := before[names[i]]
			if then.target != "" && names[i] != everyName {
				path := filepath.Join(directory, names[i])
				real, err := view.RealPath(path)
				now.target = targetOf(path, real, err)
			}
			if now != then {
				return true
			}
		}
	}
	return false
}

// lookUp describes names of a directory. Not ok means that the directory cannot be opened.
func lookUp(view fsview.FS, directory string, names []string) (found []stamp, ok bool) {
	found = make([]stamp, len(names))
	dir, err := view.OpenDir(directory)
	if err != nil {
		for i := range found {
			found[i] = stampOf(fsview.Info{}, err)
		}
		return found, false
	}
	for i, name := range names {
		if name == everyName {
			found[i] = stampOfNames(fsview.Names(dir))
			continue
		}
		found[i] = stampOf(dir.Lstat(name))
	}
	_ = dir.Close() // nothing was written
	return found, true
}

// Below returns what was looked up at or below a directory, and of the directories on the way to it only names that
// are neither the next directory of the way nor one of the given names: a source tree does not change because
// something above its root does.
func (s Seen) Below(root string, passing []string) Seen {
	const separator = string(filepath.Separator)
	kept := Seen{}
	for directory, names := range s {
		rest, above := strings.CutPrefix(root, strings.TrimSuffix(directory, separator)+separator)
		next, _, _ := strings.Cut(rest, separator)
		for name, found := range names {
			if !above || rest == "" || name != next && !slices.Contains(passing, name) {
				kept.put(directory, name, found)
			}
		}
	}
	return kept
}

// places are names in directories whose changes are to be reported. Directories are real paths: the system has one
// watch for a directory, however it is called.
type places map[string]map[string]bool

func (p places) add(directory, name string) {
	if p[directory] == nil {
		p[directory] = map[string]bool{}
	}
	p[directory][name] = true
}

// placesOf are the places where a change of what was seen shows: the names that were looked up, and for links all
// that they lead over.
func placesOf(seen Seen) places {
	where := places{}
	for directory, names := range seen {
		real := where.follow(directory, false)
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

// follow adds the links that a path leads over, and on request its end. It returns the real path; after a missing
// element names stay as written.
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

func names(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' || c == filepath.Separator })
}

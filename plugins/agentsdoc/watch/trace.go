package watch

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"
)

// Trace is a view of a file system that notes what is looked up through it. It
// is for one resolver at a time.
type Trace struct {
	view fsview.FS
	seen Seen
}

var _ fsview.FS = (*Trace)(nil)

// NewTrace returns a view that works as the given one and notes what is looked
// up.
func NewTrace(view fsview.FS) *Trace { return &Trace{view: view, seen: Seen{}} }

// Seen is what was looked up so far. It is the trace's own: take it when the
// resolver has finished.
func (t *Trace) Seen() Seen { return t.seen }

// OpenDir implements fsview.FS. The folder is noted as a name of its parent.
func (t *Trace) OpenDir(path string) (fsview.Dir, error) {
	path = filepath.Clean(path)
	dir, err := t.view.OpenDir(path)
	if err != nil {
		t.seen.look(t.view, path)
		return nil, err
	}
	return &tracedDir{Dir: dir, path: path, trace: t}, nil
}

// RealPath implements fsview.FS. What the path is called and what it leads to
// are both noted, and that it leads there.
func (t *Trace) RealPath(path string) (string, error) {
	real, err := t.view.RealPath(path)
	path = filepath.Clean(path)
	t.seen.look(t.view, path)
	if err == nil {
		t.seen.look(t.view, real)
	}
	t.seen.lead(path, real, err)
	return real, err
}

// tracedDir is an open folder.
type tracedDir struct {
	fsview.Dir
	path  string
	trace *Trace
}

// OpenDir implements fsview.Dir.
func (d *tracedDir) OpenDir(name string) (fsview.Dir, error) {
	child, err := d.Dir.OpenDir(name)
	if err != nil {
		d.note(name)
		return nil, err
	}
	// That it is a folder is all that mattered, so its times are not.
	d.trace.seen.put(d.path, name, stamp{mode: fs.ModeDir})
	return &tracedDir{Dir: child, path: filepath.Join(d.path, name), trace: d.trace}, nil
}

// Lstat implements fsview.Dir.
func (d *tracedDir) Lstat(name string) (fsview.Info, error) {
	info, err := d.Dir.Lstat(name)
	d.trace.seen.put(d.path, name, stampOf(info, err))
	return info, err
}

// Open implements fsview.Dir.
func (d *tracedDir) Open(name string) (fsview.File, error) {
	f, err := d.Dir.Open(name)
	d.note(name)
	return f, err
}

// note looks a name up, unless it is known.
func (d *tracedDir) note(name string) {
	if _, known := d.trace.seen[d.path][name]; !known {
		info, err := d.Dir.Lstat(name)
		d.trace.seen.put(d.path, name, stampOf(info, err))
	}
}

// Seen is what was looked up: by folder and name, what was found. Folders are
// absolute and clean. It is not safe for concurrent use while it is changed.
type Seen map[string]map[string]stamp

// stamp is what was found under a name, as far as a change of it matters. The
// zero value is a regular, empty file of 1970, so that absence says so.
type stamp struct {
	absent  bool
	failed  bool // it may not be looked at
	mode    fs.FileMode
	size    int64
	mtimeMs int64
	id      fsview.FileID
	// target is the real path that was found out, where it is another.
	target string
}

// nowhere is the target of what leads to nothing.
const nowhere = "?"

// targetOf is the target of a path by an answer.
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

// stampOf is the stamp of an answer.
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

// put notes what was found; what was found first stays, for it is what the
// resolver went by.
func (s Seen) put(folder, name string, found stamp) {
	names := s[folder]
	if names == nil {
		names = map[string]stamp{}
		s[folder] = names
	}
	if _, known := names[name]; !known {
		names[name] = found
	}
}

// look looks a path up and notes it under its folder. Where that is not there
// either, so does the folder, up to one that is: there it would appear.
func (s Seen) look(view fsview.FS, path string) {
	for folder := filepath.Dir(path); folder != path; folder = filepath.Dir(path) {
		name := filepath.Base(path)
		if _, known := s[folder][name]; known {
			return
		}
		found, ok := lookUp(view, folder, []string{name})
		s.put(folder, name, found[0])
		if ok {
			return
		}
		path = folder
	}
}

// lead notes what a path that was looked up leads to.
func (s Seen) lead(path, real string, err error) {
	folder, name := filepath.Dir(path), filepath.Base(path)
	if found, known := s[folder][name]; known && !found.absent && found.target == "" {
		found.target = targetOf(path, real, err)
		s[folder][name] = found
	}
}

// Add notes all that other has.
func (s Seen) Add(other Seen) {
	for folder, names := range other {
		for name, found := range names {
			s.put(folder, name, found)
		}
	}
}

// Folders are the folders in which names were looked up, sorted.
func (s Seen) Folders() []string { return slices.Sorted(maps.Keys(s)) }

// Changed looks everything up again and reports whether anything is another.
// No file is opened, only folders.
func (s Seen) Changed(view fsview.FS) bool {
	for folder, before := range s {
		names := slices.Collect(maps.Keys(before))
		found, _ := lookUp(view, folder, names)
		for i, now := range found {
			then := before[names[i]]
			if then.target != "" {
				path := filepath.Join(folder, names[i])
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

// lookUp describes names of a folder. Not ok means that the folder cannot be
// opened.
func lookUp(view fsview.FS, folder string, names []string) (found []stamp, ok bool) {
	found = make([]stamp, len(names))
	dir, err := view.OpenDir(folder)
	if err != nil {
		for i := range found {
			found[i] = stampOf(fsview.Info{}, err)
		}
		return found, false
	}
	for i, name := range names {
		found[i] = stampOf(dir.Lstat(name))
	}
	_ = dir.Close() // nothing was written
	return found, true
}

// Below returns what was looked up at or below a folder, and of the folders on
// the way to it only names that are not in passing: neither the next folder of
// the way nor one of the given names. A source tree does not change because
// something above its root does.
func (s Seen) Below(root string, passing []string) Seen {
	kept := Seen{}
	for folder, names := range s {
		next, above := onTheWay(folder, root)
		for name, found := range names {
			if !above || name != next && !slices.Contains(passing, name) {
				kept.put(folder, name, found)
			}
		}
	}
	return kept
}

// onTheWay reports whether a folder lies above another, and the name that leads
// from it there.
func onTheWay(folder, to string) (next string, above bool) {
	prefix := strings.TrimSuffix(folder, string(filepath.Separator)) + string(filepath.Separator)
	rest, ok := strings.CutPrefix(to, prefix)
	if !ok || rest == "" {
		return "", false
	}
	next, _, _ = strings.Cut(rest, string(filepath.Separator))
	return next, true
}

package guard

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/ignore"
	"github.com/grapnelhq/grapnel/internal/facts/argument"
	"github.com/grapnelhq/grapnel/internal/facts/protect"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
)

func (j *judge) exists(name string, dirs []string) bool {
	for _, full := range inDirs(dirs, name) {
		if at, ok := j.Full("", full); ok {
			if j.Lstat(at) != nil {
				return true
			}
		}
	}
	return false
}

// link finds the protected file that a name leads to: by a symbolic link, or by a hard link to a file that lies beside
// it or in the working directory.
func (j *judge) link(name string) *Finding {
	at, ok := j.Full("", name)
	if !ok || j.files > maxFiles {
		return nil
	}
	real := j.Resolve(at)
	info := j.Lstat(real)
	if info == nil {
		return nil
	}
	if j.files++; j.files > maxFiles {
		return nil // Call and Prompt refuse what they could not judge
	}
	if p, ok := j.protects(real); ok {
		return &Finding{File: name, At: name, Pattern: p, How: "it leads to " + shell.Visible(real) + ":"}
	}
	if !info.Mode().IsRegular() || !shared(info) {
		return nil
	}
	for _, dir := range slices.Compact([]string{filepath.Dir(real), j.Dir}) {
		for _, entry := range j.list(dir) {
			p, ok := j.Set.Path(filepath.Join(dir, entry.Name()))
			if !ok {
				continue
			}
			if other, err := entry.Info(); err == nil && os.SameFile(info, other) {
				return &Finding{File: name, At: name, Pattern: p, How: "it is the same file as " + shell.Visible(entry.Name()) + ":"}
			}
		}
	}
	return nil
}

// expand judges what a shell would put in the place of a glob in a directory.
func (j *judge) expand(dir, glob string) *Finding {
	full, ok := j.Full(dir, glob)
	if !ok {
		return nil
	}
	const below = "/" + string(shell.Star) + string(shell.Star) + "/" // all directories below another one
	before, rest, deep := strings.Cut(full+"/", below)
	list, ok := j.Expand(strings.TrimSuffix(before, "/"))
	if !ok {
		return tooMany(glob)
	}
	for _, at := range list {
		var f *Finding
		info := j.Lstat(at)
		at = j.shown(at)
		if deep {
			f = j.walk(at, &reading{only: []string{filepath.Base(cmp.Or(rest, string(shell.Star)))}, lenient: true, follow: true})
		} else if info != nil {
			f = j.found(at, info.Mode())
		}
		if f != nil {
			return f
		}
	}
	return nil
}

func tooMany(glob string) *Finding {
	return &Finding{How: shell.Plain(glob) + " matches more files than can be checked for protected ones: name a directory with fewer"}
}

// shown is an absolute path as a finding names it.
func (j *judge) shown(at string) string {
	if rel, inside := strings.CutPrefix(at, j.Dir+"/"); inside && j.Dir != "" {
		return rel
	}
	return at
}

// found judges a file that is there.
func (j *judge) found(name string, mode fs.FileMode) *Finding {
	if mode&fs.ModeSymlink != 0 {
		return j.file(name, nil)
	}
	if p, ok := j.Set.Path(name); ok {
		return &Finding{File: name, At: name, Pattern: p}
	}
	return nil
}

// reading is what a command reads below a directory.
type reading struct {
	only   []string // globs, of which a file's name must match one; nil takes all
	except []string // globs of names and paths that are left out
	git    bool     // what git ignores is left out
	hidden bool     // also files and directories whose names begin with a dot
	follow bool     // files that links lead to are read
	// descend says that directories that links lead to are read.
	descend bool
	// lenient gives up where there are too many files: the names of files stand in the result, from which they are
	// redacted.
	lenient bool
	// spares says that what is left out is left out of the words of the command, too.
	spares bool
	// below is how a command reads the directories whose names it is handed; nil if it reads none. With whole, it is
	// handed the directory at the top, too.
	below *reading
	whole bool
	how   string

	linked map[string]bool // directories, without links, that links have led to
	handed map[string]bool // directories, without links, that the command below has read
}

// walk returns the first protected file below a directory that would be read, or below each that a glob matches.
func (j *judge) walk(root string, r *reading) *Finding {
	at, ok := j.Full("", root)
	if !ok {
		return nil
	}
	if shell.HasAny(at, wildcards) {
		list, ok := j.Expand(at)
		if !ok {
			return tooMany(root)
		}
		for _, at := range list {
			at = filepath.Clean(at)
			if shell.HasAny(at, wildcards) || r.spares && r.out(filepath.Base(at), j.shown(at)) {
				continue
			}
			if f := j.walk(j.shown(at), r); f != nil {
				return f
			}
		}
		return nil
	}
	info, err := os.Stat(at)
	if err != nil || !info.IsDir() {
		return nil
	}
	w := walker{judge: j, reading: r}
	if r.git {
		w.enter(at)
	}
	var f *Finding
	if r.whole && w.takes(filepath.Base(root)) {
		f = w.hand(root)
	}
	if f == nil {
		f = w.walk(at, filepath.Clean(root), 0)
	}
	if f == nil && j.left <= 0 && !r.lenient {
		return &Finding{How: fmt.Sprintf("%s there are more files in %s than can be checked for protected ones: name a smaller directory, or use git grep or rg", r.how, shell.Visible(root))}
	}
	if f != nil && f.How == "" {
		f.How = r.how
	}
	return f
}

type walker struct {
	*judge
	*reading
	way    ignore.Way
	within bool // a directory that was handed to the command below
}

// enter takes the rules of the directories above, from the top of the source tree.
func (w *walker) enter(dir string) {
	at := w.Top(dir)
	rel, err := filepath.Rel(at, w.Resolve(dir))
	if err != nil || rel == "." {
		return
	}
	for elem := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		w.rules(at)
		w.way.Enter(elem)
		at = filepath.Join(at, elem)
	}
}

func (w *walker) rules(dir string) {
	path := filepath.Join(dir, ignore.File)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() > ignore.MaxBytes {
		return
	}
	if text, err := os.ReadFile(path); err == nil {
		w.way.Add(string(text))
	}
}

func (w *walker) walk(at, name string, depth int) *Finding {
	if depth > argument.MaxDepth {
		return nil
	}
	if w.git {
		w.rules(at)
	}
	for _, entry := range w.list(at) {
		if f := w.entry(at, name, entry, depth); f != nil {
			return f
		}
	}
	return nil
}

func (w *walker) entry(at, name string, entry fs.DirEntry, depth int) *Finding {
	base, full := entry.Name(), entry.Name()
	if name != "." {
		full = strings.TrimSuffix(name, "/") + "/" + base
	}
	if w.passed(entry) || w.out(base, full) {
		return nil
	}
	if w.git {
		w.way.Enter(base)
		defer w.way.Leave()
		if w.way.Ignored() {
			return nil
		}
	}
	link := entry.Type()&fs.ModeSymlink != 0
	if w.below != nil && !w.within && (entry.IsDir() || link) && w.takes(base) {
		if f := w.hand(full); f != nil {
			return f
		}
		if entry.IsDir() {
			w.within = true
			defer func() { w.within = false }()
		}
	}
	if entry.IsDir() {
		return w.walk(filepath.Join(at, base), full, depth+1)
	}
	if link && w.descend {
		if f := w.behind(w.Resolve(filepath.Join(at, base)), depth); f != nil {
			return f
		}
	}
	if link && !w.follow || !w.takes(base) {
		return nil
	}
	return w.found(full, entry.Type())
}

// passed reports whether a walk goes past an entry: one that is hidden, or a directory of which nobody reads all.
func (w *walker) passed(entry fs.DirEntry) bool {
	name := entry.Name()
	return !w.hidden && strings.HasPrefix(name, ".") || entry.IsDir() && (name == ".git" || name == "node_modules")
}

// behind walks a directory that a link leads to, once for each command.
func (w *walker) behind(dir string, depth int) *Finding {
	if !w.IsDir(dir) || w.linked[dir] {
		return nil
	}
	if w.linked == nil {
		w.linked = map[string]bool{}
	}
	w.linked[dir] = true
	return w.walk(dir, w.shown(dir), depth+1)
}

// takes reports whether a name is one of those that the reading is limited to.
func (r *reading) takes(base string) bool {
	return r.only == nil || slices.ContainsFunc(r.only, func(glob string) bool { return protect.Match(glob, base) })
}

// hand judges what the command below reads in a directory that it is handed.
func (w *walker) hand(name string) *Finding {
	at, ok := w.Full("", name)
	if at = w.Resolve(at); w.below == nil || !ok || w.handed[at] {
		return nil
	}
	if w.handed == nil {
		w.handed = map[string]bool{}
	}
	w.handed[at] = true
	return w.judge.walk(name, w.below)
}

// out reports whether the command leaves a file or directory out.
func (r *reading) out(base, full string) bool {
	return slices.ContainsFunc(r.except, func(glob string) bool {
		glob = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "**/"), "/")
		return protect.Match(glob, base) || protect.Match(glob, full)
	})
}

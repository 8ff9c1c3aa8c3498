// Package ignore says which directories git ignores, for walks that go down from the top of a source tree one
// directory at a time and never into an ignored one.
//
// It reads no file: the walk passes the text of what it finds on its way. Patterns mean what they mean to git, to the
// byte, as tests compare with git itself, except that files are not considered, core.ignoreCase is not read, and
// there are bounds, see [MaxBytes].
package ignore

import (
	"slices"
	"strings"
)

// File is the name of the file of patterns that a directory may hold.
const File = ".gitignore"

// IsForeign reports whether a directory, by its name, has contents that others or a tool wrote.
func IsForeign(name string) bool {
	return slices.Contains([]string{"node_modules", "vendor", "third_party", ".venv", "target"}, name)
}

// IsMetadata reports whether a directory, by its name, belongs to a version control system.
func IsMetadata(name string) bool { return name == ".git" || name == ".jj" || name == ".hg" }

// Way is the way from the top of a tree to a directory, and the patterns that were found on it. The zero value is the
// top, without patterns. It is for one goroutine.
type Way struct {
	path   []byte // from the top's child to the directory in question, with slashes
	starts []int  // where its names begin
	files  []rules
}

// Enter goes down to a directory.
func (w *Way) Enter(name string) {
	if len(w.starts) > 0 {
		w.path = append(w.path, '/')
	}
	w.starts = append(w.starts, len(w.path))
	w.path = append(w.path, name...)
}

// Leave goes up again, and forgets the patterns of the directory that it leaves.
func (w *Way) Leave() {
	for len(w.files) > 0 && w.files[len(w.files)-1].depth == len(w.starts) {
		w.files = w.files[:len(w.files)-1]
	}
	last := len(w.starts) - 1
	w.path = w.path[:max(w.starts[last]-1, 0)]
	w.starts = w.starts[:last]
}

// Add adds the text of a file of patterns in the directory. Those that are added later win. Files beyond the limit of
// the way are ignored.
func (w *Way) Add(text string) {
	size := len(text)
	for i := range w.files {
		size += w.files[i].size
	}
	if text != "" && size <= maxWay {
		w.files = append(w.files, parse(text, len(w.starts)))
	}
}

// Reset makes the directory the top of a tree of its own, unaffected by the directories above.
func (w *Way) Reset() { *w = Way{} }

// Ignored reports whether git ignores the directory, given that it ignores none of those above. The nearest file with
// a match decides.
func (w *Way) Ignored() bool {
	work := maxWork
	for i := len(w.files) - 1; i >= 0; i-- {
		f := &w.files[i]
		if f.depth == len(w.starts) {
			continue // a directory's own patterns do not apply to it
		}
		name := w.path[w.starts[len(w.starts)-1]:]
		if v := f.match(w.path[w.starts[f.depth]:], name, &work); v.at != 0 {
			return v.ignored
		}
	}
	return false
}

// Bounds of one file of patterns. What is beyond them is not used: directories are then looked at unnecessarily.
const (
	// MaxBytes is how much of a file is used. A text of this size may have been cut, so its last line counts only if it
	// is ended.
	MaxBytes = 256 << 10

	maxPatterns = 4096
	maxPattern  = 4096 // bytes, as many as a path may have
)

// Bounds of all files on a way, which a tree can nest by the thousand.
const (
	maxWay = 1 << 20 // bytes of their texts
	// maxWork bounds what one question costs, in bytes of patterns times bytes of the text that they are tried with.
	// Patterns beyond it do not count.
	maxWork = 1 << 19
)

// rules are the patterns of one file. Of those that match, the last decides.
type rules struct {
	depth int // how many names of the way lead to its directory
	size  int // bytes of its text

	// Most patterns are plain text, which costs one lookup: names at any depth, and paths below the directory.
	names, paths map[string]verdict
	// The others have to be tried, each in the order of the file.
	nameGlobs, pathGlobs []rule
}

// verdict is the effect of a pattern, and its place in its file from 1 on; 0 is none.
type verdict struct {
	at      int
	ignored bool
}

// rule is a pattern that has to be tried.
type rule struct {
	verdict
	glob
	prefix string // plain text before it
}

// match matches a path below the file's directory; name is its last element.
func (f *rules) match(path, name []byte, work *int) verdict {
	best := f.names[string(name)]
	if v := f.paths[string(path)]; v.at > best.at {
		best = v
	}
	best = lastOf(f.nameGlobs, name, best, work)
	return lastOf(f.pathGlobs, path, best, work)
}

// lastOf is the last rule that matches, if it comes after found and enough work is left to try it.
func lastOf(list []rule, text []byte, found verdict, work *int) verdict {
	for i := len(list) - 1; i >= 0 && list[i].at > found.at && *work > 0; i-- {
		if list[i].matches(text, work) {
			return list[i].verdict
		}
	}
	return found
}

func (r *rule) matches(text []byte, work *int) bool {
	n := len(r.prefix)
	*work--
	if len(text) < n || string(text[:n]) != r.prefix {
		return false
	}
	if r.suffix == "" {
		*work -= len(r.pattern) * len(text[n:])
	}
	return r.glob.matches(text[n:])
}

// parse reads the text of a file. An incomplete line does not count.
func parse(text string, depth int) rules {
	f := rules{depth: depth, size: len(text), names: map[string]verdict{}, paths: map[string]verdict{}}
	if len(text) >= MaxBytes { // it may have been cut
		text = text[:strings.LastIndexByte(text[:MaxBytes], '\n')+1]
	}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(text, "\uFEFF")) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		line, _, _ = strings.Cut(line, "\x00") // where git ends it
		if strings.HasPrefix(line, "#") || len(line) > maxPattern {
			continue
		}
		if line = trimSpaces(line); line == "" {
			continue
		}
		if n++; n > maxPatterns {
			break
		}
		f.add(line, n)
	}
	return f
}

// trimSpaces removes the spaces at the end of a line, except an escaped one.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			if i++; i == len(line) {
				return line
			}
		}
		end = i + 1
	}
	return line[:end]
}

// add adds a pattern in its simplest form. Patterns for directories alone are like others here: nothing else is asked
// about.
func (f *rules) add(line string, at int) {
	text, negated := strings.CutPrefix(line, "!")
	text = strings.TrimSuffix(text, "/")
	v := verdict{at: at, ignored: !negated}
	isPath := strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	plain := text
	if i := strings.IndexAny(text, special); i >= 0 {
		plain = text[:i]
	}
	rest := text[len(plain):]
	switch {
	case text == "":
	case isPath && rest == "":
		f.paths[text] = v
	case isPath:
		f.pathGlobs = append(f.pathGlobs, rule{verdict: v, prefix: plain, glob: newGlob(rest, true)})
	case rest == "":
		f.names[text] = v
	default:
		f.nameGlobs = append(f.nameGlobs, rule{verdict: v, prefix: plain, glob: newGlob(rest, false)})
	}
}

package ignore

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// File is the name of the file of patterns that a folder may hold.
const File = ".gitignore"

// Bounds of one file of patterns. What is beyond them does not count: folders
// are then looked at that need not be.
const (
	// MaxBytes is how much of a file is of use.
	MaxBytes = 256 << 10

	maxPatterns = 4096
	maxPattern  = 1024 // bytes
	maxStars    = 4    // ** in one pattern
)

// Way is the way from the top of a tree to a folder, and the patterns that were
// found on it. The zero value is the top, without patterns. It is for one
// goroutine.
//
// go-git matches a path by any beginning of it, which is wrong for patterns that
// take something back; here a pattern is asked only whether it is the folder
// itself that it means.
type Way struct {
	names []string // from the top's child to the folder in question
	files []rules
}

// rules are the patterns of one file. Of those that match, the last decides.
type rules struct {
	depth    int                // of its folder: how many names of the way lead to it
	literals map[string]verdict // names without special characters, at any depth
	globs    []rule             // other names, at any depth
	paths    []rule             // paths
}

// verdict is what a pattern says, and its place in its file.
type verdict struct {
	at      int
	ignored bool
}

// rule is a pattern that has to be tried.
type rule struct {
	verdict

	pattern gitignore.Pattern
	elems   int    // how many names a path must have; 0 any number
	tail    bool   // only the last names of a path count
	below   bool   // all paths below one of that many names are meant
	suffix  string // all that a name must end in, where that is the pattern
}

// Enter goes down to a folder.
func (w *Way) Enter(name string) { w.names = append(w.names, name) }

// Leave goes up again, and forgets the patterns of the folder that it leaves.
func (w *Way) Leave() {
	for len(w.files) > 0 && w.files[len(w.files)-1].depth == len(w.names) {
		w.files = w.files[:len(w.files)-1]
	}
	w.names = w.names[:len(w.names)-1]
}

// Add adds the text of a file of patterns that lies in the folder. Those that
// are added later win.
func (w *Way) Add(text string) {
	w.files = append(w.files, parse(text, len(w.names)))
}

// Reset makes the folder the top of a tree of its own, to which the patterns of
// the folders above mean nothing.
func (w *Way) Reset() { *w = Way{} }

// Ignored reports whether git ignores the folder. The nearest file that says
// something decides.
func (w *Way) Ignored() bool {
	for i := len(w.files) - 1; i >= 0; i-- {
		f := &w.files[i]
		if f.depth == len(w.names) {
			continue // of the folder itself, which they do not speak of
		}
		if v, ok := f.match(w.names[f.depth:]); ok {
			return v.ignored
		}
	}
	return false
}

// match is what the file says of a path below its folder.
func (f *rules) match(path []string) (verdict, bool) {
	name := path[len(path)-1:]
	best, found := f.literals[name[0]]
	if !found {
		best.at = -1
	}
	for i := len(f.globs) - 1; i >= 0 && f.globs[i].at > best.at; i-- {
		if f.globs[i].fits(name) {
			best, found = f.globs[i].verdict, true
		}
	}
	for i := len(f.paths) - 1; i >= 0 && f.paths[i].at > best.at; i-- {
		if f.paths[i].means(path) {
			best, found = f.paths[i].verdict, true
		}
	}
	return best, found
}

// fits reports whether the pattern is of a name.
func (r *rule) fits(name []string) bool {
	if r.suffix != "" {
		return strings.HasSuffix(name[0], r.suffix)
	}
	return r.pattern.Match(name, true) != gitignore.NoMatch
}

// means reports whether the pattern is of the path itself, and not only of a
// folder on it.
func (r *rule) means(path []string) bool {
	switch {
	case r.below && len(path) <= r.elems:
		return false
	case r.below && r.elems == 0:
		return true
	case r.below:
		path = path[:r.elems]
	case r.tail && len(path) > r.elems:
		path = path[len(path)-r.elems:]
	}
	if r.elems != 0 {
		return len(path) == r.elems && r.pattern.Match(path, true) != gitignore.NoMatch
	}
	return r.pattern.Match(path, true) != gitignore.NoMatch &&
		(len(path) == 1 || r.pattern.Match(path[:len(path)-1], true) == gitignore.NoMatch)
}

// parse reads the text of a file.
func parse(text string, depth int) rules {
	f := rules{depth: depth, literals: map[string]verdict{}}
	text = strings.TrimPrefix(text[:min(len(text), MaxBytes)], "\uFEFF")
	n := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if line == "" || line[0] == '#' || len(line) > maxPattern || strings.TrimSpace(line) == "" {
			continue
		}
		if n == maxPatterns {
			break
		}
		f.add(line, n)
		n++
	}
	return f
}

// special are the characters that mean others.
const special = `*?[\`

// add adds a pattern, in the simplest form that means the same.
func (f *rules) add(line string, at int) {
	text, negated := strings.CutPrefix(line, "!")
	if !strings.HasSuffix(text, `\ `) {
		text = strings.TrimRight(text, " ")
	}
	text = strings.TrimRight(text, "/") // only folders are ever asked about
	r := rule{verdict: verdict{at: at, ignored: !negated}}
	for strings.HasPrefix(text, "**/") {
		r.tail, text = true, text[len("**/"):]
	}
	if folder, ok := strings.CutSuffix(text, "/**"); ok {
		// All in a folder, and not the folder.
		r.below = !r.tail && !strings.Contains(folder, "**")
		if text = folder + "/*"; r.below {
			text = "/" + folder
		}
	}
	switch anchored := strings.Contains(text, "/"); {
	case text == "":
	case !anchored && !strings.ContainsAny(text, special):
		f.literals[text] = r.verdict
	case !anchored && text[0] == '*' && !strings.ContainsAny(text[1:], special):
		r.suffix = text[1:]
		if r.suffix == "" {
			r.pattern = gitignore.ParsePattern(text, nil)
		}
		f.globs = append(f.globs, r)
	case !anchored:
		r.pattern = gitignore.ParsePattern(text, nil)
		f.globs = append(f.globs, r)
	case strings.Count(text, "**") <= maxStars:
		r.pattern, r.elems = gitignore.ParsePattern(text, nil), pathElems(text)
		if r.tail && r.elems == 0 {
			r.tail, r.pattern = false, gitignore.ParsePattern("**/"+text, nil)
		}
		f.paths = append(f.paths, r)
	}
}

// pathElems is how many names a path must have to match; 0 where a pattern leaves
// that open.
func pathElems(pattern string) int {
	elems := slices.DeleteFunc(strings.Split(pattern, "/"), func(elem string) bool { return elem == "" })
	if slices.Contains(elems, "**") {
		return 0
	}
	return len(elems)
}

package ignore

import "strings"

// Bounds of one file of patterns. What is beyond them does not count: folders
// are then looked at that need not be.
const (
	// MaxBytes is how much of a file is of use. Who hands over as much hands over
	// a file that may go on, so its last line does not count unless it is ended.
	MaxBytes = 256 << 10

	maxPatterns = 4096
	maxPattern  = 4096 // bytes, as many as a path may have
)

// Bounds of all files on a way, which a tree can nest by the thousand.
const (
	maxWay = 1 << 20 // bytes of their texts
	// maxWork bounds what one question costs, in bytes of patterns times bytes of
	// the text that they are tried with. Patterns beyond it do not count.
	maxWork = 1 << 19
)

// rules are the patterns of one file. Of those that match, the last decides.
type rules struct {
	depth int // of its folder: how many names of the way lead to it
	size  int // bytes of its text

	// Most patterns are plain text, which costs one look however many there are:
	// names at any depth, and paths below the folder.
	names, paths map[string]verdict
	// The others have to be tried, each in the order of the file.
	nameGlobs, pathGlobs []rule
}

// verdict is what a pattern says, and its place in its file, from 1 on. The zero
// value says nothing.
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

// match is what the file says of a path below its folder, whose last name is
// given apart.
func (f *rules) match(path, name []byte, work *int) verdict {
	best := f.names[string(name)]
	if v := f.paths[string(path)]; v.at > best.at {
		best = v
	}
	best = lastOf(f.nameGlobs, name, best, work)
	return lastOf(f.pathGlobs, path, best, work)
}

// lastOf is the last rule that matches, if it comes after what was found and the work
// that is left suffices to try it.
func lastOf(list []rule, text []byte, found verdict, work *int) verdict {
	for i := len(list) - 1; i >= 0 && list[i].at > found.at && *work > 0; i-- {
		if list[i].matches(text, work) {
			return list[i].verdict
		}
	}
	return found
}

// matches reports whether the rule is of a text, a name or a path, and takes what that
// costs from the work.
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

// parse reads the text of a file. A line that is not all there does not count.
func parse(text string, depth int) rules {
	f := rules{depth: depth, size: len(text), names: map[string]verdict{}, paths: map[string]verdict{}}
	if len(text) >= MaxBytes { // as it is where no more than that was read
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

// trimSpaces takes the spaces at the end of a line away, but for one that a
// backslash stands before.
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

// add adds a pattern, in the simplest form that means the same. That it is for
// folders alone makes no difference here: nothing else is asked about.
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

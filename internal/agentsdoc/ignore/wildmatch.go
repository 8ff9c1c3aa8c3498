package ignore

import (
	"bytes"
	"strings"
)

// special are the characters of globs.
const special = `*?[\`

// glob is a pattern from its first special character on, as with git: "a**/b" therefore begins with "**".
type glob struct {
	pattern string
	path    bool   // "/" is matched by itself and "**" alone
	suffix  string // what follows the star of a simple name glob
}

func newGlob(pattern string, path bool) glob {
	g := glob{pattern: pattern, path: path}
	if end, ok := strings.CutPrefix(pattern, "*"); ok && !path && !strings.ContainsAny(end, special) {
		g.suffix = end
	}
	return g
}

func (g *glob) matches(text []byte) bool {
	if g.suffix != "" {
		n := len(text) - len(g.suffix)
		return n >= 0 && string(text[n:]) == g.suffix
	}
	return g.try(0, text) == matched
}

// outcome is the result of trying a pattern from one place in the text on. The two ways of giving up keep the work in
// proportion to the text and the pattern: a star never retries what one behind it has found out.
type outcome int

const (
	failed outcome = iota
	matched
	// hopeless says that no later place in the text can match either.
	hopeless
	// hopelessHere says so of the places up to the next slash.
	hopelessHere
)

// try matches the pattern from an index on.
func (g *glob) try(i int, text []byte) outcome {
	for i < len(g.pattern) {
		if g.pattern[i] == '*' {
			return g.star(i, text)
		}
		if len(text) == 0 {
			return hopeless
		}
		next, ok := g.one(i, text[0])
		switch {
		case next < 0:
			return hopeless
		case !ok:
			return failed
		}
		i, text = next, text[1:]
	}
	if len(text) > 0 {
		return failed
	}
	return matched
}

// one matches one character, and returns where the pattern continues: below 0 if it cannot match anything.
func (g *glob) one(i int, c byte) (next int, ok bool) {
	p := g.pattern
	switch p[i] {
	case '?':
		return i + 1, !g.path || c != '/'
	case '[':
		next, ok = set(p, i, c)
		return next, ok && (!g.path || c != '/')
	case '\\':
		return i + 2, i+1 < len(p) && p[i+1] == c
	default:
		return i + 1, p[i] == c
	}
}

func (g *glob) star(i int, text []byte) outcome {
	p, end := g.pattern, i
	for end < len(p) && p[end] == '*' {
		end++
	}
	if !g.path || g.isDeep(i, end) {
		return g.deep(end, text)
	}
	slash := bytes.IndexByte(text, '/')
	switch {
	case end == len(p) && slash < 0:
		return matched
	case end == len(p):
		return hopelessHere
	case p[end] != '/':
		return g.scan(end, text, false)
	case slash < 0:
		return hopeless
	default:
		return g.try(end+1, text[slash+1:])
	}
}

// isDeep reports whether the stars between two indexes of a path stand for any directories: two or more, between
// slashes or at an end.
func (g *glob) isDeep(i, end int) bool {
	if end-i < 2 || i > 0 && g.pattern[i-1] != '/' {
		return false
	}
	rest := g.pattern[end:]
	return rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`)
}

// deep matches after stars that stand for any text.
func (g *glob) deep(end int, text []byte) outcome {
	switch {
	case end == len(g.pattern):
		return matched
	case g.path && g.pattern[end] == '/':
		// Without any directory the slash is missing, too.
		if o := g.try(end+1, text); o == matched || o == hopeless {
			return o
		}
	}
	return g.scan(end, text, true)
}

// scan tries the pattern from an index on at each place of the text, up to the next slash or beyond.
func (g *glob) scan(i int, text []byte, slashes bool) outcome {
	for ; len(text) > 0; text = text[1:] {
		switch o := g.try(i, text); {
		case o == failed && !slashes && text[0] == '/':
			return hopelessHere
		case o == failed, o == hopelessHere && slashes:
		default:
			return o
		}
	}
	return hopeless
}

// set reports whether a character is in the set that begins at an index, and where the pattern continues after it:
// below 0 if it is malformed.
func set(p string, i int, c byte) (next int, is bool) {
	i++
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	from := -1 // where a range would begin
	for first := true; i < len(p) && (first || p[i] != ']'); first = false {
		m := member(p[i:], from)
		if m.size == 0 {
			return -1, false
		}
		is = is || m.has(c)
		from, i = m.next, i+m.size
	}
	if i >= len(p) {
		return -1, false
	}
	return i + 1, is != negated
}

// element is one element of a set: a character, a range of them, or a class.
type element struct {
	size     int // in the pattern; 0 if malformed
	from, to byte
	more     string // more ranges, two characters each
	next     int    // where a range that follows begins, -1 if none can
}

func (e *element) has(c byte) bool {
	for i := 0; i < len(e.more); i += 2 {
		if e.more[i] <= c && c <= e.more[i+1] {
			return true
		}
	}
	return e.from <= c && c <= e.to
}

func member(p string, from int) element {
	switch {
	case p[0] == '-' && from >= 0 && len(p) > 1 && p[1] != ']':
		to, size := literal(p[1:])
		if size == 0 {
			return element{}
		}
		return element{size: 1 + size, from: byte(from), to: to, next: -1} //nolint:gosec // it was a byte
	case strings.HasPrefix(p, "[:"):
		name, _, ok := strings.Cut(p[2:], "]")
		if !ok {
			return element{}
		}
		if name, ok := strings.CutSuffix(name, ":"); ok {
			if classes[name] == "" {
				return element{}
			}
			return element{size: len("[:") + len(name) + len(":]"), from: 1, more: classes[name], next: -1}
		}
	}
	c, size := literal(p)
	return element{size: size, from: c, to: c, next: int(c)}
}

// literal reads a character of a set, possibly escaped.
func literal(p string) (c byte, size int) {
	switch {
	case p[0] != '\\':
		return p[0], 1
	case len(p) == 1:
		return 0, 0
	default:
		return p[1], 2
	}
}

// classes are the ranges of the classes of ASCII characters, two characters each. Unlike elsewhere, space is without
// \v and \f.
//
//nolint:gochecknoglobals // an immutable table
var classes = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "\t\t  ", "cntrl": "\x01\x1f\x7f\x7f", "digit": "09", "graph": "!~", "lower": "az",
	"print": " ~", "punct": "!/:@[`{~", "space": "\t\n\r\r  ", "upper": "AZ", "xdigit": "09AFaf",
}

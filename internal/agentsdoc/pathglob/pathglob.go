// Package pathglob matches paths with patterns in which "**" stands for any directories and braces for alternatives.
package pathglob

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// Bounds of a [Glob].
const (
	maxGlob         = 256 // bytes
	maxAlternatives = 16
)

// Glob is a pattern for whole paths with slashes, relative to the root of the source tree:
//
//   - "*" stands for any characters but a slash, "?" for one, "[a-z]" for one of a class; "\" escapes
//   - "**" as a whole element stands for any number of directories, so "src/**" is src and everything below
//   - "{a,b}" stands for either
//
// A leading "/" or "./" is ignored; a trailing "/" is "/**". The zero value matches nothing. A Glob is immutable.
type Glob struct {
	pattern      string
	alternatives [][]string
}

// Parse reads a pattern. Matching takes time in proportion to the product of the lengths of pattern and path.
func Parse(pattern string) (Glob, error) {
	g := Glob{pattern: pattern}
	if pattern == "" || len(pattern) > maxGlob {
		return Glob{}, errors.New("an empty pattern, or one of more than 256 bytes")
	}
	list, err := Expand(pattern, maxAlternatives)
	if err != nil {
		return Glob{}, err
	}
	for _, p := range list {
		p = strings.TrimPrefix(strings.TrimPrefix(p, "./"), "/")
		if strings.HasSuffix(p, "/") {
			p += "**"
		}
		elements := strings.Split(p, "/")
		for _, e := range elements {
			if e == "" || e == "." || e == ".." {
				return Glob{}, errors.New("empty elements, and those of dots, are not allowed in a path")
			}
			if _, err := path.Match(e, ""); err != nil {
				return Glob{}, errors.New("a class that does not close, or a backslash at the end")
			}
		}
		g.alternatives = append(g.alternatives, elements)
	}
	return g, nil
}

// String returns the pattern.
func (g Glob) String() string { return g.pattern }

// Match reports whether the pattern matches a path with slashes, relative to the root, which itself is ".".
func (g Glob) Match(name string) bool {
	var elements []string
	if name != "." && name != "" {
		elements = strings.Split(name, "/")
	}
	return slices.ContainsFunc(g.alternatives, func(pattern []string) bool { return matchElements(pattern, elements) })
}

// matchElements goes back to the last "**" on a mismatch: what an earlier one could take, the last can take too.
func matchElements(pattern, elements []string) bool {
	star, taken := -1, 0
	i, j := 0, 0
	for j < len(elements) {
		switch {
		case i < len(pattern) && pattern[i] == "**":
			star, taken = i, j
			i++
		case i < len(pattern) && matchElement(pattern[i], elements[j]):
			i++
			j++
		case star >= 0:
			taken++
			i, j = star+1, taken
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == "**" {
		i++
	}
	return i == len(pattern)
}

func matchElement(pattern, element string) bool {
	ok, err := path.Match(pattern, element)
	return err == nil && ok // Parse has seen the pattern
}

// Expand returns the patterns that one with braces stands for. Braces that do not close, or stand for more patterns than
// most, are an error.
func Expand(pattern string, most int) ([]string, error) {
	done, todo := []string{}, []string{pattern}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		open, commas, end := braces(p)
		if open < 0 {
			done = append(done, p)
			continue
		}
		if end < 0 || len(done)+len(todo)+len(commas)+1 > most {
			return nil, errors.New("braces that do not close, or stand for too many patterns")
		}
		from, next := open+1, make([]string, 0, len(commas)+1)
		for _, to := range append(commas, end) {
			next = append(next, p[:open]+p[from:to]+p[end+1:])
			from = to + 1
		}
		todo = append(next, todo...)
	}
	return done, nil
}

// braces finds the first outer braces and the commas right inside them; open is -1 without braces, end if they do not
// close.
func braces(p string) (open int, commas []int, end int) {
	open, depth := -1, 0
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '\\':
			i++
		case p[i] == '{':
			if depth == 0 {
				open = i
			}
			depth++
		case p[i] == '}' && depth > 0:
			if depth--; depth == 0 {
				return open, commas, i
			}
		case p[i] == ',' && depth == 1:
			commas = append(commas, i)
		}
	}
	return open, commas, -1
}

// Split splits a text of patterns at the commas outside braces.
func Split(text string) []string {
	var out []string
	depth, from := 0, 0
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			depth = max(0, depth-1)
		case ',':
			if depth == 0 {
				add(text[from:i])
				from = i + 1
			}
		}
	}
	add(text[from:])
	return out
}

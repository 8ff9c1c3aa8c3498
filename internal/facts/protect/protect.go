// Package protect says which paths hold secrets: it compares a path, however it is spelled, or a glob with lists of
// patterns.
//
// It is a pure function of names. Whether a file exists, and where links lead, is for its caller to find out. Start
// reading at [Set].
package protect

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Set is two lists of patterns: what is protected, and what is not although a pattern of the first list says so. It is
// safe for concurrent use.
//
// A pattern is a path with the wildcards of [path.Match], compared with the end of a path: "id_rsa" and
// ".aws/credentials" protect these files in every directory. One that ends in / is a directory with all that is in it.
// One that begins with / is the whole path. The case of letters does not count.
type Set struct{ deny, allow []pattern }

type pattern struct {
	text   string
	elems  []element
	dir    bool // ends in /
	rooted bool // begins with /
}

// element is a name in a pattern.
type element struct {
	text          string
	before, after string // of the only wildcard, if that is a *
	star, glob    bool   // has one *, or other wildcards
}

// New compiles the patterns. The error says which one is wrong.
func New(deny, allow []string) (*Set, error) {
	s := &Set{}
	for _, list := range []struct {
		texts []string
		into  *[]pattern
	}{{deny, &s.deny}, {allow, &s.allow}} {
		for _, text := range list.texts {
			p, err := compile(text)
			if err != nil {
				return nil, err
			}
			*list.into = append(*list.into, p)
		}
	}
	return s, nil
}

func compile(text string) (pattern, error) {
	folded := strings.TrimPrefix(fold(text), "~/")
	p := pattern{text: text, dir: strings.HasSuffix(folded, "/"), rooted: strings.HasPrefix(folded, "/")}
	elems := elements(folded)
	if len(elems) == 0 || slices.Equal(elems, []string{"*"}) {
		return p, fmt.Errorf("%q would stand for every file", text)
	}
	for _, elem := range elems {
		e := element{text: elem, glob: strings.ContainsAny(elem, `?[\`) || strings.Count(elem, "*") > 1}
		e.before, e.after, e.star = strings.Cut(elem, "*")
		p.elems = append(p.elems, e)
		if _, err := path.Match(elem, ""); err != nil || elem == ".." || strings.Contains(elem, "**") {
			return p, fmt.Errorf("%q is not a pattern: use names with *, ? and [a-z], and / between them", text)
		}
	}
	return p, nil
}

// Path returns the pattern that protects a path. It tries every way in which a program may read the path: as a
// file URL, with percent escapes, up to a NUL, with backslashes, in another case or Unicode form.
func (s *Set) Path(name string) (string, bool) {
	for _, spelled := range spellings(name) {
		elems := elements(spelled)
		rooted := strings.HasPrefix(spelled, "/")
		if p := first(s.deny, elems, rooted); p != nil && first(s.allow, elems, rooted) == nil {
			return p.text, true
		}
	}
	return "", false
}

func first(list []pattern, elems []string, rooted bool) *pattern {
	for i := range list {
		if list[i].matches(elems, rooted) {
			return &list[i]
		}
	}
	return nil
}

// matches reports whether the end of a path, or for a directory of any path above it, is as the pattern says.
func (p *pattern) matches(elems []string, rooted bool) bool {
	for end := len(elems); end >= len(p.elems); end-- {
		from := end - len(p.elems)
		if (!p.rooted || rooted && from == 0) && p.matchesAt(elems[from:end]) {
			return true
		}
		if !p.dir {
			break
		}
	}
	return false
}

func (p *pattern) matchesAt(elems []string) bool {
	for i := range p.elems {
		if !p.elems[i].matches(elems[i]) {
			return false
		}
	}
	return true
}

func (e *element) matches(name string) bool {
	switch {
	case e.glob:
		ok, _ := path.Match(e.text, name) // compile tried it
		return ok
	case e.star:
		rest, found := strings.CutPrefix(name, e.before)
		return found && strings.HasSuffix(rest, e.after)
	}
	return name == e.text
}

// Suffix reports whether the pattern is only the end of a name, as "*.key" is: words of a program, such as env.key,
// look like that too.
func Suffix(pattern string) bool { return strings.HasPrefix(pattern, "*.") }

// spellings are the ways to read a path, in the form that patterns have.
func spellings(name string) []string {
	list := []string{name}
	if !strings.ContainsAny(name, "%\x00\\") {
		list[0] = fold(name)
		return list
	}
	if strings.Contains(name, "%") {
		if decoded, err := url.PathUnescape(name); err == nil {
			list = append(list, decoded)
		}
	}
	for _, s := range slices.Clone(list) {
		if before, _, cut := strings.Cut(s, "\x00"); cut {
			list = append(list, before)
		}
	}
	for _, s := range slices.Clone(list) {
		if strings.Contains(s, `\`) {
			list = append(list, strings.ReplaceAll(s, `\`, "/"), strings.ReplaceAll(s, `\`, ""))
		}
	}
	for i, s := range list {
		list[i] = fold(s)
	}
	return list
}

// fold gives names that a file system may take for the same one the same form.
func fold(s string) string {
	if scheme := "file:"; len(s) > len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
		s = s[len(scheme):]
	}
	if ascii(s) {
		return strings.ToLower(strings.ReplaceAll(s, "\x00", ""))
	}
	s = norm.NFKC.String(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		if r == 0 || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// elements are the names in a path, without those that lead nowhere. A name on Windows does not end in a dot or space,
// and what follows a colon is a stream of the file.
func elements(name string) []string {
	var elems []string
	for elem := range strings.SplitSeq(path.Clean("/"+name), "/") {
		if elem != ".." {
			elem = strings.TrimRight(elem, ". ")
		}
		if before, _, stream := strings.Cut(elem, "::$"); stream {
			elem = before
		}
		if elem != "" {
			elems = append(elems, elem)
		}
	}
	return elems
}

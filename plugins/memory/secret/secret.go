package secret

import (
	"cmp"
	"slices"
	"strings"
)

// maxFindings bounds how many findings of one pattern are looked for.
const maxFindings = 100

// Finding is a place that looks like a secret.
type Finding struct {
	// Pattern is the pattern's name, one of [Scanner.Patterns].
	Pattern string
	// Start and End are byte offsets in the text, around the secret alone: of
	// "password=x" they mean the x.
	Start, End int
}

// Scanner finds secrets. Make one with [New] and keep it; many may use it at once.
// The zero value knows no pattern and finds nothing.
type Scanner struct {
	patterns []pattern
}

// New compiles the patterns, which takes a few milliseconds.
func New() *Scanner { return &Scanner{patterns()} }

// Patterns returns the names of all patterns. Of several that find the same place,
// the first one is reported.
func (s *Scanner) Patterns() []string {
	var names []string
	for _, p := range s.patterns {
		if !slices.Contains(names, p.name) {
			names = append(names, p.name)
		}
	}
	return names
}

// Find returns the places of a text that look like secrets, in order and without
// overlaps. Its work grows with the length of the text and not faster. Of each
// pattern it reports at most 100 places.
func (s *Scanner) Find(text string) []Finding {
	lower := lowerASCII(text)
	var all []Finding
	for _, p := range s.patterns {
		all = add(all, p.find(text, lower))
	}
	return all
}

// add merges new findings in that do not overlap with what is there. Both lists are
// in order.
func add(all, more []Finding) []Finding {
	if len(more) == 0 {
		return all
	}
	merged := slices.Clone(all)
	i := 0
	for _, f := range more {
		for i < len(all) && all[i].End <= f.Start {
			i++
		}
		if i == len(all) || f.End <= all[i].Start {
			merged = append(merged, f)
		}
	}
	slices.SortFunc(merged, func(a, b Finding) int { return cmp.Compare(a.Start, b.Start) })
	return merged
}

// lowerASCII lowers the letters A to Z and keeps the length, so that offsets stay.
func lowerASCII(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// find returns the pattern's findings in a text, in order. The text comes in lower
// case besides.
func (p pattern) find(text, lower string) []Finding {
	if p.spans != nil {
		return p.spans(p.name, text)
	}
	var all []Finding
	end := 0
	take := func(offset int, m []int) {
		end = offset + m[1]
		from, to := value(m)
		from, to = offset+from, offset+to
		if from < to && len(all) < maxFindings && (p.check == nil || p.check(text, from, to)) {
			from, to = inside(text, from, to)
			all = append(all, Finding{p.name, from, to})
		}
	}
	for _, at := range occurrences(lower, p.needs) {
		if at < end || len(all) == maxFindings {
			continue
		}
		if p.head != nil {
			if m := p.headMatch(text, at); m != nil {
				take(at, m)
			}
			continue
		}
		from, to := around(text, end, at)
		for _, m := range p.re.FindAllStringSubmatchIndex(text[from:to], -1) {
			take(from, m)
		}
		end = max(end, to)
	}
	return all
}

// headMatch matches head at a place. Its work has a bound: of a token there is one
// in each run of letters, and behind a name only a part of the text is looked at.
func (p pattern) headMatch(text string, at int) []int {
	switch {
	case p.token && at > 0 && (wordByte(text[at-1]) || text[at-1] == '-'), !p.token && !startsWord(text, at):
		return nil
	case p.token:
		return p.head.FindStringSubmatchIndex(text[at:])
	}
	return p.head.FindStringSubmatchIndex(text[at:min(len(text), at+reach)])
}

// occurrences returns where any of some parts is in a text, in order.
func occurrences(text string, parts []string) []int {
	var all []int
	for _, part := range parts {
		for i := 0; ; i += len(part) {
			n := strings.Index(text[i:], part)
			if n < 0 {
				break
			}
			i += n
			all = append(all, i)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// startsWord reports whether a word starts at a place, or a part of a name that is
// written in camelCase or with signs.
func startsWord(text string, at int) bool {
	if at == 0 {
		return true
	}
	before, c := text[at-1], text[at]
	isLetter := 'a' <= before && before <= 'z' || 'A' <= before && before <= 'Z'
	camel := 'a' <= before && before <= 'z' && 'A' <= c && c <= 'Z'
	return !isLetter || camel
}

// reach is how far around a place, and behind a name, a secret is looked for, in
// bytes.
const reach = 600

// around returns the part of a text around a place in which a pattern is looked for:
// what is on the same line and near, but nothing before least. The places in it need
// no second look.
func around(text string, least, at int) (from, to int) {
	from = max(least, at-reach)
	if i := strings.LastIndexByte(text[from:at], '\n'); i >= 0 {
		from += i
	}
	to = min(len(text), at+reach)
	if i := strings.IndexByte(text[at:to], '\n'); i >= 0 {
		to = at + i
	}
	return from, to
}

// value returns where the secret is in a match: its first group that took part, or
// all of it if it has none.
func value(m []int) (from, to int) {
	for i := 2; i < len(m); i += 2 {
		if m[i] >= 0 {
			return m[i], m[i+1]
		}
	}
	return m[0], m[1]
}

// inside leaves the quotes out that are around a value.
func inside(text string, from, to int) (int, int) {
	if v := text[from:to]; unquote(v) != v {
		return from + 1, to - 1
	}
	return from, to
}

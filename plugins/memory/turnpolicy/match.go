package turnpolicy

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// possible returns what of the language can match anywhere in a text.
func (l language) possible(text string) language {
	keep := func(list []pattern) []pattern {
		var kept []pattern
		for _, p := range list {
			if p.possible(text) {
				kept = append(kept, p)
			}
		}
		return kept
	}
	l.guards, l.rules, l.facts = keep(l.guards), keep(l.rules), keep(l.facts)
	return l
}

// possible reports whether the text has what the pattern needs.
func (p pattern) possible(text string) bool {
	return p.needs == nil || containsAny(text, p.needs)
}

// said is a sentence and where it may start to say something: at its beginning and
// behind each courtesy there, and likewise at its clauses.
type said struct {
	text    string
	starts  []int
	clauses []int
}

// maxStarts bounds the places of a sentence at which rules are tried.
const maxStarts = 32

// hear finds where a sentence starts.
func (l language) hear(text string) said {
	s := said{text: text, starts: l.leads(text, nil, 0)}
	s.clauses = s.starts
	if l.clause == nil {
		return s
	}
	for _, m := range l.clause.FindAllStringIndex(text, maxStarts) {
		if m[1] < len(text) {
			s.clauses = l.leads(text, s.clauses, m[1])
		}
	}
	return s
}

// leads appends the offset at, and those behind the courtesies that begin there.
func (l language) leads(text string, starts []int, at int) []int {
	starts = slices.Clip(starts)
	for len(starts) < maxStarts && !slices.Contains(starts, at) {
		starts = append(starts, at)
		if l.lead == nil {
			break
		}
		m := l.lead.FindStringIndex(text[at:])
		if m == nil || at+m[1] == len(text) {
			break
		}
		at += m[1]
	}
	return starts
}

// find matches a sentence. It returns where "it" is, or an empty span; and false if
// the pattern does not match or something speaks against it.
func (p pattern) find(s said) (it span, ok bool) {
	if !p.possible(s.text) {
		return span{}, false
	}
	places := []int{0}
	switch p.At {
	case atStart:
		places = s.starts
	case atClause:
		places = s.clauses
	}
	for _, from := range places {
		if it, ok := p.findIn(s.text[from:]); ok {
			if it != (span{}) {
				it.from += from
				it.to += from
			}
			return it, true
		}
	}
	return span{}, false
}

// findIn matches a text.
func (p pattern) findIn(text string) (it span, ok bool) {
	m := p.match.FindStringSubmatchIndex(text)
	if m == nil {
		return span{}, false
	}
	for _, re := range p.with {
		if !re.MatchString(text) {
			return span{}, false
		}
	}
	for _, re := range p.unless {
		if re.MatchString(text) {
			return span{}, false
		}
	}
	if p.it > 0 && m[2*p.it] >= 0 {
		it = span{m[2*p.it], m[2*p.it+1]}
	}
	return it, true
}

// guards reports whether the guard is for rules of an intent; "" stands for facts.
func (p pattern) guards(intent Intent) bool {
	return len(p.Intents) == 0 || slices.Contains(p.Intents, intent)
}

// containsAny reports whether one of the parts is in a text.
func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(s string) bool { return strings.Contains(text, s) })
}

// hasWord reports whether a folded text has one of the words: texts that begin where
// a letter is not in front, unless they are of a script without spaces.
func hasWord(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		for from := 0; ; from++ {
			i := strings.Index(text[from:], word)
			if i < 0 {
				return false
			}
			from += i
			if word[0] >= utf8.RuneSelf || from == 0 || text[from-1] < 'a' || text[from-1] > 'z' {
				return true
			}
		}
	})
}

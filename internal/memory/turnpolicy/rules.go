package turnpolicy

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

//go:embed rules/*.json
var files embed.FS

// Rules are the rules of some languages; see [Builtin]. They are safe for concurrent use.
type Rules struct {
	languages []*language
}

// Builtin returns the package's rules: English, German, French, Spanish and Chinese. A language is compiled
// with the first text that may be in it, which takes some ten milliseconds.
func Builtin() (*Rules, error) {
	names, err := files.ReadDir("rules")
	if err != nil {
		return nil, err
	}
	r := &Rules{}
	for _, name := range names {
		data, err := files.ReadFile("rules/" + name.Name())
		if err != nil {
			return nil, err
		}
		l := &language{}
		if err := jsonscan.Decode(data, l); err != nil {
			return nil, fmt.Errorf("%s: %w", name.Name(), err)
		}
		l.compile = sync.OnceValue(l.compileAll)
		r.languages = append(r.languages, l)
	}
	return r, nil
}

// in returns the languages that a folded text may be in. It omits a language with a mistake in its rules; a test
// keeps the package's own correct.
func (r *Rules) in(text string) []*language {
	return slices.DeleteFunc(slices.Clone(r.languages), func(l *language) bool { return !hasWord(text, l.Words) || l.compile() != nil })
}

// hasWord reports whether one of the words begins in a folded text: not after a letter, except in scripts without
// spaces.
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

// language is a file of rules; the package comment describes it.
type language struct {
	Language string            `json:"language"`
	Words    []string          `json:"words"`
	Lead     expression        `json:"lead"`
	Clause   expression        `json:"clause"`
	Foreign  expression        `json:"foreign"`
	Greeting expression        `json:"greeting"`
	Ends     expression        `json:"ends"`
	Parts    map[string]string `json:"parts"`
	Guards   []pattern         `json:"guards"`
	Rules    []pattern         `json:"rules"`
	Facts    []pattern         `json:"facts"`
	Slots    []pattern         `json:"slots"`

	compile func() error // compiles all expressions, once
}

// pattern is a guard, a rule, a fact or a slot.
type pattern struct {
	ID     string       `json:"id"`
	At     string       `json:"at"` // where in a sentence it must match: atStart, atClause or, if empty, anywhere
	Match  expression   `json:"match"`
	With   []expression `json:"with"`
	Unless []expression `json:"unless"`
	Says   []string     `json:"says"`

	Intents    []Intent `json:"intents"` // of a guard; without any it is for all, and for facts
	Intent     Intent   `json:"intent"`
	Confidence float64  `json:"confidence"`
	Refers     string   `json:"refers"` // where the object is, if not in the sentence: refersBefore or refersAfter
	Category   Category `json:"category"`
	Slot       Slot     `json:"slot"`

	it    int      // the number of the group "it", or -1
	needs []string // every match has one of these texts; nil is unknown
}

const (
	refersBefore, refersAfter = "before", "after"
	atStart, atClause         = "start", "clause"

	// intentFact stands for facts among the intents of a guard.
	intentFact Intent = "fact"
)

// expression is a regular expression with named parts. An empty one matches nothing.
type expression struct {
	text string
	re   *regexp.Regexp // after compiling
}

// UnmarshalJSON implements [json.Unmarshaler].
func (e *expression) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &e.text) }

// in returns where the expression matches first, with its groups, or nil.
func (e *expression) in(text string) []int {
	if e.re == nil {
		return nil
	}
	return e.re.FindStringSubmatchIndex(text)
}

// compileAll compiles all expressions. Its error names each wrong pattern.
func (l *language) compileAll() error {
	problems := []error{
		l.compileOne("lead", &l.Lead, true), l.compileOne("clause", &l.Clause, false), l.compileOne("greeting", &l.Greeting, true),
		l.compileOne("foreign", &l.Foreign, false), l.compileOne("ends", &l.Ends, false),
	}
	for _, list := range [][]pattern{l.Guards, l.Rules, l.Facts, l.Slots} {
		for i := range list {
			p := &list[i]
			problems = append(problems, l.compileOne(p.ID, &p.Match, p.At != ""))
			for _, more := range [][]expression{p.With, p.Unless} {
				for n := range more {
					problems = append(problems, l.compileOne(p.ID, &more[n], false))
				}
			}
			problems = append(problems, p.analyse())
		}
	}
	return errors.Join(problems...)
}

// analyse notes what a compiled pattern needs and where its object is.
func (p *pattern) analyse() error {
	if p.Match.re == nil {
		return fmt.Errorf("%s: it has no expression", p.ID)
	}
	p.it = p.Match.re.SubexpIndex("it")
	tree, err := syntax.Parse(p.Match.re.String(), syntax.Perl)
	if err == nil {
		p.needs = needs(tree.Simplify())
	}
	return err
}

var partName = lazyregexp.New(`\{[a-z_]+\}`)

func (l *language) compileOne(name string, e *expression, atBeginning bool) (err error) {
	if e.text == "" {
		return nil
	}
	text, missing := e.text, ""
	if atBeginning {
		text = "^(?:" + text + ")"
	}
	for depth := 0; partName().MatchString(text) && missing == "" && depth < 8; depth++ {
		text = partName().ReplaceAllStringFunc(text, func(s string) string {
			part, ok := l.Parts[strings.Trim(s, "{}")]
			if !ok {
				missing = s
			}
			return "(?:" + part + ")"
		})
	}
	if missing != "" {
		return fmt.Errorf("%s: there is no part %s", name, missing)
	}
	if e.re, err = regexp.Compile(text); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// needs returns texts of which every match of an expression has at least one, or nil if there are none. Looking for
// them first makes reading a message ten times as cheap.
func needs(re *syntax.Regexp) []string {
	switch re.Op { //nolint:exhaustive // the other operators need nothing
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return []string{string(re.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needs(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needs(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			some := needs(sub)
			if a, b := shortest(some), shortest(best); a > b || a == b && len(some) < len(best) {
				best = some
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			some := needs(sub)
			if some == nil {
				return nil
			}
			all = append(all, some...)
		}
		return slices.Compact(slices.Sorted(slices.Values(all)))
	}
	return nil
}

// shortest returns the length of the shortest text, and 0 without any.
func shortest(texts []string) int {
	if len(texts) == 0 {
		return 0
	}
	return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
}

// clauseStarts is a sentence and where in it patterns are tried: at its beginning and after each courtesy there, and likewise
// at its clauses.
type clauseStarts struct {
	text            string
	starts, clauses []int
}

// maxStarts bounds the places of a sentence at which patterns are tried.
const maxStarts = 32

func (l *language) clauses(text string) clauseStarts {
	s := clauseStarts{text: text, starts: l.leads(text, nil, 0)}
	s.clauses = s.starts
	if l.Clause.re == nil {
		return s
	}
	for _, m := range l.Clause.re.FindAllStringIndex(text, maxStarts) {
		if m[1] < len(text) {
			s.clauses = l.leads(text, s.clauses, m[1])
		}
	}
	return s
}

// leads appends the offset at, and the offsets after the courtesies that begin there.
func (l *language) leads(text string, starts []int, at int) []int {
	starts = slices.Clip(starts)
	for len(starts) < maxStarts && !slices.Contains(starts, at) {
		starts = append(starts, at)
		m := l.Lead.in(text[at:])
		if m == nil || at+m[1] == len(text) {
			break
		}
		at += m[1]
	}
	return starts
}

func (p *pattern) possible(text string) bool {
	return p.needs == nil || slices.ContainsFunc(p.needs, func(s string) bool { return strings.Contains(text, s) })
}

// find matches a sentence. It returns the span of the group "it", which may be empty.
func (p *pattern) find(s clauseStarts) (it span, ok bool) {
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
		text := s.text[from:]
		m := p.Match.in(text)
		matches := func(e expression) bool { return e.re.MatchString(text) }
		fails := func(e expression) bool { return !e.re.MatchString(text) }
		if m == nil || slices.ContainsFunc(p.With, fails) || slices.ContainsFunc(p.Unless, matches) {
			continue
		}
		if p.it > 0 && m[2*p.it] >= 0 {
			it = span{from + m[2*p.it], from + m[2*p.it+1]}
		}
		return it, true
	}
	return span{}, false
}

// guarded reports whether a guard denies a sentence any wish of an intent, or with intentFact any fact.
func (l *language) guarded(s clauseStarts, intent Intent) bool {
	for i := range l.Guards {
		p := &l.Guards[i]
		if len(p.Intents) > 0 && !slices.Contains(p.Intents, intent) {
			continue
		}
		if _, ok := p.find(s); ok {
			return true
		}
	}
	return false
}

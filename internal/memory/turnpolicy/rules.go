package turnpolicy

import (
	"embed"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/lazyregexp"
)

//go:embed rules/*.json
var files embed.FS

// Rules are the rules of some languages; see [Builtin]. They are safe for concurrent use.
type Rules struct {
	languages []lazyLanguage
}

// lazyLanguage is a language that is compiled when a text has one of its words.
type lazyLanguage struct {
	file    *ruleFile
	compile func() (language, error)
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
		file := &ruleFile{}
		if err := jsonscan.Decode(data, file); err != nil {
			return nil, fmt.Errorf("%s: %w", name.Name(), err)
		}
		r.languages = append(r.languages, lazyLanguage{file, sync.OnceValues(file.compile)})
	}
	return r, nil
}

// in returns the languages that a folded text may be in. It omits a language with a mistake in its rules; a test
// keeps the package's own correct.
func (r *Rules) in(text string) []language {
	var all []language
	for _, lazy := range r.languages {
		if !hasWord(text, lazy.file.Words) {
			continue
		}
		if l, err := lazy.compile(); err == nil {
			all = append(all, l)
		}
	}
	return all
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

// ruleFile is the JSON of one language; the package comment describes it.
type ruleFile struct {
	Language string            `json:"language"`
	Words    []string          `json:"words"`
	Lead     string            `json:"lead"`
	Clause   string            `json:"clause"`
	Foreign  string            `json:"foreign"`
	Greeting string            `json:"greeting"`
	Ends     string            `json:"ends"`
	Parts    map[string]string `json:"parts"`
	Guards   []struct {
		expression

		Intents []Intent `json:"intents"`
	} `json:"guards"`
	Rules []struct {
		expression
		aim
	} `json:"rules"`
	Facts []struct {
		expression

		Category Category `json:"category"`
	} `json:"facts"`
	Slots []struct {
		expression

		Slot Slot `json:"slot"`
	} `json:"slots"`
}

type expression struct {
	ID     string   `json:"id"`
	At     string   `json:"at"` // where in a sentence it must match: atStart, atClause or, if empty, anywhere
	Match  string   `json:"match"`
	With   []string `json:"with"`
	Unless []string `json:"unless"`
	Says   []string `json:"says"`
}

// aim is what only rules have.
type aim struct {
	Intent     Intent  `json:"intent"`
	Confidence float64 `json:"confidence"`
	Target     string  `json:"target"`
	Refers     string  `json:"refers"` // where the object is, if not in the sentence: refersBefore or refersAfter
}

const (
	refersBefore, refersAfter = "before", "after"
	atStart, atClause         = "start", "clause"

	// intentFact stands for facts among the intents of a guard.
	intentFact Intent = "fact"
)

type language struct {
	// lead is one courtesy at the beginning of a text, clause separates two clauses, foreign is in sentences about texts
	// that are not the user's own words, greeting is before a statement in its sentence, and ends after it. Each may be nil.
	lead, clause, foreign, greeting, ends *regexp.Regexp
	guards, rules, facts, slots           []pattern
}

type pattern struct {
	expression
	aim

	language     string
	intents      []Intent // of a guard; without any it is for all, and for facts
	category     Category
	slot         Slot
	match        *regexp.Regexp
	with, unless []*regexp.Regexp
	it           int      // the number of the group "it", or -1
	needs        []string // every match has one of these texts; nil is unknown
}

// compile compiles a rule file. Its error names each wrong pattern.
func (f *ruleFile) compile() (language, error) {
	var l language
	var problems []error
	add := func(list *[]pattern, p pattern) {
		if err := f.compilePattern(&p); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", p.ID, err))
		}
		*list = append(*list, p)
	}
	for _, j := range f.Guards {
		add(&l.guards, pattern{expression: j.expression, intents: j.Intents})
	}
	for _, j := range f.Rules {
		add(&l.rules, pattern{expression: j.expression, aim: j.aim})
	}
	for _, j := range f.Facts {
		add(&l.facts, pattern{expression: j.expression, category: j.Category})
	}
	for _, j := range f.Slots {
		add(&l.slots, pattern{expression: j.expression, slot: j.Slot})
	}
	optional := func(name, text, before, after string) *regexp.Regexp {
		if text == "" {
			return nil
		}
		re, err := f.regexp(before + text + after)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
		return re
	}
	l.lead, l.clause = optional("lead", f.Lead, "^(?:", ")"), optional("clause", f.Clause, "", "")
	l.greeting = optional("greeting", f.Greeting, "^(?:", ")")
	l.foreign, l.ends = optional("foreign", f.Foreign, "", ""), optional("ends", f.Ends, "", "")
	return l, errors.Join(problems...)
}

func (f *ruleFile) compilePattern(p *pattern) error {
	p.language = f.Language
	text := p.Match
	if p.At != "" {
		text = "^(?:" + text + ")"
	}
	var err error
	if p.match, err = f.regexp(text); err != nil {
		return fmt.Errorf("match: %w", err)
	}
	for _, list := range []struct {
		texts []string
		into  *[]*regexp.Regexp
	}{{p.With, &p.with}, {p.Unless, &p.unless}} {
		for _, text := range list.texts {
			re, err := f.regexp(text)
			if err != nil {
				return fmt.Errorf("%q: %w", text, err)
			}
			*list.into = append(*list.into, re)
		}
	}
	p.it = p.match.SubexpIndex("it")
	tree, err := syntax.Parse(p.match.String(), syntax.Perl)
	if err != nil {
		return err
	}
	p.needs = needs(tree.Simplify())
	return nil
}

var partName = lazyregexp.New(`\{[a-z_]+\}`)

// regexp compiles a pattern with its parts.
func (f *ruleFile) regexp(text string) (*regexp.Regexp, error) {
	for depth := 0; partName().MatchString(text); depth++ {
		missing := ""
		text = partName().ReplaceAllStringFunc(text, func(s string) string {
			part, ok := f.Parts[strings.Trim(s, "{}")]
			if !ok {
				missing = s
			}
			return "(?:" + part + ")"
		})
		switch {
		case missing != "":
			return nil, fmt.Errorf("no part %s", missing)
		case depth == 8:
			return nil, errors.New("its parts are nested too deeply")
		}
	}
	return regexp.Compile(text)
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

// said is a sentence and where in it patterns are tried: at its beginning and after each courtesy there, and likewise
// at its clauses.
type said struct {
	text            string
	starts, clauses []int
}

// maxStarts bounds the places of a sentence at which patterns are tried.
const maxStarts = 32

func (l *language) hear(text string) said {
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

// leads appends the offset at, and the offsets after the courtesies that begin there.
func (l *language) leads(text string, starts []int, at int) []int {
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

func (p *pattern) possible(text string) bool {
	return p.needs == nil || slices.ContainsFunc(p.needs, func(s string) bool { return strings.Contains(text, s) })
}

// find matches a sentence. It returns the span of the group "it", which may be empty.
func (p *pattern) find(s said) (it span, ok bool) {
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
		m := p.match.FindStringSubmatchIndex(text)
		matches := func(re *regexp.Regexp) bool { return re.MatchString(text) }
		fails := func(re *regexp.Regexp) bool { return !re.MatchString(text) }
		if m == nil || slices.ContainsFunc(p.with, fails) || slices.ContainsFunc(p.unless, matches) {
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
func (l *language) guarded(s said, intent Intent) bool {
	for i := range l.guards {
		p := &l.guards[i]
		if len(p.intents) > 0 && !slices.Contains(p.intents, intent) {
			continue
		}
		if _, ok := p.find(s); ok {
			return true
		}
	}
	return false
}

package turnpolicy

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Bounds of patterns: their length when the parts are put in, and parts in parts.
const (
	maxPattern = 16 << 10
	maxDepth   = 8
)

// language is a compiled rule file.
type language struct {
	// lead is one courtesy at the beginning of a text, and clause is what stands
	// between two clauses. Nil is none.
	lead, clause                *regexp.Regexp
	guards, rules, facts, slots []pattern
}

// pattern is a compiled guard, rule, fact or slot.
type pattern struct {
	patternJSON

	language string
	match    *regexp.Regexp
	// All of with and none of unless must match besides.
	with, unless []*regexp.Regexp
	// it is the number of the group "it", or -1.
	it int
	// needs are texts of which one is in whatever matches; nil is unknown.
	needs []string
}

// compile compiles a rule file. Its error names each pattern that is wrong.
func (f *ruleFile) compile() (language, error) {
	var l language
	problems := []error{f.compileStarts(&l)}
	compileAll := func(list []patternJSON, check func(patternJSON) error) []pattern {
		var done []pattern
		for _, j := range list {
			p, err := f.compilePattern(j)
			if err = errors.Join(err, check(j)); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", j.ID, err))
			}
			done = append(done, p)
		}
		return done
	}
	l.guards = compileAll(f.Guards, checkGuard)
	l.rules = compileAll(f.Rules, checkRule)
	l.facts = compileAll(f.Facts, checkFact)
	l.slots = compileAll(f.Slots, checkSlot)
	return l, errors.Join(problems...)
}

// compileStarts compiles what tells where sentences and clauses start.
func (f *ruleFile) compileStarts(l *language) error {
	var err error
	if f.Lead != "" {
		if l.lead, err = f.regexp("^(?:" + f.Lead + ")"); err != nil {
			return fmt.Errorf("lead: %w", err)
		}
	}
	if f.Clause != "" {
		if l.clause, err = f.regexp(f.Clause); err != nil {
			return fmt.Errorf("clause: %w", err)
		}
	}
	return nil
}

// compilePattern compiles one pattern of the file.
func (f *ruleFile) compilePattern(j patternJSON) (pattern, error) {
	p := pattern{patternJSON: j, language: f.Language}
	if !strings.HasPrefix(j.ID, f.Language+".") {
		return p, fmt.Errorf("id: does not begin with %q", f.Language+".")
	}
	if j.At != "" {
		if err := known("at", j.At, []place{atStart, atClause}); err != nil {
			return p, err
		}
		j.Match = "^(?:" + j.Match + ")"
	}
	var err error
	if p.match, err = f.regexp(j.Match); err != nil {
		return p, fmt.Errorf("match: %w", err)
	}
	if p.with, err = f.regexps(j.With); err != nil {
		return p, fmt.Errorf("with %w", err)
	}
	if p.unless, err = f.regexps(j.Unless); err != nil {
		return p, fmt.Errorf("unless %w", err)
	}
	p.it = p.match.SubexpIndex("it")
	tree, err := syntax.Parse(p.match.String(), syntax.Perl)
	if err != nil {
		return p, err
	}
	p.needs = needs(tree.Simplify())
	return p, nil
}

// regexps compiles several patterns.
func (f *ruleFile) regexps(texts []string) ([]*regexp.Regexp, error) {
	var all []*regexp.Regexp
	for i, text := range texts {
		re, err := f.regexp(text)
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
		all = append(all, re)
	}
	return all, nil
}

// regexp compiles a pattern with its parts.
func (f *ruleFile) regexp(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, errors.New("empty")
	}
	name := regexp.MustCompile(`\{[a-z_]+\}`)
	for depth := 0; name.MatchString(text); depth++ {
		var missing []string
		text = name.ReplaceAllStringFunc(text, func(s string) string {
			part, ok := f.Parts[strings.Trim(s, "{}")]
			if !ok {
				missing = append(missing, s)
			}
			return "(?:" + part + ")"
		})
		switch {
		case missing != nil:
			return nil, fmt.Errorf("no part %s", missing[0])
		case depth == maxDepth || len(text) > maxPattern:
			return nil, errors.New("its parts are too deep or too long")
		}
	}
	return regexp.Compile(text)
}

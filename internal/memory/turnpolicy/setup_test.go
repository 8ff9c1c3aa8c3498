package turnpolicy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// sharedRules are compiled once for all tests, as in a plugin.
var sharedRules = sync.OnceValues(Builtin)

// builtin returns the rules that come with the package.
func builtin(tb testing.TB) *Rules {
	tb.Helper()
	r, err := sharedRules()
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// patterns are a language's patterns of every kind, compiled.
func (l *language) patterns(tb testing.TB) (all []*pattern) {
	tb.Helper()
	if err := l.compile(); err != nil {
		tb.Fatal(err)
	}
	for _, list := range [][]pattern{l.Guards, l.Rules, l.Facts, l.Slots} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

// TestRules: the rules of the package are compiled when they are needed, so nobody else would see their mistakes. Every
// pattern matches its examples, by itself.
func TestRules(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, l := range builtin(t).languages {
		if l.Language == "" || slices.Contains(l.Words, "") {
			t.Errorf("%q: no language, or an empty word", l.Language)
		}
		for _, p := range l.patterns(t) {
			if err := p.check(l); err != nil || seen[p.ID] {
				t.Errorf("%s: %v, or the id is there twice", p.ID, err)
			}
			seen[p.ID] = true
			for _, text := range p.Says {
				folded := fold(text).text
				matches := slices.ContainsFunc(sentencesOf(text), func(s string) bool {
					_, ok := p.find(l.clauses(s))
					return ok
				})
				if p.Slot != "" {
					matches = builtin(t).Slot(text) == p.Slot
				}
				if !matches || !hasWord(folded, l.Words) {
					t.Errorf("%s does not match %q, or no word of the language does", p.ID, text)
				}
			}
		}
		for i := range l.Rules {
			if p := &l.Rules[i]; p.Confidence <= 0 || p.Confidence > 1 || !slices.Contains(Intents(), p.Intent) ||
				p.Refers != "" && (p.Intent != IntentRemember || p.Refers != refersBefore && p.Refers != refersAfter) {
				t.Errorf("%s: its confidence, intent or refers is wrong", p.ID)
			}
		}
	}
}

// check reports what is wrong with a pattern of any kind.
func (p *pattern) check(l *language) error {
	switch {
	case !strings.HasPrefix(p.ID, l.Language+"."):
		return errors.New("the id does not begin with the language")
	case p.At != "" && p.At != atStart && p.At != atClause:
		return fmt.Errorf("there is no place %q", p.At)
	case p.Category != "" && !slices.Contains(Categories(), p.Category):
		return fmt.Errorf("there is no category %q", p.Category)
	case p.Slot != "" && !slices.Contains(Slots(), p.Slot):
		return fmt.Errorf("there is no slot %q", p.Slot)
	case slices.ContainsFunc(p.Intents, func(i Intent) bool { return i != intentFact && !slices.Contains(Intents(), i) }):
		return fmt.Errorf("there is no such intent in %q", p.Intents)
	case len(p.Says) == 0:
		return errors.New("no examples")
	}
	return nil
}

// sentencesOf returns the sentences of a text as the rules see them.
func sentencesOf(text string) []string {
	text = blank(fold(text).text, "")
	var all []string
	for _, s := range sentences(text) {
		all = append(all, s.in(text))
	}
	return all
}

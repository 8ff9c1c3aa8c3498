package turnpolicy

import (
	"errors"
	"fmt"
	"iter"
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

// sureWishes are the wishes of an answer that count.
func sureWishes(a Answer) []Wish {
	return slices.DeleteFunc(slices.Clone(a.Wishes), func(w Wish) bool { return w.Confidence < DefaultThreshold })
}

// patterns are a language's patterns of every kind.
func (l *language) patterns() iter.Seq[*pattern] {
	return func(yield func(*pattern) bool) {
		for _, list := range [][]pattern{l.guards, l.rules, l.facts, l.slots} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// TestBuiltinIsValid: the rules of the package are compiled when they are needed, so
// nobody else would see their mistakes.
func TestBuiltinIsValid(t *testing.T) {
	t.Parallel()
	if err := check(builtin(t)); err != nil {
		t.Error(err)
	}
}

// check compiles everything and reports what is wrong, by rule.
func check(r *Rules) error {
	var problems []error
	seen := map[string]bool{}
	for _, lazy := range r.languages {
		l, err := lazy.compile()
		problems = append(problems, err)
		if lazy.file.Language == "" || slices.Contains(lazy.file.Words, "") {
			problems = append(problems, errors.New("no language, or an empty word"))
			continue
		}
		for p := range l.patterns() {
			if err := checkPattern(p, lazy.file, seen); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", p.ID, err))
			}
		}
		for _, p := range l.rules {
			if p.Confidence <= 0 || p.Confidence > 1 || !slices.Contains(Intents(), p.Intent) || p.Target != "" && p.Intent != IntentForget ||
				p.Refers != "" && (p.Intent != IntentRemember || p.Refers != refersBefore && p.Refers != refersAfter) {
				problems = append(problems, fmt.Errorf("%s: its confidence, intent, target or refers is wrong", p.ID))
			}
		}
	}
	return errors.Join(problems...)
}

// checkPattern reports what is wrong with a pattern of any kind. Seen are the ids before
// it.
func checkPattern(p *pattern, file *ruleFile, seen map[string]bool) error {
	known := func(i Intent) bool { return slices.Contains(Intents(), i) }
	switch {
	case !strings.HasPrefix(p.ID, file.Language+"."):
		return errors.New("the id does not begin with the language")
	case seen[p.ID]:
		return errors.New("the id is there twice")
	case p.Match == "":
		return errors.New("it has no expression")
	case p.At != "" && p.At != atStart && p.At != atClause:
		return fmt.Errorf("there is no place %q", p.At)
	case p.category != "" && !slices.Contains(Categories(), p.category):
		return fmt.Errorf("there is no category %q", p.category)
	case p.slot != "" && !slices.Contains(Slots(), p.slot):
		return fmt.Errorf("there is no slot %q", p.slot)
	case slices.ContainsFunc(p.intents, func(i Intent) bool { return i != intentFact && !known(i) }):
		return fmt.Errorf("there is no such intent in %q", p.intents)
	}
	seen[p.ID] = true
	for _, text := range p.Says {
		if !hasWord(fold(text).text, file.Words) {
			return fmt.Errorf("none of the words is in %q", text)
		}
	}
	return nil
}

func presets() []Preset { return []Preset{Normal, NoUse, NoSave, ExplicitForget} }

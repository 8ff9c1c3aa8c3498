package turnpolicy

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
)

//go:embed rules/*.json
var files embed.FS

// Rules are the rules of some languages. Make one with [Builtin] or [New] and keep
// it. Many may use it at once. The zero value knows no language.
type Rules struct {
	languages []lazyLanguage
}

// lazyLanguage is a language that is compiled when a text has one of its words.
type lazyLanguage struct {
	name    string
	words   []string
	compile func() (language, error)
}

// Builtin returns the rules that come with the package: English, German, French,
// Spanish, Chinese and Japanese. Each is compiled when the first text comes that it
// may be about, which takes some ten milliseconds.
func Builtin() (*Rules, error) {
	sub, err := fs.Sub(files, "rules")
	if err != nil {
		return nil, err
	}
	return load(sub)
}

// New returns the rules of all files *.json in the top folder of fsys, in the order
// of their names. Its error names the file and the rule, for each that is wrong.
func New(fsys fs.FS) (*Rules, error) {
	r, err := load(fsys)
	if err != nil {
		return nil, err
	}
	return r, r.check()
}

// load reads rule files and compiles none.
func load(fsys fs.FS) (*Rules, error) {
	names, err := fs.Glob(fsys, "*.json")
	if err != nil {
		return nil, err
	}
	r := &Rules{}
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		file, err := parseRuleFile(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		r.languages = append(r.languages, lazyLanguage{name, file.Words, sync.OnceValues(file.compile)})
	}
	return r, nil
}

// check compiles everything and reports what is wrong.
func (r *Rules) check() error {
	var problems []error
	seen := map[string]string{}
	for _, lazy := range r.languages {
		l, err := lazy.compile()
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", lazy.name, err))
		}
		if slices.Contains(lazy.words, "") {
			problems = append(problems, fmt.Errorf("%s: words: one is empty", lazy.name))
			continue
		}
		for p := range l.all {
			if i := slices.IndexFunc(p.Says, func(s string) bool { return !hasWord(fold(s).text, lazy.words) }); i >= 0 {
				problems = append(problems, fmt.Errorf("%s: %s: none of the words is in %q", lazy.name, p.ID, p.Says[i]))
			}
			if other, ok := seen[p.ID]; ok {
				problems = append(problems, fmt.Errorf("%s: %s is also in %s", lazy.name, p.ID, other))
			}
			seen[p.ID] = lazy.name
		}
	}
	return errors.Join(problems...)
}

// in returns what of the rules can match anywhere in a text. Languages with a mistake
// in them never get here, see New; those of the package have a test.
func (r *Rules) in(text string) []language {
	var all []language
	for _, lazy := range r.languages {
		if !hasWord(text, lazy.words) {
			continue
		}
		if l, err := lazy.compile(); err == nil {
			all = append(all, l.possible(text))
		}
	}
	return all
}

// all yields the language's patterns of every kind.
func (l language) all(yield func(pattern) bool) {
	for _, list := range [][]pattern{l.guards, l.rules, l.facts, l.slots} {
		for _, p := range list {
			if !yield(p) {
				return
			}
		}
	}
}

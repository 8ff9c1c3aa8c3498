package secret

import (
	_ "embed"
	"strings"
	"testing"
)

//go:embed testdata/said.txt
var saidSentences string

// TestSaid holds the rules to sentences in which people say a secret or talk about one; -v prints how many of each
// language are right. docs/MEMORY.md has the table.
func TestSaid(t *testing.T) {
	t.Parallel()
	scanner := New()
	lang := ""
	said, found, plain, alarms := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for line := range strings.Lines(saidSentences) {
		line = strings.TrimSpace(line)
		text, talk := strings.CutPrefix(line, "- ")
		before, rest, _ := strings.Cut(text, "⟦")
		value, after, _ := strings.Cut(rest, "⟧")
		text = before + value + after
		got := ""
		if all := scanner.Find(text); len(all) > 0 {
			got = text[all[0].Start:all[len(all)-1].End]
		}
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			lang = strings.Trim(line, "[]")
		case talk:
			if plain[lang]++; got != "" {
				alarms[lang]++
				t.Errorf("%s: %q is found in %q", lang, got, text)
			}
		default:
			said[lang]++
			if strings.TrimRight(got, ".,;:)]") == value {
				found[lang]++
			} else {
				t.Errorf("%s: %q in %q, want %q", lang, got, text, value)
			}
		}
	}
	for lang := range said {
		t.Logf("%s: %d of %d secrets found, %d alarms in %d sentences without one", lang, found[lang], said[lang], alarms[lang], plain[lang])
	}
}

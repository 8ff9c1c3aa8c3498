package publictest

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/facts/secret"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
)

func rules(t *testing.T) *turnpolicy.Rules {
	t.Helper()
	r, err := turnpolicy.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readLabels reads testdata/NAME.jsonl, by the utterance's id.
func readLabels[T any](t *testing.T, name string) map[string]T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]T{}
	for line := range bytes.Lines(text) {
		var id struct{ ID string }
		var label T
		if err := json.Unmarshal(line, &id); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(line, &label); err != nil {
			t.Fatal(err)
		}
		all[id.ID] = label
	}
	return all
}

// TestFactsFound measures the precision of what the rules take for facts: all that they find in LoCoMo and XDailyDialog
// is labelled, strictly, in found.jsonl. -v prints the figures that docs/MEMORY.md has.
func TestFactsFound(t *testing.T) {
	t.Parallel()
	r, right, found := rules(t), map[string]int{}, map[string]int{}
	labels := readLabels[struct{ Right, Wrong []string }](t, "found")
	for _, u := range utterances(t) {
		corpus, _, _ := strings.Cut(u.ID, ":")
		if u.Lang != "en" || corpus == "xpersona" {
			continue
		}
		for _, f := range r.Extract(u.Text) {
			l := labels[u.ID]
			if found[corpus]++; slices.Contains(l.Right, f.Rule) {
				right[corpus]++
			} else if !slices.Contains(l.Wrong, f.Rule) {
				t.Errorf("%s: %q (%s) is not labelled in found.jsonl", u.ID, f.Text, f.Rule)
			}
		}
	}
	for corpus, n := range found {
		t.Logf("%s: %d of %d facts are right: precision %.2f", corpus, right[corpus], n, float64(right[corpus])/float64(n))
		if 100*right[corpus] < 85*n {
			t.Errorf("%s: precision below 0.85", corpus)
		}
	}
}

// TestFactsMissed counts, of the labelled utterances that state something worth keeping, those from which the rules take
// a fact.
func TestFactsMissed(t *testing.T) {
	t.Parallel()
	r, stated, taken := rules(t), 0, 0
	labels := readLabels[struct{ Facts []int }](t, "stated")
	for _, u := range utterances(t) {
		if len(labels[u.ID].Facts) > 0 {
			if stated++; len(r.Extract(u.Text)) > 0 {
				taken++
			}
		}
	}
	t.Logf("a fact is taken from %d of the %d utterances that state one: %.2f", taken, stated, float64(taken)/float64(stated))
}

// TestNobodyWishes counts the wishes that the rules find in public dialogues, whose speakers talk to each other and wish
// nothing of a memory. It fails if a language has more than one in 5,000 utterances.
func TestNobodyWishes(t *testing.T) {
	t.Parallel()
	r, count, wrong := rules(t), map[string]int{}, map[string]int{}
	for _, u := range utterances(t) {
		count[u.Lang]++
		if wishes := r.Wishes(u.Text); len(wishes) > 0 {
			wrong[u.Lang]++
			t.Logf("%s %s: %q", u.ID, wishes[0].Rule, u.Text)
		}
	}
	for _, lang := range slices.Sorted(maps.Keys(count)) {
		t.Logf("%s: %d wishes in %d utterances", lang, wrong[lang], count[lang])
		if 5_000*wrong[lang] > count[lang] {
			t.Errorf("%s: more than one wish in 5,000 utterances", lang)
		}
	}
}

// TestNobodyTellsSecrets counts the secrets that are found in public dialogues. It fails above one in 50,000 utterances.
func TestNobodyTellsSecrets(t *testing.T) {
	t.Parallel()
	scanner, count, found := secret.New(), 0, 0
	for _, u := range utterances(t) {
		count++
		for _, f := range scanner.Find(u.Text) {
			found++
			t.Logf("%s %s %q: %q", u.ID, f.Pattern, u.Text[f.Start:f.End], u.Text)
		}
	}
	t.Logf("%d findings in %d utterances", found, count)
	if 50_000*found > count {
		t.Error("more than one finding in 50,000 utterances")
	}
}

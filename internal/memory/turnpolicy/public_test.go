package turnpolicy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/memory/publictest"
)

// labelled is an utterance of public dialogues whose sentences worth keeping are known.
type labelled struct {
	ID        string `json:"id"`
	Sentences int    `json:"sentences"` // what its labels count
	Facts     []int  `json:"facts"`     // the numbers of the sentences worth keeping, from 1
	text      string
}

// readLabelled reads testdata/extraction/NAME.jsonl and the texts of its utterances.
func readLabelled(t *testing.T, name string, texts map[string]publictest.Utterance) []labelled {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "extraction", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all []labelled
	for line := range bytes.Lines(data) {
		var l labelled
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		u, ok := texts[l.ID]
		if !ok {
			t.Fatalf("%s: no such utterance; the data is of another version than make eval-data fetches", l.ID)
		}
		l.text = u.Text
		all = append(all, l)
	}
	return all
}

// readFound reads testdata/extraction/found.jsonl: for utterances, the rules that find a fact, rightly and wrongly.
func readFound(t *testing.T) map[string][2][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "extraction", "found.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][2][]string{}
	for line := range bytes.Lines(data) {
		var l struct {
			ID           string
			Right, Wrong []string
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		all[l.ID] = [2][]string{l.Right, l.Wrong}
	}
	return all
}

// score compares the sentences that the rules take facts from with the labels, and describes the mistakes.
func (l *labelled) score(t *testing.T, r *Rules) (score, []string) {
	t.Helper()
	folded := fold(l.text)
	in := reading{source: l.text, folded: folded}
	var texts []string
	for _, s := range sentences(blank(folded.text, false)) {
		texts = append(texts, tidy(in.quote(s), MaxEvidence))
	}
	if len(texts) != l.Sentences {
		t.Fatalf("%s: %d sentences, and its labels count %d", l.ID, len(texts), l.Sentences)
	}
	found := map[int]Fact{}
	for _, f := range r.Extract(l.text) {
		if i := slices.Index(texts, f.Evidence); i >= 0 {
			found[i+1] = f
		}
	}
	var s score
	var mistakes []string
	for n := range texts {
		f, is := found[n+1]
		switch want := slices.Contains(l.Facts, n+1); {
		case is && want:
			s.right++
		case is:
			s.wrong++
			mistakes = append(mistakes, fmt.Sprintf("%s wrong (%s): %q", l.ID, f.Rule, f.Text))
		case want:
			s.missed++
			mistakes = append(mistakes, fmt.Sprintf("%s missed: %q", l.ID, texts[n]))
		}
	}
	return s, mistakes
}

// TestPublicFacts measures what the rules take for facts in English. All that they find in LoCoMo and XDailyDialog is
// labelled, strictly, in found.jsonl: precision. The 540 utterances whose sentences are labelled give the recall, of
// rules that read only openings. -v prints the table and the mistakes. It fails below what docs/MEMORY.md claims.
func TestPublicFacts(t *testing.T) {
	t.Parallel()
	texts := map[string]publictest.Utterance{}
	rules := builtin(t)
	labels := readFound(t)
	scores := map[string]score{}
	for _, u := range publictest.Load(t) {
		texts[u.ID] = u
		corpus, _, _ := strings.Cut(u.ID, ":")
		if u.Lang != "en" || corpus == "xpersona" {
			continue
		}
		s := scores[corpus]
		for _, f := range rules.Extract(u.Text) {
			switch l := labels[u.ID]; {
			case slices.Contains(l[0], f.Rule):
				s.right++
			case slices.Contains(l[1], f.Rule):
				s.wrong++
			default:
				t.Errorf("%s: %q (%s) is not labelled in found.jsonl", u.ID, f.Text, f.Rule)
			}
		}
		scores[corpus] = s
	}
	for corpus, s := range scores {
		t.Logf("%s: %d facts found, precision %.2f", corpus, s.right+s.wrong, s.precision())
		if s.precision() < 0.9 {
			t.Errorf("%s: precision %.2f, want 0.90", corpus, s.precision())
		}
	}
	for _, part := range []string{"development", "held_out"} {
		var sum score
		for _, l := range readLabelled(t, part, texts) {
			s, mistakes := l.score(t, rules)
			sum = score{sum.right + s.right, sum.wrong + s.wrong, sum.missed + s.missed}
			if part == "development" {
				for _, m := range mistakes {
					t.Log(m)
				}
			}
		}
		t.Logf("%s: %d facts, %d found, precision %.2f, recall %.2f", part, sum.right+sum.missed, sum.right+sum.wrong, sum.precision(), sum.recall())
	}
}

// TestPublicWishes counts the wishes that the rules find in public dialogues, whose speakers talk to each other and wish
// nothing of a memory; -v prints them. It fails if a language has more than one in 5,000 utterances.
func TestPublicWishes(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	count, wrong := map[string]int{}, map[string]int{}
	for _, u := range publictest.Load(t) {
		count[u.Lang]++
		if wishes := sureWishes(rules.Classify(u.Text)); len(wishes) > 0 {
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

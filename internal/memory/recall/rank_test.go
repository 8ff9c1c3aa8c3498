package recall

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// asked is when recalls are.
func asked() time.Time { return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) }

// weighted returns terms of the weight 1.
func weighted(texts ...string) []Term {
	var terms []Term
	for _, text := range texts {
		terms = append(terms, Term{Text: text, Weight: 1})
	}
	return terms
}

// item returns a candidate of four terms that has some of them once.
func item(id string, terms ...string) Candidate {
	c := Candidate{ID: id, Text: "text of " + id, Length: 4, Counts: map[string]int{}}
	for _, t := range terms {
		c.Counts[t]++
	}
	return c
}

// ids returns the ids of what was ranked.
func ids(ranked []Scored) []string {
	var all []string
	for _, r := range ranked {
		all = append(all, r.ID)
	}
	return all
}

func TestRank(t *testing.T) {
	t.Parallel()
	now := asked()
	with := func(c Candidate, change func(*Candidate)) Candidate {
		change(&c)
		return c
	}
	for _, c := range []struct {
		name       string
		candidates []Candidate
		want       []string
	}{
		{"nothing", nil, nil},
		{"more terms are better, none is out", []Candidate{item("a"), item("b", "x"), item("c", "x", "y")}, []string{"c", "b"}},
		{"ids decide between equals", []Candidate{item("b", "x"), item("c", "x"), item("a", "x")}, []string{"a", "b", "c"}},
		{"a shorter item is better", []Candidate{
			with(item("a", "x"), func(c *Candidate) { c.Length = 9 }), item("b", "x"),
		}, []string{"b", "a"}},
		{"a term twice is better", []Candidate{item("a", "x"), item("b", "x", "x")}, []string{"b", "a"}},
		{"pinned items come first and without terms", []Candidate{
			item("a", "x", "y"), with(item("c"), func(c *Candidate) { c.Pinned = true }),
			with(item("b"), func(c *Candidate) { c.Pinned = true }),
			with(item("d", "x"), func(c *Candidate) { c.Pinned = true }),
		}, []string{"d", "b", "c", "a"}},
		{"the newer is better", []Candidate{
			with(item("a", "x"), func(c *Candidate) { c.UpdatedAt = now.AddDate(0, -8, 0) }),
			with(item("b", "x"), func(c *Candidate) { c.UpdatedAt = now.AddDate(0, -1, 0) }),
		}, []string{"b", "a"}},
		{"the more used is better", []Candidate{
			with(item("a", "x"), func(c *Candidate) { c.Uses, c.LastUsedAt = 1, now }),
			with(item("b", "x"), func(c *Candidate) { c.Uses, c.LastUsedAt = 5, now }),
		}, []string{"b", "a"}},
		{"neither makes up for a term", []Candidate{
			with(item("a", "x"), func(c *Candidate) { c.Uses, c.LastUsedAt, c.UpdatedAt = 99, now, now }),
			item("b", "x", "y"),
		}, []string{"b", "a"}},
		{"one id comes once", []Candidate{item("a", "x"), item("a", "x", "y")}, []string{"a"}},
		{"damaged counts", []Candidate{
			with(item("a", "x"), func(c *Candidate) { c.Counts["x"], c.Length, c.Uses = -1, -1, -1 }),
			with(item("b", "x"), func(c *Candidate) { c.Length, c.Uses = -1, -1 }),
		}, []string{"b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := ids(Rank(weighted("x", "y"), Stats{Docs: 10, AvgLen: 4}, c.candidates, now))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestScore(t *testing.T) {
	t.Parallel()
	terms := []Term{{Text: "x", Weight: 1}, {Text: "please", Weight: 0.25, Talk: true}}
	got := Rank(terms, Stats{AvgLen: 4}, []Candidate{item("a", "x", "please")}, asked())[0]
	if got.Score != 1.25 || got.Evidence != 1 {
		t.Errorf("score %v and evidence %v, want 1.25 and 1", got.Score, got.Evidence)
	}
	// One rare term and all that recency and use can add.
	best := item("a", "x")
	best.UpdatedAt, best.LastUsedAt, best.Uses = asked(), asked(), manyUses
	if got := Rank(terms, Stats{AvgLen: 4}, []Candidate{best}, asked())[0]; got.Score != 1.3 {
		t.Errorf("score %v, want 1.3", got.Score)
	}
}

// TestLead: of two items the one that begins with a term is better, unless the term is talk.
func TestLead(t *testing.T) {
	t.Parallel()
	a, b := item("a", "anna", "the"), item("b", "anna", "the")
	a.Text, b.Text = "The house of Anna", "Anna, of the house"
	if got := ids(Rank(weighted("anna"), Stats{AvgLen: 4}, []Candidate{a, b}, asked())); got[0] != "b" {
		t.Errorf("by her name: %q", got)
	}
	if got := Rank([]Term{{Text: "the", Weight: 1, Talk: true}}, Stats{AvgLen: 4}, []Candidate{a, b}, asked()); got[0].Score != got[1].Score {
		t.Errorf("by a word of talk: %v, %v", got[0].Score, got[1].Score)
	}
}

package merge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

func contextOf(id, content string, maxChars int) *phases.PromptContext {
	return &phases.PromptContext{Common: own(id, 0), Content: content, MaxChars: maxChars}
}

// entries lists contexts as "id of owner: length" and what cut them.
func entries(list []phases.ContextEntry) []string {
	var out []string
	for _, e := range list {
		line := fmt.Sprintf("%s of %s: %d", e.ContributionID, e.Owner, text.Chars(e.Content))
		if e.Truncation != nil {
			line += fmt.Sprintf(" %s %d/%d", e.Truncation.Limit, e.Truncation.Kept, e.Truncation.Original)
		}
		out = append(out, line)
	}
	return out
}

func TestContexts(t *testing.T) {
	t.Parallel()

	budget := with(ranked("b.h", 5), func(h *merge.Hook) { h.Budget.Chars = 150 })
	tests := []struct {
		name    string
		turn    []phases.ContextEntry
		limits  merge.Limits
		replies []gave
		want    []string
		turns   []string // the turn's set, if it is not the dispatch's
		omitted []string
	}{
		{
			name: "by rank", replies: []gave{
				by(ranked("a.h", 1), contextOf("x", "1", 0), prio(contextOf("y", "22", 0), 3)), by(ranked("b.h", 2), contextOf("z", "333", 0)),
			},
			want: []string{"z of b.h: 3", "y of a.h: 2", "x of a.h: 1"},
		},
		{
			name: "count", limits: merge.Limits{Contexts: 1}, replies: []gave{by(ranked("a.h", 1), contextOf("x", "1", 0)), by(ranked("b.h", 2), contextOf("z", "333", 0))},
			want: []string{"z of b.h: 3"}, omitted: []string{"x of a: budget"},
		},
		{
			name: "limits", limits: merge.Limits{ContextChars: 400}, replies: []gave{
				by(ranked("a.h", 9), contextOf("own", chars(500), 100)), by(budget, contextOf("sub", chars(500), 0)),
				by(hook("c.h"), contextOf("rest", chars(500), 0), contextOf("none", chars(60), 0), contextOf("blank", "\n", 0)),
			},
			want:    []string{"own of a.h: 99 contribution 60/500", "sub of b.h: 150 subscription 110/500", "rest of c.h: 151 total 111/500"},
			omitted: []string{"none of c: budget", "blank of c: blank"},
		},
		{
			name: "a smaller one may follow one that does not fit", limits: merge.Limits{ContextChars: 20}, replies: []gave{by(hook("a.h"), contextOf("big", chars(50), 0), contextOf("small", chars(20), 0))},
			want: []string{"small of a.h: 20"}, omitted: []string{"big of a: budget"},
		},
		{
			name: "later replaces in one dispatch", replies: []gave{
				by(ranked("a.one", 9), contextOf("x", "1", 0)), by(ranked("a.two", 1), contextOf("x", "22", 0)), by(hook("b.h"), contextOf("x", "333", 0)),
			},
			want: []string{"x of a.two: 2", "x of b.h: 3"}, omitted: []string{"x of a: replaced"},
		},
		{
			name: "totals of the turn", limits: merge.Limits{ContextChars: 100, Contexts: 3},
			turn:    []phases.ContextEntry{{ContributionID: "x", Owner: "a.h", Content: chars(60), Priority: 1}, {ContributionID: "y", Owner: "b.h", Content: chars(40), Priority: 3}},
			replies: []gave{by(ranked("a.other", 2), contextOf("x", chars(50), 0), contextOf("z", chars(10), 0), contextOf("w", "1", 0))},
			want:    []string{"x of a.other: 50", "z of a.other: 10"},
			turns:   []string{"y of b.h: 40", "x of a.other: 50", "z of a.other: 10"},
			omitted: []string{"w of a: budget"},
		},
		{
			name: "what was taken back is gone", limits: merge.Limits{ContextChars: 50},
			turn:    []phases.ContextEntry{{ContributionID: "x", Owner: "a.h", Content: chars(40)}},
			replies: []gave{by(hook("a.h"), contextOf("x", chars(400), 20))},
			omitted: []string{"x of a: budget"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got := merge.Merge(anyRow(), admitted(t, tt.replies), merge.State{Contexts: tt.turn}, tt.limits)
			checkSame(t, "contexts", entries(got.Merged.Contexts), tt.want)
			if tt.turns == nil {
				tt.turns = tt.want
			}
			checkSame(t, "the turn's set", entries(got.Contexts), tt.turns)
			checkSame(t, "omitted", omitted(got), tt.omitted)
		})
	}
}

// TestContextsAndSectionsShareABudget: what a subscription's contexts use is
// not there for its sections.
func TestContextsAndSectionsShareABudget(t *testing.T) {
	t.Parallel()

	h := with(hook("a.h"), func(h *merge.Hook) { h.Budget.Chars = 1000 })
	got := merged(from(t, h, section("s", chars(700)), contextOf("x", chars(600), 0)))
	checkSame(t, "sections", truncations(got), []string{"s subscription 360/700"})
	if n := text.Chars(got.Merged.Sections[0].Content) + 600; n > 1000 || strings.Count(got.Merged.Sections[0].Content, "x") != 360 {
		t.Errorf("%d characters kept of a budget of 1000", n)
	}
}

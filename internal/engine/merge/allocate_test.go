package merge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/phases"
)

func TestSectionLimits(t *testing.T) {
	t.Parallel()

	budget := func(n int) *merge.Hook {
		return with(hook("a.h"), func(h *merge.Hook) { h.Budget.Chars = n })
	}
	// A marker for 1,000 characters takes 44 at its widest, newline included.
	const marker = 44
	tests := []struct {
		name   string
		hook   *merge.Hook
		limits merge.Limits
		give   []phases.Contribution
		want   []string
	}{
		{"whole", hook("a.h"), merge.Limits{}, []phases.Contribution{section("s", chars(1000))}, []string{"s whole"}},
		{"exactly", budget(1000), merge.Limits{SectionChars: 1000, TotalChars: 1000}, []phases.Contribution{capped("s", chars(1000), 1000)}, []string{"s whole"}},
		{"contribution", hook("a.h"), merge.Limits{}, []phases.Contribution{capped("s", chars(1000), 500)}, []string{"s contribution 456/1000"}},
		{"subscription", budget(500), merge.Limits{}, []phases.Contribution{section("s", chars(1000))}, []string{"s subscription 456/1000"}},
		{"section", hook("a.h"), merge.Limits{SectionChars: 500}, []phases.Contribution{section("s", chars(1000))}, []string{"s section 456/1000"}},
		{"total", hook("a.h"), merge.Limits{TotalChars: 500}, []phases.Contribution{section("s", chars(1000))}, []string{"s total 456/1000"}},
		{"tie of all", budget(500), merge.Limits{SectionChars: 500, TotalChars: 500}, []phases.Contribution{capped("s", chars(1000), 500)}, []string{"s contribution 456/1000"}},
		{"tie of two", hook("a.h"), merge.Limits{SectionChars: 500, TotalChars: 500}, []phases.Contribution{section("s", chars(1000))}, []string{"s section 456/1000"}},
		{"budget over two sections", budget(1500), merge.Limits{}, []phases.Contribution{section("s", chars(1000)), section("t", chars(1000))}, []string{"s whole", "t subscription 456/1000"}},
		{
			"last fragment first", hook("a.h"),
			merge.Limits{SectionChars: 1500},
			[]phases.Contribution{section("s", chars(1000)), section("s", chars(1000))},
			[]string{"s section 1458/2002"},
		},
		{
			"floors before fullness", hook("a.h"),
			merge.Limits{TotalChars: 1600},
			[]phases.Contribution{section("s", chars(1000)), section("t", chars(1000))},
			[]string{"s whole", fmt.Sprintf("t total %d/1000", 600-marker)},
		},
		{
			"floors when all is short", hook("a.h"),
			merge.Limits{TotalChars: 1024},
			[]phases.Contribution{section("s", chars(1000)), section("t", chars(1000))},
			[]string{"s total 468/1000", "t total 468/1000"},
		},
		{"no section", hook("a.h"), merge.Limits{Sections: -1}, []phases.Contribution{section("s", "x")}, nil},
		{"no room", hook("a.h"), merge.Limits{TotalChars: -1}, []phases.Contribution{section("s", "x")}, nil},
		{"newline", hook("a.h"), merge.Limits{}, []phases.Contribution{capped("s", chars(300)+"\n"+chars(699), 500)}, []string{"s contribution 300/1000"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got := merge.Merge(anyRow(), []merge.Reply{from(t, tt.hook, tt.give...)}, merge.State{}, tt.limits)
			checkSame(t, "sections", truncations(got), tt.want)
		})
	}
}

// TestLimitOfSeveralFragments: the limit that took the most stands for the
// section; of equal ones the first in the order that limits have.
func TestLimitOfSeveralFragments(t *testing.T) {
	t.Parallel()

	for maxChars, want := range map[int]string{
		499: "s contribution 913/2002", // the second lost more
		500: "s contribution 914/2002",
		501: "s subscription 915/2002", // the first lost more
	} {
		first := with(ranked("a.one", 1), func(h *merge.Hook) { h.Budget.Chars = 500 })
		got := merged(from(t, first, section("s", chars(1000))), from(t, hook("a.two"), capped("s", chars(1000), maxChars)))
		checkSame(t, "section", truncations(got), []string{want})
	}
}

func TestSectionTokens(t *testing.T) {
	t.Parallel()

	words := func(s string) int { return len(strings.Fields(s)) }
	h := with(hook("a.h"), func(h *merge.Hook) { h.Budget = phases.TextBudget{Chars: 5000, Tokens: 30} })
	reply := from(t, h, section("s", strings.Repeat("word ", 20)), section("t", strings.Repeat("word ", 200)), section("u", "word"))

	got := merge.Merge(anyRow(), []merge.Reply{reply}, merge.State{}, merge.Limits{CountTokens: words})
	if len(got.Merged.Sections) != 2 {
		t.Fatalf("sections = %v, omitted %v; want s and a part of t", truncations(got), omitted(got))
	}
	first, second := got.Merged.Sections[0], got.Merged.Sections[1]
	if first.Truncation != nil || second.Truncation == nil || second.Truncation.Limit != phases.LimitSubscription {
		t.Errorf("truncations = %v, want the second cut by the subscription", truncations(got))
	}
	if n := words(first.Content) + words(second.Content); n > 30 || n < 29 {
		t.Errorf("%d tokens kept of a budget of 30", n)
	}
	if got = merged(reply); len(got.Merged.Sections) != 3 {
		t.Errorf("without a counter: %v, want all", truncations(got))
	}
}

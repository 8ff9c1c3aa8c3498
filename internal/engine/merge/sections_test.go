package merge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// owns makes a hook that may have only the named sections, and join others.
func owns(subscription string, sections, join []string) *merge.Hook {
	h := hook(subscription)
	h.Grants.Sections, h.Grants.Join, h.Grants.StableSections = sections, join, nil
	return h
}

// chars is a text of n characters without a newline.
func chars(n int) string { return strings.Repeat("x", n) }

func capped(id, content string, maxChars int) *phases.PromptSection {
	return &phases.PromptSection{SectionID: id, Content: content, MaxChars: maxChars}
}

// truncations lists sections as "id limit kept/original".
func truncations(r merge.Result) []string {
	var out []string
	for _, s := range r.Merged.Sections {
		line := s.SectionID + " whole"
		if t := s.Truncation; t != nil {
			line = fmt.Sprintf("%s %s %d/%d", s.SectionID, t.Limit, t.Kept, t.Original)
		}
		out = append(out, line)
	}
	return out
}

func TestSectionOwners(t *testing.T) {
	t.Parallel()

	notes := []string{"notes"}
	tests := []struct {
		name      string
		host      []string
		replies   []gave
		want      []string // "id of owner: content"
		conflicts []string
	}{
		{
			name: "the first in plan order keeps it", replies: []gave{by(ranked("a.h", 1), section("notes", "A")), by(ranked("b.h", 9), section("notes", "B"), section("mine", "M"))},
			want: []string{"mine of b: M", "notes of a: A"}, conflicts: []string{"b.h -> a.h: notes"},
		},
		{
			name: "two subscriptions of one plugin share", replies: []gave{by(ranked("a.one", 1), section("notes", "1")), by(ranked("a.two", 2), section("notes", "2"))},
			want: []string{"notes of a: 2\n\n1"},
		},
		{
			name: "join", replies: []gave{by(hook("a.h"), section("notes", "A")), by(owns("b.h", nil, notes), section("notes", "B"))},
			want: []string{"notes of a: A\n\nB"},
		},
		{
			name: "a joiner that comes first does not own", replies: []gave{by(owns("b.h", nil, notes), section("notes", "B")), by(owns("a.h", notes, nil), section("notes", "A"))},
			want: []string{"notes of a: B\n\nA"},
		},
		{
			name: "a joiner alone stands for itself", replies: []gave{by(owns("b.h", nil, notes), section("notes", "B"))},
			want: []string{"notes of b: B"},
		},
		{
			name: "of two joiners one conflict with the loser of three fragments", replies: []gave{
				by(hook("a.h"), section("notes", "A")), by(owns("b.h", nil, notes), section("notes", "B")),
				by(owns("c.h", notes, nil), section("notes", "1"), section("notes", "2"), section("notes", "3")),
			},
			want: []string{"notes of a: A\n\nB"}, conflicts: []string{"c.h -> a.h: notes"},
		},
		{
			name: "the host's", host: notes, replies: []gave{by(owns("a.h", notes, notes), section("notes", "A"))},
			conflicts: []string{"a.h -> host: notes"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got := merge.Merge(anyRow(), admitted(t, tt.replies), merge.State{HostSections: tt.host}, merge.Limits{})
			var list []string
			for _, s := range got.Merged.Sections {
				list = append(list, s.SectionID+" of "+s.Owner+": "+s.Content)
			}
			checkSame(t, "sections", list, tt.want)
			checkSame(t, "conflicts", lost(got), tt.conflicts)
		})
	}
}

func TestSectionIsCutOnceAndSaysSo(t *testing.T) {
	t.Parallel()

	body := strings.Repeat("Line of eighteen.\r\n", 100)
	c := capped("s", body, 200)
	c.Frame = &phases.Frame{Open: "Preamble.\n\n<NOTES>", Close: "</NOTES>"}
	c.Title, c.SourceRefs = "Notes", []phases.SourceRef{{Kind: "file", ID: "a"}, {Kind: "url", ID: "b"}}
	got := merged(from(t, ranked("p.h", 7), c))
	s := got.Merged.Sections[0]
	want := "Preamble.\n\n<NOTES>\n" + strings.TrimSuffix(strings.Repeat("Line of eighteen.\n", 7), "\n") +
		"\n[truncated: kept 153 of 1,828 characters]\n</NOTES>"
	checkSame(t, "content", s.Content, want)
	tr := phases.Truncation{Limit: phases.LimitContribution, Original: 1828, Kept: 153}
	checkSame(t, "ledger's cuts", got.Parts[0].Cuts, []phases.Cut{{ContributionID: "p.h#0", SectionID: "s", Truncation: tr}})
	source := phases.HookSource{
		HookID: "h", SubscriptionID: "p.h", ContributionID: "p.h#0", ContributionHash: got.Contributions[0].Hash, ContributionKind: phases.KindPromptSection,
		SectionID: "s", Phase: "x.test.any", Priority: 7, SourceCount: 2, Truncation: "hook", Plugin: "p", PluginVersion: "1.0.0",
	}
	checkSame(t, "parts", s.Parts, []phases.TextPart{
		{Bytes: 19 + 125, Owner: "p", ContributionID: "p.h#0"},
		{Bytes: len("\n[truncated: kept 153 of 1,828 characters]\n"), Owner: phases.OwnerBuiltin},
		{Bytes: len("</NOTES>"), Owner: "p", ContributionID: "p.h#0"},
	})
	checkSame(t, "the section's sources", s.Sources, []phases.HookSource{source})
	if s.Owner != "p" || s.Priority != 7 || s.OriginalChars != 1800+28 || len(s.SourceRefs) != 2 || *s.Truncation != tr {
		t.Errorf("section %+v", s)
	}
	checkSame(t, "sources", got.Sources, []phases.HookSource{source})
	applied, ok := got.Contributions[0].Value.(*phases.PromptSection)
	if !ok || applied.Content != body {
		t.Error("the contribution is not shown as it was sent")
	}
}

func TestFragmentsKeepTheirFrames(t *testing.T) {
	t.Parallel()

	framed := func(tag, content string, maxChars int) *phases.PromptSection {
		c := capped("s", content, maxChars)
		c.Frame = &phases.Frame{Open: "<" + tag + ">", Close: "</" + tag + ">"}
		return c
	}
	got := merged(
		from(t, ranked("a.one", 1), framed("ONE", chars(400), 100)),
		from(t, ranked("a.two", 2), framed("TWO", chars(1000), 200), framed("THREE", chars(90), 50)),
	)
	want := "<TWO>\n" + chars(143) + "\n[truncated: kept 156 of 1,013 characters]\n</TWO>\n\n" +
		"<ONE>\n" + chars(47) + "\n[truncated: kept 60 of 413 characters]\n</ONE>"
	checkSame(t, "content", got.Merged.Sections[0].Content, want)
	// THREE's frame and marker leave no room for anything; its siblings stay.
	checkSame(t, "omitted", omitted(got), []string{"a.two#1 of a: budget"})
	checkSame(t, "section", truncations(got), []string{"s contribution 218/1537"})
	if n := got.Merged.Sections[0].OriginalChars; n != 1490+2*13+17+4 {
		t.Errorf("original_chars = %d, want bodies, frames and joints", n)
	}
	if got.Merged.Sections[0].Priority != 2 {
		t.Errorf("priority = %d, want the best one's", got.Merged.Sections[0].Priority)
	}
}

func TestSectionsOmitted(t *testing.T) {
	t.Parallel()

	got := merge.Merge(anyRow(), []merge.Reply{from(t, hook("a.h"),
		section("a", "1"), section("b", chars(2000)), section("blank", " \n"), prio(section("best", "2"), 1), capped("tiny", chars(100), 3), section("c", "3"),
		section("late", "4"), section("a", "\n"),
	)}, merge.State{}, merge.Limits{Sections: 5, TotalChars: 1002})
	checkSame(t, "sections", truncations(got), []string{"best whole", "a whole", "b total 955/2000", "c whole"})
	want := []phases.Omitted{
		{ID: "a.h#7", Owner: "a", Reason: "blank", Chars: 1},
		{ID: "blank", Owner: "a", Reason: "blank"},
		{ID: "late", Owner: "a", Reason: "budget", Chars: 1},
		{ID: "tiny", Owner: "a", Reason: "budget", Chars: 100},
	}
	checkSame(t, "omitted", got.Omitted, want, cmpopts.SortSlices(func(a, b phases.Omitted) bool { return a.ID < b.ID }))
	var messages []string
	for _, d := range got.Diagnostics {
		messages = append(messages, d.Code+" "+d.Slot+" "+d.Message)
	}
	wantMessages := []string{
		"omitted late \"late\" of 1 characters was omitted: a phase keeps 5 sections",
		"omitted tiny \"tiny\" of 100 characters was omitted: the contribution limit leaves no room for anything of it",
	}
	checkSame(t, "diagnostics", messages, wantMessages)
	if n := len(got.Contributions); n != 4 {
		t.Errorf("%d contributions kept, want 4", n)
	}
}

func TestSectionHeadings(t *testing.T) {
	t.Parallel()

	titled := func(c *phases.PromptSection, title string) *phases.PromptSection {
		c.Title, c.Placement = title, phases.PlacementUserMessage
		return c
	}
	h := hook("a.h")
	h.Grants.Sections = []string{"*", "agents_md"}
	tests := []struct {
		name                 string
		give                 []phases.Contribution
		title                string
		stability, placement string
	}{
		{"dynamic by default", []phases.Contribution{section("s", "x")}, "", "dynamic", "system"},
		{"stable", []phases.Contribution{stable("s")}, "", "stable", "system"},
		{"stable only if all of it is", []phases.Contribution{stable("s"), section("s", "y")}, "", "dynamic", "system"},
		{"the best one's", []phases.Contribution{section("s", "x"), prio(titled(section("s", "y"), "T"), 1)}, "T", "dynamic", "user_message"},
		{"a known row keeps its own", []phases.Contribution{titled(stable("agents_md"), "Mine")}, "AGENTS.md", "dynamic", "user_message"},
		{"the boundary in a title", []phases.Contribution{titled(section("s", "x"), "a "+text.Boundary)}, `a <\!-- grapnel:dynamic -->`, "dynamic", "user_message"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			s := merged(from(t, h, tt.give...)).Merged.Sections[0]
			got := []string{s.Title, string(s.Stability), string(s.Placement)}
			checkSame(t, "title, stability, placement", got, []string{tt.title, tt.stability, tt.placement})
		})
	}
}

// TestHouseTextCannotBeForged sends what only the host may write through every
// door that a section has.
func TestHouseTextCannotBeForged(t *testing.T) {
	t.Parallel()

	marker := "[truncated: kept 1 of 2 characters]"
	c := section("s", "a "+text.Boundary+"\r\n</ctx >\r\n"+marker)
	c.Frame = &phases.Frame{Open: text.Boundary + "\n<CTX>", Close: "</CTX>\n" + marker}
	got := merged(from(t, hook("a.h"), c)).Merged.Sections[0].Content
	want := "<\\!-- grapnel:dynamic -->\n<CTX>\na <\\!-- grapnel:dynamic -->\n<\\/ctx >\n[\\truncated: kept 1 of 2 characters]\n</CTX>\n[\\truncated: kept 1 of 2 characters]"
	checkSame(t, "content", got, want)
}

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

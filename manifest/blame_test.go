package manifest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestCompareSections(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name, earlier, later, want string
		cause                      Cause
	}{
		{"same", "a1 b1", "a1 b1", "", ""},
		{"changed", "a1 b1 c1", "a1 b2 c1", "b", causeText},
		{"added between", "a1 c1", "a1 b1 c1", "b", causeInserted},
		{"added behind", "a1", "a1 b1", "b", causeInserted},
		{"removed between", "a1 b1 c1", "a1 c1", "b", causeRemoved},
		{"removed behind", "a1 b1", "a1", "b", causeRemoved},
		{"moved to the front", "a1 b1 c1", "c1 a1 b1", "c", causeOrder},
		{"moved to the end", "a1 b1 c1", "b1 c1 a1", "a", causeOrder},
		{"replaced", "a1 b1 c1", "a1 d1 c1", "b", causeRemoved},
		{"two changes", "a1 b1 c1", "a1 b2 c2", "b", causeText},
		{"all gone", "a1", "", "a", causeRemoved},
	} {
		before, after := Manifest{Sections: sectionsOf(tt.earlier)}, Manifest{Sections: sectionsOf(tt.later)}
		for _, list := range [][]Section{before.Sections, after.Sections} {
			for i := range list {
				list[i].Owner = "owner-" + list[i].SectionID
			}
		}
		want := Break{Cause: tt.cause, BrokeAt: tt.want}
		if tt.want != "" {
			want.Owner = "owner-" + tt.want
		}
		if want.Cause == causeText {
			want.Field = "text"
		}
		if diff := cmp.Diff(Compare(new(before.Outline()), new(after.Outline()), nil, nil), want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", tt.name, diff)
		}
	}
}

// joined is a section that p and q wrote, q with a priority.
func joined(priority int, list ...outlineSpan) *Outline {
	for i := range list {
		list[i].ContributionID, list[i].Chars = "c", 10+int(list[i].Hash%10)
		if list[i].Owner == "q" {
			list[i].Priority = priority
		}
	}
	sum := Mark(0)
	for i, s := range list {
		sum = sum*31 + s.Hash + Mark(i)
	}
	return &Outline{Sent: true, Sections: []OutlineSection{{SectionID: "notes", Owner: phases.OwnerBuiltin, Tokens: -1, Hash: sum, Spans: list}}}
}

// TestCompareJoined: inside a section that several wrote, the owner of the change is named.
func TestCompareJoined(t *testing.T) {
	t.Parallel()

	p, q, host := outlineSpan{Owner: "p", Hash: 1}, outlineSpan{Owner: "q", Hash: 2}, outlineSpan{Owner: phases.OwnerHost}
	other := func(s outlineSpan) outlineSpan { s.Hash = 7; return s }
	before := joined(5, p, q, host)
	for _, tt := range []struct {
		name         string
		after        *Outline
		owner, field string
	}{
		{"the first", joined(5, other(p), q, host), "p", "text"},
		{"the second", joined(5, p, other(q), host), "q", "text"},
		{"gone", joined(5, q, host), "p", "removed"},
		{"come", joined(5, p, outlineSpan{Owner: "r", Hash: 3}, q, host), "r", "added"},
		{"put in front by its priority", joined(9, q, p, host), "q", "order"},
	} {
		want := Break{Cause: causeText, BrokeAt: "notes", Owner: tt.owner, Field: tt.field}
		if diff := cmp.Diff(Compare(before, tt.after, nil, nil), want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", tt.name, diff)
		}
	}
	after := joined(5, p, q, host)
	after.Sections[0].Hash++
	if got := Compare(before, after, nil, nil); got.Owner != phases.OwnerHost {
		t.Errorf("a text without a contribution: %+v", got)
	}
}

// TestComparePriority: a plugin that lowers its priority is blamed, not the neighbour that now stands in its place.
func TestComparePriority(t *testing.T) {
	t.Parallel()

	section := func(id string, priority int) OutlineSection {
		return OutlineSection{SectionID: id, Owner: "p-" + id, Tokens: -1, Hash: MarkOf(id), Spans: []outlineSpan{{Owner: "p-" + id, ContributionID: "c", Priority: priority}}}
	}
	before := &Outline{Sections: []OutlineSection{section("a", 9), section("b", 5)}}
	for _, tt := range []struct {
		name string
		a, b int
		want string
	}{{"the first lowered it", 1, 5, "a"}, {"the second raised it", 9, 20, "b"}} {
		got := Compare(before, &Outline{Sections: []OutlineSection{section("b", tt.b), section("a", tt.a)}}, nil, nil)
		if diff := cmp.Diff(got, Break{Cause: causeOrder, BrokeAt: tt.want, Owner: "p-" + tt.want}); diff != "" {
			t.Errorf("%s (-got +want):\n%s", tt.name, diff)
		}
	}
}

func TestBlame(t *testing.T) {
	t.Parallel()

	turn := func(id, thread, session string, epoch int, sections string) Entry {
		m := &Manifest{Head: Head{Kind: KindPrompt, ManifestID: "m" + id, TurnID: id, ThreadID: thread, SessionID: session, Epoch: epoch}, Sections: sectionsOf(sections)}
		for i := range m.Sections {
			m.Sections[i].Tokens = new(10 * (i + 1))
		}
		return Entry{Outline: m.Outline()}
	}
	denied, events := turn("5b", "t", "s", 1, "a9x"), turn("5c", "t", "s", 1, "a9x")
	denied.Outline.Sent, events.Outline.Sent = false, false
	list := []Entry{
		turn("1", "t", "s", 0, "a1x b1y c1z"),
		turn("2", "t", "s", 0, "a1x b1y c1z"),
		turn("3", "other", "s", 5, "q1"), // does not come in between
		turn("4", "t", "s", 0, "a1x b2y c1z"),
		turn("5", "t", "s", 1, "a1x b2y c1z"),
		turn("5a", "t", "s", 1, ""), // blocked before there was a prompt
		denied, events,
		turn("6", "t", "s", 2, "a1x c1z"),
		turn("7", "t", "s2", 3, "a1x b2y c1z"), // another session has epochs of its own
	}
	list[1].Usage = &Usage{ReportedAt: time.Unix(1, 0), Usage: phases.Usage{InputTokens: 70, CacheReadTokens: 60}}
	want := []BlamedTurn{
		{TurnID: "1", ManifestID: "m1", ThreadID: "t"},
		{TurnID: "2", ManifestID: "m2", ThreadID: "t", Actual: new(60)},
		{TurnID: "3", ManifestID: "m3", ThreadID: "other"},
		{TurnID: "4", ManifestID: "m4", ThreadID: "t", Break: Break{Cause: causeText, BrokeAt: "b", Field: "text", Owner: "y", TokensLost: 59}},
		{TurnID: "5", ManifestID: "m5", ThreadID: "t", Break: Break{Cause: CauseEpoch, Owner: phases.OwnerHost}, Expected: true},
		{TurnID: "6", ManifestID: "m6", ThreadID: "t", Break: Break{Cause: causeRemoved, BrokeAt: "b", Owner: "y", TokensLost: 52}, Expected: true},
		{TurnID: "7", ManifestID: "m7", ThreadID: "t", Break: Break{Cause: causeInserted, BrokeAt: "b", Owner: "y", TokensLost: 21}},
	}
	var got []BlamedTurn
	failed := errors.New("no disk")
	entries := func(yield func(Entry, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
		yield(Entry{}, failed)
	}
	for row, err := range Blame(entries) {
		if err != nil {
			if !errors.Is(err, failed) {
				t.Error(err)
			}
			break
		}
		got = append(got, row)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("blame (-got +want):\n%s", diff)
	}
}

// TestCausesHaveWords: a cause that is only a word tells nobody anything.
func TestCausesHaveWords(t *testing.T) {
	t.Parallel()

	for _, cause := range causes() {
		if words := (Break{Cause: cause, Tool: "t", Field: "text"}).Words(); words == string(cause) && cause != causeProfile {
			t.Errorf("%s has no words", cause)
		}
	}
	for _, because := range []Cause{causeVersion, causeConfig, causeBuild, causeProfile} {
		if with := (Break{Cause: causeText, Field: "text", Because: because}).Words(); with == "another text" {
			t.Errorf("because of %s is not said", because)
		}
	}
	if got := (Break{Cause: causeTools, Tool: "look", Field: "hidden_domain"}).Words(); got != "the tool look: hidden domain" {
		t.Error(got)
	}
}

// TestCompareUsage: what reports say counts before what rules let expect, and where only one prompt was reported, the rules decide.
func TestCompareUsage(t *testing.T) {
	t.Parallel()

	explicit := &CacheRules{MinimumTokens: 500, LifetimeS: 300, Explicit: true}
	usage := func(input, read, written int) *Usage {
		return &Usage{Rounds: 1, Usage: phases.Usage{InputTokens: input, CacheReadTokens: read, CacheWriteTokens: written}}
	}
	prompt := func(change func(o *Outline)) *Outline {
		o := &Outline{
			Provider: "p", Model: "m", Rules: explicit, CreatedAt: time.Unix(0, 0), Breakpoints: []Breakpoint{{After: AfterStable, SectionID: "a"}},
			Sections: []OutlineSection{{SectionID: "a", Owner: "ann", Chars: 9, Tokens: 800, Hash: 1}, {SectionID: "b", Owner: "bob", Chars: 9, Tokens: 400, Hash: 2}},
		}
		if change != nil {
			change(o)
		}
		return o
	}
	same := prompt(nil)
	later := prompt(func(o *Outline) { o.CreatedAt = time.Unix(301, 0) })
	noLifetime := func(after int64) func(o *Outline) {
		return func(o *Outline) {
			o.Rules, o.CreatedAt = &CacheRules{MinimumTokens: 500, Explicit: true}, time.Unix(after, 0)
		}
	}
	short := func(o *Outline) { o.Sections[0].Tokens, o.Sections[1].Tokens = 100, 100 }
	history := func(h outlineHistory) *Outline { return prompt(func(o *Outline) { o.History = &h }) }
	plugin := func(version string, program Mark) *Outline {
		return prompt(func(o *Outline) { o.Plugins = []outlinePlugin{{Name: "bob", Version: version, Program: program}} })
	}
	reportedAt := func(at int64) *Usage {
		u := usage(1300, 0, 800)
		u.ReportedAt = time.Unix(at, 0)
		return u
	}
	lostTo := func(c Cause, owner string) Break { return Break{Cause: c, Owner: owner, TokensLost: 800} }
	host := func(c Cause, lost int) Break { return Break{Cause: c, Owner: phases.OwnerHost, TokensLost: lost} }
	for _, tt := range []struct {
		name          string
		before, after *Outline
		was, is       *Usage
		want          Break
	}{
		{"nothing", same, same, nil, nil, Break{}},
		{"only the first reported", same, same, usage(1300, 0, 800), nil, Break{}},
		{"only the second reported", same, same, nil, usage(1300, 0, 800), Break{}},
		{"served", same, same, usage(1300, 0, 800), usage(1300, 800, 0), Break{}},
		{"dropped", same, same, usage(1300, 0, 800), usage(1300, 719, 81), Break{Cause: causeUnknown, TokensLost: 81}},
		{"a report of two rounds says nothing of one", same, same, usage(1300, 0, 800), &Usage{Rounds: 2, Usage: phases.Usage{InputTokens: 2600, CacheWriteTokens: 800}}, Break{}},
		{"an empty report says nothing", same, same, usage(1300, 0, 800), &Usage{Rounds: 1}, Break{}},
		{"nothing was kept", same, same, usage(1300, 0, 0), nil, host(causePoint, 0)},
		{"nothing was asked for", same, same, usage(1300, 0, 800), usage(1300, 0, 0), host(causePoint, 800)},
		{"expired", same, later, nil, nil, Break{Cause: causeExpired, TokensLost: 800}},
		{"expired, and served", same, later, nil, usage(1300, 800, 0), Break{}},
		{"too short by the estimate", prompt(short), prompt(short), nil, nil, Break{}},
		{"too short by the estimate, with another text", prompt(short), prompt(func(o *Outline) { short(o); o.Sections[0].Hash++ }), nil, nil, Break{}},
		{"too short as reported", same, same, usage(499, 0, 0), nil, Break{}},
		{
			"dropped early, by a provider of unknown lifetime", prompt(noLifetime(0)), prompt(noLifetime(300)), usage(1300, 0, 800), usage(1300, 0, 800),
			Break{Cause: causeUnknown, TokensLost: 800},
		},
		{
			"dropped late, by a provider of unknown lifetime", prompt(noLifetime(0)), prompt(noLifetime(301)), usage(1300, 0, 800), usage(1300, 0, 800),
			Break{Cause: causeExpired, TokensLost: 800},
		},
		{"dropped, with a plugin of a new version", plugin("1", 1), plugin("2", 1), usage(1300, 0, 800), usage(1300, 0, 800), lostTo(causeVersion, "bob")},
		{"dropped, with another configuration", same, prompt(func(o *Outline) { o.Config = 7 }), usage(1300, 0, 800), usage(1300, 0, 800), lostTo(causeConfig, phases.OwnerHost)},
		{"dropped, with another build", same, prompt(func(o *Outline) { o.Build = "2" }), usage(1300, 0, 800), usage(1300, 0, 800), lostTo(causeBuild, phases.OwnerBuiltin)},
		{"reported late, and so not expired", same, prompt(func(o *Outline) { o.CreatedAt = time.Unix(390, 0) }), reportedAt(90), nil, Break{}},
		{"expired since it was reported", same, prompt(func(o *Outline) { o.CreatedAt = time.Unix(391, 0) }), reportedAt(90), nil, Break{Cause: causeExpired, TokensLost: 800}},
		{"reported after the next prompt", same, later, reportedAt(302), nil, Break{Cause: causeExpired, TokensLost: 800}},
		{"a part was served", history(outlineHistory{Entries: 4}), history(outlineHistory{Entries: 5}), usage(1900, 0, 1700), usage(1900, 800, 900), host(causeEdited, 900)},
		{
			"nothing was served", history(outlineHistory{Entries: 4}), history(outlineHistory{Entries: 5}), usage(1900, 0, 1700), usage(1900, 0, 1700),
			Break{Cause: causeUnknown, TokensLost: 1700},
		},
		{"cut", history(outlineHistory{Entries: 4, Cut: 1}), history(outlineHistory{Entries: 5, Cut: 2}), nil, nil, host(causeCut, 0)},
		{"fewer", history(outlineHistory{Entries: 4}), history(outlineHistory{Entries: 3}), nil, nil, host(causeCut, 0)},
		{
			"another model, which caches from more on", same, prompt(func(o *Outline) { o.Model, o.Rules = "n", &CacheRules{MinimumTokens: 1024, Explicit: true} }),
			nil, nil, host(causeModel, 800),
		},
		{
			"another provider, which needs no breakpoints", same, prompt(func(o *Outline) { o.Provider, o.Rules = "q", &CacheRules{MinimumTokens: 1024, Step: 128} }),
			nil, nil, host(causeProvider, 800),
		},
	} {
		if diff := cmp.Diff(Compare(tt.before, tt.after, tt.was, tt.is), tt.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", tt.name, diff)
		}
	}
}

// TestJudgeWithoutPrompt: nothing is said about a prompt that was not sent, or that is none.
func TestJudgeWithoutPrompt(t *testing.T) {
	t.Parallel()

	m := Manifest{Head: Head{Kind: KindPrompt}, Sections: sectionsOf("a1x")}
	other := Manifest{Head: Head{Kind: KindPrompt}, Sections: sectionsOf("a2x")}
	blocked := other
	blocked.Blocked = true
	sent, unsent := other.Outline(), blocked.Outline()
	empty := sent
	empty.Sections = nil
	for name, previous := range map[string]*Outline{"none": nil, "blocked": &unsent, "empty": &empty} {
		if m.Judge(previous); m.Cache.Break != (Break{}) || m.Cache.Predicted != nil {
			t.Errorf("%s: %+v", name, m.Cache.Break)
		}
	}
	if m.Judge(&sent); m.Cache.Cause != causeText {
		t.Errorf("sent: %+v", m.Cache.Break)
	}
	none := Manifest{Head: Head{Kind: KindPrompt}}
	if none.Judge(&sent); none.Cache.Break != (Break{}) {
		t.Errorf("compared with nothing: %+v", none.Cache.Break)
	}
}

package manifest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// TestCounter: rounds of a turn repeat the beginning of its ledger, tokens of a joined section are shared out, and nothing is counted twice.
func TestCounter(t *testing.T) {
	t.Parallel()

	day := time.Date(2026, 3, 2, 23, 0, 0, 0, time.UTC)
	tokens := 100
	prompt := func(turn string, at time.Time, runs ...phases.Run) *Manifest {
		m := New()
		m.WorkspaceID, m.ThreadID, m.TurnID, m.CreatedAt, m.Runs = "w", "t", turn, at, runs
		m.Cache.Plan.Key = "k"
		m.Sections = []Section{{
			SectionID: "rules", Owner: "house", Chars: 40, Tokens: &tokens, Truncation: &phases.Truncation{},
			ContentMap: []Span{{Offset: 0, Length: 10, Owner: "house"}, {Offset: 10, Length: 2, Owner: "builtin"}, {Offset: 12, Length: 28, Owner: "desk"}},
		}}
		m.Omitted = []phases.Omitted{
			{ID: "banner", Owner: "house"},
			{ID: "weigh", Owner: "desk", Reason: "host_cannot"},
			{ID: "memory_recall", Owner: "memory", Reason: "host_cannot", Chars: 9},
			{ID: phases.RequestTools, Owner: "builtin", Reason: "filtered"},
			{ID: "sell", Owner: "desk", Reason: "conflict"},
		}
		return &m
	}
	run := func(plugin string, state phases.RunState, cuts int) phases.Run {
		return phases.Run{Plugin: plugin, State: state, Cut: make([]phases.Cut, cuts)}
	}
	first, second := run("house", phases.StateFailed, 0), run("desk", phases.StateSucceeded, 2)
	c := NewCounter()
	add := func(m *Manifest, u *Usage) {
		c.AddRecord(m)
		c.AddEntry(&Entry{Outline: m.Outline(), Usage: u})
	}
	add(prompt("1", day, first, run("desk", phases.StateFiltered, 0)), nil)
	again := prompt("1", day.Add(2*time.Hour), first, run("desk", phases.StateFiltered, 0), second)
	again.RunsBefore = 2
	add(again, &Usage{Usage: phases.Usage{InputTokens: 50, CacheReadTokens: 20}})
	events := New()
	events.Kind, events.CreatedAt, events.Runs = KindEvents, day.Add(2*time.Hour), []phases.Run{run("desk", phases.StateDenied, 0)}
	add(&events, nil)
	blocked := New()
	blocked.WorkspaceID, blocked.ThreadID, blocked.TurnID, blocked.CreatedAt, blocked.Runs = "w", "t", "2", day, []phases.Run{first}
	add(&blocked, nil)
	broken := prompt("3", day)
	broken.RunsBefore = 1 // more than there are, as in a record that nobody has validated
	broken.Sections[0].Hash, broken.Cache.ToolTokens = "other", 7
	add(broken, nil)

	want := Stats{
		Records: 5, Prompts: 3, Blocked: 1, ToolTokens: 7,
		Owners: []OwnerStats{
			{Owner: "desk", Tokens: 210, Chars: 84, Runs: 2, Denied: 1, Cuts: 2, Omitted: 6, Breaks: 1, TokensLost: 43},
			{Owner: "house", Tokens: 75, Chars: 30, Runs: 2, Failed: 2, Omitted: 3},
			{Owner: "builtin", Tokens: 15, Chars: 6, Omitted: 3},
			{Owner: "memory", Omitted: 3},
		},
		Sections: []SectionStats{
			{SectionID: "rules", Prompts: 3, Tokens: 300, Chars: 120, Cuts: 3, Breaks: 1},
			{SectionID: "banner", Omitted: 3},
			{SectionID: "memory_recall", Omitted: 3},
		},
		Days: []DayStats{
			{Day: "2026-03-02", Prompts: 2, Tokens: 207, ToolTokens: 7, Failed: 2, Breaks: 1},
			{Day: "2026-03-03", Prompts: 1, Tokens: 100, Reported: 1, InputTokens: 50, CacheReadTokens: 20, Cuts: 2},
		},
	}
	if diff := cmp.Diff(c.Stats(), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if s := NewCounter().Stats(); s.Owners == nil || s.Sections == nil || s.Days == nil {
		t.Errorf("a list is nil: %+v", s)
	}
}

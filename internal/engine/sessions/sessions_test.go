package sessions

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

func in(session string, epoch int) phases.Context {
	return phases.Context{WorkspaceID: "w", SessionID: session, Epoch: epoch}
}

// TestUndelivered: a reminder with a key comes once in a session and epoch; one plugin cannot silence another.
func TestUndelivered(t *testing.T) {
	t.Parallel()

	c := New()
	list := []phases.MergedReminder{{Owner: "p.h", DedupeKey: "k", Text: "äb"}, {Owner: "q.h", DedupeKey: "k"}, {Owner: "p.h"}}
	for _, step := range []struct {
		name string
		at   phases.Context
		want int
	}{{"first", in("s", 0), 3}, {"again", in("s", 0), 1}, {"another session", in("t", 0), 3}, {"the next epoch", in("s", 1), 3}, {"no session", in("", 0), 3}} {
		kept, before := c.Undelivered(step.at, list)
		if len(kept) != step.want || len(kept)+len(before) != 3 {
			t.Errorf("%s: %d kept, %d omitted, want %d kept", step.name, len(kept), len(before), step.want)
		}
		if len(before) > 0 && (before[0].Owner != "p" || before[0].Chars != 2 || before[0].Reason != "duplicate") {
			t.Errorf("%s: %+v", step.name, before[0])
		}
	}
	c.End(in("s", 1))
	if kept, _ := c.Undelivered(in("s", 1), list); len(kept) != 3 {
		t.Errorf("after the end of the session: %d", len(kept))
	}
}

// TestPending: what no prompt has delivered waits for the session's next turn, once and within bounds.
func TestPending(t *testing.T) {
	t.Parallel()

	c, list := New(), make([]phases.MergedReminder, maxPending)
	if lost := c.Leave(in("", 0), list); len(lost) != maxPending {
		t.Errorf("without a session %d of %d are lost", len(lost), maxPending)
	}
	list[0].Text = "first"
	c.Begin(in("s", 0), &phases.Outcome{Merged: phases.Merged{Reminders: list}})
	if lost := c.Leave(in("s", 1), []phases.MergedReminder{{Text: "one more"}}); len(lost) != 1 || lost[0].Text != "one more" {
		t.Errorf("beyond the bound: %+v", lost)
	}
	if got := c.TakePending(in("s", 1)); len(got) != maxPending || got[0].Text != "first" {
		t.Errorf("%d reminders wait", len(got))
	}
	if got := c.TakePending(in("s", 1)); len(got) != 0 {
		t.Errorf("taken twice: %+v", got)
	}
}

// TestAsked: domains are remembered for the latest epoch only.
func TestAsked(t *testing.T) {
	t.Parallel()

	c := New()
	c.Ask(in("s", 1), []string{"a"})
	c.Ask(in("s", 1), []string{"b", "a"})
	c.Ask(in("s", 0), []string{"old"})
	c.Ask(in("", 1), []string{"nobody's"})
	if diff := cmp.Diff(c.Asked(in("s", 1)), []string{"a", "b"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	c.Ask(in("s", 2), []string{"c"})
	if got := c.Asked(in("s", 1)); got != nil {
		t.Errorf("an older epoch has %q", got)
	}
}

// TestPrevious: the last prompt belongs to the thread, or to the session of a host
// without threads.
func TestPrevious(t *testing.T) {
	t.Parallel()

	c, m := New(), &manifest.Outline{}
	c.KeepPrompt(phases.Context{WorkspaceID: "w"}, m)
	if c.Previous(phases.Context{WorkspaceID: "w"}) != nil {
		t.Error("a prompt without a thread and a session was kept")
	}
	thread := phases.Context{WorkspaceID: "w", ThreadID: "s"}
	c.KeepPrompt(thread, m)
	if c.Previous(thread) != m || c.Previous(in("s", 0)) != nil {
		t.Error("a thread and a session of one name were confused")
	}
}

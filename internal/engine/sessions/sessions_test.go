package sessions

import (
	"testing"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

func in(session string, epoch int) phases.Context {
	return phases.Context{WorkspaceID: "w", SessionID: session, Epoch: epoch}
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

// TestPrevious: the last prompt belongs to the thread, or to the session of a host
// without threads.
func TestPrevious(t *testing.T) {
	t.Parallel()

	c, m := New(), &manifest.Outline{}
	c.KeepPrompt(phases.Context{WorkspaceID: "w"}, m)
	if c.Previous(phases.Context{WorkspaceID: "w"}, false) != nil {
		t.Error("a prompt without a thread and a session was kept")
	}
	thread := phases.Context{WorkspaceID: "w", ThreadID: "s"}
	c.KeepPrompt(thread, m)
	if c.Previous(thread, false) != m || c.Previous(in("s", 0), false) != nil {
		t.Error("a thread and a session of one name were confused")
	}
}

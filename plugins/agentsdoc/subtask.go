package agentsdoc

import (
	"context"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/settings"
	"github.com/grapnelhq/grapnel/sdk"
)

// isSubtask reports whether a turn works for another one's.
func isSubtask(c *phases.Context) bool {
	return c.Mode == phases.ModeTask || hasParent(c) || c.Conversation() != c.ThreadID
}

// hasParent reports whether a turn's session belongs to another one.
func hasParent(c *phases.Context) bool {
	return c.ParentSessionID != "" && c.ParentSessionID != c.SessionID
}

// taskOf tells sub-tasks apart that have no session of their own: each is a
// conversation of its own, which knows nothing of what the session was told.
// It is empty for all other turns.
func taskOf(c *phases.Context) string {
	if !isSubtask(c) || hasParent(c) {
		return ""
	}
	return c.ThreadID + "\x00" + c.TaskID
}

// withheld reports whether a turn is a sub-task's that gets nothing.
func (d *docs) withheld(c *phases.Context) bool {
	return d.settings.Subtasks == settings.SubtasksNone && isSubtask(c)
}

// rules are the options for a turn.
func (d *docs) rules(c *phases.Context) chain.Options {
	if d.settings.Subtasks == settings.SubtasksManagedOnly && isSubtask(c) {
		return managedOnly(d.bounded(c))
	}
	return d.bounded(c)
}

// bounded are the plugin's options within what a host lets a turn read.
func (d *docs) bounded(c *phases.Context) chain.Options {
	o := d.options
	o.Boundary = c.DirRoot
	return o
}

// managedOnly are options by which the operator's file alone is found.
func managedOnly(o chain.Options) chain.Options {
	o.Names, o.FallbackNames, o.LocalNames, o.GlobalDir = []string{}, []string{}, []string{}, ""
	o.ChildHint, o.Lazy = false, false
	return o
}

// inherited is the block in force of the session that a sub-task belongs to; nil
// where there is none.
func (d *docs) inherited(ctx context.Context, call *sdk.Call) (*block, error) {
	where := &call.Context
	parent := d.parent(where)
	if own, ok := keyOf(where); parent == nil || ok && parent.key == own {
		return nil, nil
	}
	if err := parent.enter(ctx); err != nil {
		return nil, err
	}
	defer parent.leave()
	d.recall(ctx, call, parent)
	b := parent.latest()
	if b == nil {
		return nil, nil
	}
	copied := *b
	return &copied, nil
}

// parent is the session that a sub-task belongs to: the one that is named, the
// one of its conversation, or the one that it runs in; nil where there is none.
func (d *docs) parent(c *phases.Context) *session {
	if c.ParentSessionID != "" {
		return d.sessions.of(sessionKey{workspace: c.WorkspaceID, session: c.ParentSessionID})
	}
	if s := d.sessions.ofThread(c.WorkspaceID, c.Conversation()); s != nil || c.SessionID == "" {
		return s
	}
	return d.sessions.of(sessionKey{workspace: c.WorkspaceID, session: c.SessionID})
}

package wire

import (
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// The functions of this and the other message files are the messages of
// plugin.proto: same numbers, same order. See form for how they work.

func contextFields(f *form, m *phases.Context) {
	f.text(1, &m.WorkspaceID)
	f.text(2, &m.ThreadID)
	f.text(3, &m.ConversationThreadID)
	f.text(4, &m.TurnID)
	f.text(5, &m.TaskID)
	f.text(6, &m.AgentID)
	f.text(7, &m.SessionID)
	f.text(8, &m.ParentSessionID)
	number(f, 9, &m.Epoch)
	f.text(10, (*string)(&m.Mode))
	f.text(11, (*string)(&m.Profile))
	sub(f, 12, &m.Actor, actorFields)
	f.instant(13, &m.Now)
	f.text(14, &m.Dir)
	pairs(f, 15, &m.Flags, flagValue)
	pairs(f, 16, &m.Metadata, rawValue)
	f.text(17, &m.DirRoot)
}

func actorFields(f *form, m *phases.Actor) {
	f.text(1, &m.Kind)
	f.text(2, &m.ID)
}

func traceFields(f *form, m *phases.Trace) {
	f.text(1, &m.Parent)
	f.text(2, &m.State)
}

func roomFields(f *form, m *phases.Room) {
	number(f, 1, &m.MaxChars)
	number(f, 2, &m.MaxBytes)
}

func policyEntryFields(f *form, m *phases.PolicyEntry) {
	f.text(1, &m.Domain)
	f.text(2, &m.Key)
	f.raw(3, &m.Value)
	number(f, 4, &m.Priority)
	f.text(5, &m.Owner)
}

func contextEntryFields(f *form, m *phases.ContextEntry) {
	f.text(1, &m.ContributionID)
	f.text(2, &m.Domain)
	f.text(3, &m.Content)
	number(f, 4, &m.Priority)
	f.text(5, &m.Owner)
	f.flag(6, &m.Render)
	each(f, 7, &m.SourceRefs, sourceRefFields)
	ptr(f, 8, &m.Truncation, truncationFields)
}

func sourceRefFields(f *form, m *phases.SourceRef) {
	f.text(1, &m.Kind)
	f.text(2, &m.ID)
	f.text(3, &m.Label)
}

func truncationFields(f *form, m *phases.Truncation) {
	f.text(1, (*string)(&m.Limit))
	number(f, 2, &m.Original)
	number(f, 3, &m.Kept)
}

// dispatchFields is Dispatch. The incarnation travels in the frame.
func dispatchFields(f *form, m *phases.Dispatch) {
	f.text(1, &m.Subscription)
	f.text(2, &m.Hook)
	f.text(3, (*string)(&m.Phase))
	sub(f, 4, &m.Context, contextFields)
	texts(f, 5, &m.Withheld)
	each(f, 6, &m.Policies, policyEntryFields)
	each(f, 7, &m.Contexts, contextEntryFields)
	number(f, 8, &m.Attempt)
	f.text(9, &m.IdempotencyKey)
	sub(f, 10, &m.Trace, traceFields)
	sub(f, 11, &m.Room, roomFields)
	remaining(f, 12, &m.Remaining)
	number(f, 13, &m.Generation)
	inputFields(f, &m.Input)
}

// toolCallFields is CallTool.
func toolCallFields(f *form, m *phases.ToolCall) {
	f.text(1, &m.Tool)
	f.raw(2, &m.Arguments)
	sub(f, 3, &m.Context, contextFields)
	f.text(4, &m.IdempotencyKey)
	sub(f, 5, &m.Trace, traceFields)
	sub(f, 6, &m.Room, roomFields)
	remaining(f, 7, &m.Remaining)
	number(f, 8, &m.Generation)
	each(f, 9, &m.Policies, policyEntryFields)
	f.flag(10, &m.OutsideTurn)
}

// remaining is the time that is left, bounded by what the caller will wait.
func remaining(f *form, n fieldNumber, p *time.Duration) {
	if f.writing && f.most > 0 && (*p <= 0 || *p > f.most) {
		p = &f.most
	}
	number(f, n, p)
}

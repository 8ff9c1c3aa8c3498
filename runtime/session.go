package runtime

import (
	"context"

	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/phases"
)

// Session is one session of a host. It holds nothing but its context: turns of the session carry its id.
type Session struct {
	engine  *Engine
	context phases.Context
	// Outcome is what session.start or session.resume brought.
	Outcome *phases.Outcome
}

// StartSession begins a session and dispatches session.start. The source is "startup" or "clear". The session is nil
// for any error but a *PhaseError. Its prompt_context is kept for the turns of the session; its reminders come with
// the session's first prompt.
func (e *Engine) StartSession(ctx context.Context, s phases.Context, source string) (*Session, error) {
	return e.session(ctx, s, &phases.SessionStartInput{Source: source})
}

// ResumeSession resumes a stored session and dispatches session.resume with what the host recorded of it.
func (e *Engine) ResumeSession(ctx context.Context, s phases.Context, in *phases.SessionResumeInput) (*Session, error) {
	return e.session(ctx, s, in)
}

func (e *Engine) session(ctx context.Context, s phases.Context, in phases.Input) (*Session, error) {
	if s.Now.IsZero() {
		s.Now = e.opts.Now()
	}
	out, err := e.Dispatch(ctx, s, in)
	if out == nil {
		return nil, err
	}
	if lost := e.sessions.Begin(s, out); len(lost) > 0 {
		out.Diagnostics = append(out.Diagnostics, undelivered(&s, lost, false))
	}
	return &Session{engine: e, context: s.Clone(), Outcome: out}, err
}

// Context returns the session's context, to begin turns with.
func (s *Session) Context() phases.Context { return s.context.Clone() }

// End is [Engine.EndSession] of this session.
func (s *Session) End(ctx context.Context, reason string) (*phases.Outcome, error) {
	return s.engine.EndSession(ctx, s.context, reason)
}

// ForgetSession forgets what was kept for the turns of a session, without notifying plugins: it may be resumed.
func (e *Engine) ForgetSession(s phases.Context) { _ = e.forget(&s, nil) }

// EndSession dispatches session.end, whose hooks run in the background, and forgets what was kept for the session's
// turns, even if ctx is done. The session may have begun in another process. Reminders that it has left to a next turn are
// the diagnostic "reminders_undelivered" of the outcome and of a record.
func (e *Engine) EndSession(ctx context.Context, s phases.Context, reason string) (*phases.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	out, err := e.Dispatch(ctx, s, &phases.SessionEndInput{Reason: reason})
	if t := e.forget(&s, out); t != nil {
		_ = t.keepEvents(ctx, false) // it is reported
	}
	return out, err
}

// forget forgets a session. It returns a turn with a note about the reminders that were left to a next one, which is in the
// outcome, too; nil if there were none.
func (e *Engine) forget(s *phases.Context, out *phases.Outcome) *turn {
	lost := e.sessions.End(*s)
	if len(lost) == 0 {
		return nil
	}
	g := e.current.Load()
	t := &turn{engine: e, gen: g, begun: s.Clone(), state: turnstate.New(g.cfg.Budgets.Turn, g.key), round: make(chan struct{}, 1)}
	t.note(out, undelivered(s, lost, true))
	return t
}

package runtime

import (
	"context"

	"github.com/grapnelhq/grapnel/phases"
)

// Session is one session of a host, for hosts that have such a thing. It holds
// nothing but its context: turns of the session carry its id.
type Session struct {
	engine  *Engine
	context phases.Context
	// Outcome is what session.start or session.resume brought.
	Outcome *phases.Outcome
}

// StartSession begins a session and dispatches session.start. The source is
// "startup" or "clear". The session is there even when the error is a
// *PhaseError, and nil for any other. What the phase brings as prompt_context is
// kept for the turns of the session; its reminders are the host's to deliver.
func (e *Engine) StartSession(ctx context.Context, s phases.Session, source string) (*Session, error) {
	return e.session(ctx, s, &phases.SessionStartInput{Source: source})
}

// ResumeSession takes a stored session up again and dispatches session.resume
// with what the host recorded of it.
func (e *Engine) ResumeSession(ctx context.Context, s phases.Session, in *phases.SessionResumeInput) (*Session, error) {
	return e.session(ctx, s, in)
}

func (e *Engine) session(ctx context.Context, s phases.Session, in phases.Input) (*Session, error) {
	if s.Now.IsZero() {
		s.Now = e.opts.Now()
	}
	out, err := e.Dispatch(ctx, s, in)
	if out == nil {
		return nil, err
	}
	e.memory.beginSession(s, out)
	return &Session{engine: e, context: s.Clone(), Outcome: out}, err
}

// Context returns the session's context, to begin turns with.
func (s *Session) Context() phases.Context { return s.context.Clone() }

// End is [Engine.EndSession] of this session.
func (s *Session) End(ctx context.Context, reason string) (*phases.Outcome, error) {
	return s.engine.EndSession(ctx, s.context, reason)
}

// ForgetSession forgets what was kept for the turns of a session, without a word to
// plugins: it may be resumed. It is for hosts with bounds of their own on sessions.
func (e *Engine) ForgetSession(s phases.Session) { e.memory.endSession(s) }

// EndSession dispatches session.end, whose hooks run in the background, and forgets
// what was kept for the session's turns. Like the end of a turn it takes place
// even when ctx is done. A session of which the engine knows nothing ends too: it may
// have begun in another process.
func (e *Engine) EndSession(ctx context.Context, s phases.Session, reason string) (*phases.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	defer e.memory.endSession(s)
	return e.Dispatch(ctx, s, &phases.SessionEndInput{Reason: reason})
}

package gateway

import (
	"context"
	"encoding/json"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// The params of the methods about sessions.
type (
	sessionStartParams struct {
		Context phases.Session `json:"context"          jsonschema:"where and when; workspace_id and session_id are needed. Turns of the session carry both"`
		Source  string         `json:"source,omitempty" jsonschema:"startup (also if absent), or clear"`
		Actor   string         `json:"actor,omitempty"`
	}
	sessionResumeParams struct {
		Context phases.Session  `json:"context"         jsonschema:"as of session/start"`
		State   json.RawMessage `json:"state,omitempty" jsonschema:"what the host recorded of the session, any JSON"`
		Actor   string          `json:"actor,omitempty"`
	}
	sessionEndParams struct {
		Context phases.Session `json:"context"          jsonschema:"as of session/start"`
		Reason  string         `json:"reason,omitempty" jsonschema:"the host's word for why"`
		Wait    bool           `json:"wait,omitempty"   jsonschema:"answer only when the background work of this gateway is done"`
		Actor   string         `json:"actor,omitempty"`
	}
)

func (g *Gateway) sessionMethods() []rpc.Method {
	return []rpc.Method{
		method("session/start", rpc.DispatchRight,
			"Begins a session: runs session.start, and keeps the contexts that it brings for the session's turns at this gateway. Reminders are the client's to deliver.",
			func(p *sessionStartParams) asked { return asked{nil, &p.Actor} }, g.startSession),
		method("session/resume", rpc.DispatchRight,
			"Takes a session up again, also one of another gateway or from before a restart: runs session.resume, and keeps what it brings as session/start does.",
			func(p *sessionResumeParams) asked { return asked{nil, &p.Actor} }, g.resumeSession),
		method("session/end", rpc.DispatchRight,
			"Ends a session: runs session.end, whose hooks go on in the background, and forgets what was kept for its turns. Turns of it that are open go on.",
			func(p *sessionEndParams) asked { return asked{nil, &p.Actor} }, g.endSession),
	}
}

func (g *Gateway) startSession(ctx context.Context, c call[sessionStartParams]) (*phases.Outcome, error) {
	s, err := g.completeSession(ctx, c.Caller, c.params.Context)
	if err != nil {
		return nil, err
	}
	switch c.params.Source {
	case "":
		c.params.Source = "startup"
	case "startup", "clear":
	default:
		return nil, rpc.Errorf(rpc.CodeInvalid, "source: %.40q is neither startup nor clear", c.params.Source)
	}
	return begunSession(g.opts.Engine.StartSession(ctx, s, c.params.Source))
}

func (g *Gateway) resumeSession(ctx context.Context, c call[sessionResumeParams]) (*phases.Outcome, error) {
	s, err := g.completeSession(ctx, c.Caller, c.params.Context)
	if err != nil {
		return nil, err
	}
	in := &phases.SessionResumeInput{State: c.params.State}
	if err := phases.ValidateInput(in); err != nil {
		return nil, &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error()}
	}
	return begunSession(g.opts.Engine.ResumeSession(ctx, s, in))
}

// begunSession is the outcome of a session's beginning.
func begunSession(s *runtime.Session, err error) (*phases.Outcome, error) {
	if s == nil {
		return nil, engineError(err)
	}
	return s.Outcome, nil
}

func (g *Gateway) endSession(ctx context.Context, c call[sessionEndParams]) (*phases.Outcome, error) {
	s, err := g.completeSession(ctx, c.Caller, c.params.Context)
	if err != nil {
		return nil, err
	}
	defer g.releaseSession(&s)
	end := func(ctx context.Context) (*phases.Outcome, error) {
		return outcomeOf(g.opts.Engine.EndSession(ctx, s, c.params.Reason))
	}
	if !c.params.Wait {
		return end(ctx)
	}
	return g.collected(ctx, "the session has ended", end)
}

// completeSession is completeContext for a session.
func (g *Gateway) completeSession(ctx context.Context, c *rpc.Caller, s phases.Session) (phases.Session, error) {
	if err := needIDs("context", "a session's turns carry it", namedID{"workspace_id", s.WorkspaceID}, namedID{"session_id", s.SessionID}); err != nil {
		return s, err
	}
	return g.completeContext(ctx, c, "context", s)
}

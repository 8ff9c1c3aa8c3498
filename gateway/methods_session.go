package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"sync"

	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

type (
	sessionStartParams struct {
		Context phases.Context `json:"context"          jsonschema:"where and when; workspace_id and session_id are needed. Turns of the session carry both"`
		Source  string         `json:"source,omitempty" jsonschema:"startup (also if absent), or clear"`
		Actor   string         `json:"actor,omitempty"`
	}
	sessionResumeParams struct {
		Context phases.Context  `json:"context"         jsonschema:"as of session/start"`
		State   json.RawMessage `json:"state,omitempty" jsonschema:"what the host recorded of the session, any JSON"`
		Actor   string          `json:"actor,omitempty"`
	}
	sessionEndParams struct {
		Context phases.Context `json:"context"          jsonschema:"as of session/start"`
		Reason  string         `json:"reason,omitempty" jsonschema:"why, in the host's words"`
		Wait    bool           `json:"wait,omitempty"   jsonschema:"answer only when the background work of this gateway is done"`
		Actor   string         `json:"actor,omitempty"`
	}
)

func (g *Gateway) sessionMethods() []rpc.Method {
	return []rpc.Method{
		method(group{}, "session/start", rpc.DispatchRight,
			"Begins a session: runs session.start, and keeps the contexts that it brings for the session's turns at this gateway. Its reminders come with the session's first prompt: do not deliver those of the answer, too.",
			g.startSession),
		method(group{}, "session/resume", rpc.DispatchRight,
			"Takes a session up again, also one of another gateway or from before a restart: runs session.resume, and keeps what it brings as session/start does.",
			g.resumeSession),
		method(group{}, "session/end", rpc.DispatchRight,
			"Ends a session: runs session.end, whose hooks go on in the background, and forgets what was kept for its turns. Turns of it that are open go on.",
			g.endSession),
		method(group{}, "phase/dispatch", rpc.DispatchRight,
			"Runs one phase without a turn: there are no policies, contexts or hidden tools, and a phase with a hook that needs a turn is refused (turn_needed). One that failed closed is a result with an error in it.",
			g.dispatch),
		method(group{}, "phase/schemas", rpc.DispatchRight, "Returns the phases with the JSON Schemas of their inputs.",
			func(context.Context, call[anyone]) (phasesResult, error) { return phaseSchemas() }),
	}
}

func (g *Gateway) startSession(ctx context.Context, c call[sessionStartParams]) (*phases.Outcome, error) {
	s, err := g.completeSession(ctx, c.Caller, c.params.Context)
	if err != nil {
		return nil, err
	}
	source := cmp.Or(c.params.Source, "startup")
	if source != "startup" && source != "clear" {
		return nil, rpc.Errorf(rpc.CodeInvalid, "source: %.40q is neither startup nor clear", source)
	}
	return begunSession(g.opts.Engine.StartSession(ctx, s, source))
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
		return resultOf(g.opts.Engine.EndSession(ctx, s, c.params.Reason))
	}
	if !c.params.Wait {
		return end(ctx)
	}
	return g.collected(ctx, "the session has ended", end)
}

func (g *Gateway) completeSession(ctx context.Context, c *rpc.Caller, s phases.Context) (phases.Context, error) {
	if err := needIDs("context", "a session's turns carry it", namedID{"workspace_id", s.WorkspaceID}, namedID{"session_id", s.SessionID}); err != nil {
		return s, err
	}
	return g.completeContext(ctx, c, "context", s)
}

const mostSessions = 4096

// sessionTable is which token a session belongs to: the first that names it, until session/end.
// Others must not read what its start returned, use up its reminders, or end it.
type sessionTable struct {
	mu    sync.Mutex
	owned recent.Map[phases.Context]
}

func sessionKey(s *phases.Context) string { return s.WorkspaceID + "\x00" + s.SessionID }

// claimSession makes the session the caller's, or refuses it if it belongs to another token
// that still has the workspace.
func (g *Gateway) claimSession(c *rpc.Caller, name string, s *phases.Context) error {
	if s.SessionID == "" {
		return nil
	}
	g.sessions.mu.Lock()
	defer g.sessions.mu.Unlock()
	owned := &g.sessions.owned
	owner, taken := owned.Owner(sessionKey(s))
	switch {
	case taken && owner == c.Name:
		return nil
	case taken && g.rpc.TokenMay(owner, s.WorkspaceID):
		return rpc.Errorf(rpc.CodeUnauthorized, "%s.session_id: the session %q of this workspace belongs to another token, until that ends it (session/end): take another id", name, s.SessionID)
	case taken:
		owned.Drop(sessionKey(s))
		g.opts.Engine.ForgetSession(*s)
	}
	id := phases.Context{WorkspaceID: s.WorkspaceID, SessionID: s.SessionID}
	if old, full := owned.Put(c.Name, sessionKey(s), id); full {
		g.opts.Engine.ForgetSession(old)
	}
	return nil
}

func (g *Gateway) releaseSession(s *phases.Context) {
	g.sessions.mu.Lock()
	defer g.sessions.mu.Unlock()
	g.sessions.owned.Drop(sessionKey(s))
}

type (
	phasesResult struct {
		Phases []phaseSchema `json:"phases" jsonschema:"in the order of a turn"`
	}
	phaseSchema struct {
		Phase       phases.Phase    `json:"phase"`
		Kinds       []phases.Kind   `json:"kinds"       jsonschema:"the kinds of contributions that it takes"`
		Description string          `json:"description" jsonschema:"when it is dispatched"`
		Input       json.RawMessage `json:"input"       jsonschema:"a JSON Schema"`
	}
)

func phaseSchemas() (phasesResult, error) {
	types, err := wireTypes()
	if err != nil {
		return phasesResult{}, err
	}
	result := phasesResult{}
	for _, row := range phases.Standard().Rows() {
		input, err := types.Of(reflect.TypeOf(row.NewInput()).Elem())
		if err != nil {
			return phasesResult{}, err
		}
		text, err := json.Marshal(input)
		if err != nil {
			return phasesResult{}, err
		}
		result.Phases = append(result.Phases, phaseSchema{row.Phase, append([]phases.Kind{}, row.Kinds...), row.When, text})
	}
	return result, nil
}

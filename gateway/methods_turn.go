package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/internal/surface"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// The params of the methods about turns.
type (
	beginParams struct {
		Turn  phases.Turn `json:"turn"            jsonschema:"where and when; workspace_id, thread_id and turn_id are needed. A dir must lie below one of the gateway's roots"`
		Actor string      `json:"actor,omitempty"`
	}
	compileParams struct {
		Handle string            `json:"handle,omitempty" jsonschema:"the turn to compile in, as turn/begin gave it"`
		Turn   *phases.Turn      `json:"turn,omitempty"   jsonschema:"instead of a handle: a turn that is over with its prompt, as turn/begin takes it"`
		Input  surface.TurnInput `json:"input,omitzero"   jsonschema:"what the host brings"`
		Actor  string            `json:"actor,omitempty"`
	}
	turnDispatchParams struct {
		Handle string          `json:"handle"          jsonschema:"the turn, as turn/begin gave it"`
		Phase  phases.Phase    `json:"phase"           jsonschema:"any but turn.post_turn and those of sessions, which have methods of their own"`
		Input  json.RawMessage `json:"input,omitempty" jsonschema:"the input of the phase, as its schema has it"`
		Actor  string          `json:"actor,omitempty"`
	}
	toolParams struct {
		Handle         string          `json:"handle"                    jsonschema:"the turn, as turn/begin gave it"`
		Tool           string          `json:"tool"                      jsonschema:"the tool's name, as turn/compile has offered it"`
		Arguments      json.RawMessage `json:"arguments,omitempty"       jsonschema:"the arguments, as the model gave them"`
		IdempotencyKey string          `json:"idempotency_key,omitempty" jsonschema:"the id that the model gave the call: the same call again does nothing twice"`
		Actor          string          `json:"actor,omitempty"`
	}
	endParams struct {
		Handle string               `json:"handle"          jsonschema:"the turn, as turn/begin gave it"`
		End    phases.PostTurnInput `json:"end"             jsonschema:"how the turn ended, as the input of turn.post_turn. Without a user_text it has that of the first turn/compile"`
		Wait   bool                 `json:"wait,omitempty"  jsonschema:"answer only when the background work of this gateway is done"`
		Actor  string               `json:"actor,omitempty"`
	}
)

// begunTurn is the result of turn/begin.
type begunTurn struct {
	Handle string `json:"handle" jsonschema:"names the turn in further calls to this gateway, by the same token"`
	// IdleSeconds is how long it is kept without a call.
	IdleSeconds float64 `json:"idle_seconds" jsonschema:"without a call for so long the turn is ended as interrupted"`
	InSession   bool    `json:"in_session"   jsonschema:"whether this gateway knows how the turn's session began; if not, call session/resume before the next turn"`
}

// toolAnswer is the result of tool/call.
type toolAnswer struct {
	Content     json.RawMessage     `json:"content"         jsonschema:"the tool's answer, any JSON"`
	IsError     bool                `json:"is_error"        jsonschema:"whether the tool tells the model of a failure, or error says why it did not answer"`
	Diagnostics []phases.Diagnostic `json:"diagnostics"`
	Error       *phases.Error       `json:"error,omitempty" jsonschema:"why the call was refused, or failed; content is null then"`
}

// For is the answer as the audience may see it.
func (a *toolAnswer) For(who phases.Audience) *toolAnswer {
	return &toolAnswer{Content: a.Content, IsError: a.IsError, Diagnostics: phases.DiagnosticsFor(a.Diagnostics, who), Error: a.Error.For(who)}
}

// turnMethods: what they are about is a turn's workspace, which they look up
// themselves.
func (g *Gateway) turnMethods() []rpc.Method {
	return []rpc.Method{
		method("turn/begin", rpc.DispatchRight,
			"Begins a turn and keeps it, until turn/end, or as long as calls come: what its phases bring (policies, contexts, tools) holds for the next ones. No plugin is called yet.",
			func(p *beginParams) asked { return asked{nil, &p.Actor} }, g.begin),
		method("turn/compile", rpc.CompileRight,
			"Compiles the prompt of a turn and records its manifest: in a kept turn (handle) that of the next round, after the phases ahead that the turn has not passed yet; else (turn) as \"grapnel compile\" does. A turn that was denied, or whose phase failed closed, is a result with an error in it.",
			func(p *compileParams) asked { return asked{nil, &p.Actor} }, g.compile),
		method("turn/dispatch", rpc.DispatchRight,
			"Runs one phase in a kept turn. One that failed closed is a result with an error in it.",
			func(p *turnDispatchParams) asked { return asked{nil, &p.Actor} }, g.dispatchInTurn),
		method("tool/call", rpc.DispatchRight,
			"Calls a tool in a kept turn, or request_tools, which loads hidden ones. A call that was refused, or failed, is a result with an error in it.",
			func(p *toolParams) asked { return asked{nil, &p.Actor} }, g.callTool),
		method("turn/end", rpc.DispatchRight,
			"Ends a kept turn, when its calls have returned: the plugins are told, and go on in the background.",
			func(p *endParams) asked { return asked{nil, &p.Actor} }, g.end),
	}
}

// errNoEngine is the answer of a gateway without an engine.
func errNoEngine() error {
	return rpc.Errorf(rpc.CodeUnavailable, "this gateway has no engine: it compiles and dispatches nothing")
}

// begin begins a turn and keeps it.
func (g *Gateway) begin(ctx context.Context, c call[beginParams]) (begunTurn, error) {
	where, err := g.completeTurn(ctx, c.Caller, c.params.Turn)
	if err != nil {
		return begunTurn{}, err
	}
	if err := g.turns.reserve(c.Caller); err != nil {
		return begunTurn{}, err
	}
	turn, err := g.opts.Engine.BeginTurn(ctx, where)
	if err != nil {
		g.turns.release(c.Name)
		return begunTurn{}, engineError(err)
	}
	kept, ok := g.turns.keep(c.Caller, turn, turn.Context())
	if !ok { // the gateway stops
		g.turns.release(c.Name)
		_, err := turn.End(ctx, &phases.PostTurnInput{Status: phases.TurnInterrupted})
		return begunTurn{}, &rpc.Error{Code: rpc.CodeUnavailable, Message: "the gateway is stopping", Err: err}
	}
	return begunTurn{Handle: kept.handle, IdleSeconds: g.turns.idle.Seconds(), InSession: turn.InSession()}, nil
}

// inTurn does a call in a kept turn. One that the turn's end has cut short says so.
func inTurn[R any](ctx context.Context, g *Gateway, c *rpc.Caller, handle string, do func(ctx context.Context, k *keptTurn) (R, error)) (R, error) {
	var none R
	ctx, kept, leave, err := g.turns.enter(ctx, c, handle)
	if err != nil {
		return none, err
	}
	defer leave()
	// It may have been deleted since the turn began: then there is nothing to go by.
	if err := g.checkWorkspace(ctx, c, kept.context.WorkspaceID); err != nil {
		return none, err
	}
	r, err := do(ctx, kept)
	if errors.Is(context.Cause(ctx), errTurnEnds) || errors.Is(err, runtime.ErrTurnEnded) {
		return none, errTurnEnds
	}
	return r, err
}

// compile answers as "grapnel compile --json" prints: what is known of a blocked
// turn is what its host needs.
func (g *Gateway) compile(ctx context.Context, c call[compileParams]) (*runtime.Compiled, error) {
	p := &c.params
	switch {
	case p.Handle != "" && p.Turn != nil:
		return nil, rpc.Errorf(rpc.CodeInvalid, "handle and turn are both there: give the handle of a turn that turn/begin began, or a turn that is over with its prompt")
	case p.Handle != "":
		return inTurn(ctx, g, c.Caller, p.Handle, func(ctx context.Context, k *keptTurn) (*runtime.Compiled, error) {
			return g.compileRound(ctx, c, k)
		})
	case p.Turn == nil:
		return nil, rpc.Errorf(rpc.CodeInvalid, "turn: it is missing; give a turn, or the handle of one that turn/begin began")
	}
	turn, err := g.completeTurn(ctx, c.Caller, *p.Turn)
	if err != nil {
		return nil, err
	}
	done, err := g.opts.Engine.CompileTurn(ctx, turn, g.compileInput(&p.Input, turn.Now))
	if done == nil {
		return nil, engineError(err)
	}
	return done, nil
}

// compileRound compiles in a kept turn, one round after the other.
func (g *Gateway) compileRound(ctx context.Context, c call[compileParams], k *keptTurn) (*runtime.Compiled, error) {
	select {
	case k.round <- struct{}{}:
		defer func() { <-k.round }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := rpc.Expect(ctx, answerBytes+k.LedgerBytes()*manifestFactor); err != nil {
		return nil, err
	}
	g.turns.said(k, c.params.Input.UserText)
	done, err := k.Round(ctx, g.compileInput(&c.params.Input, k.context.Now))
	if done == nil {
		return nil, engineError(err)
	}
	return done, nil
}

// compileInput is the input as the engine takes it.
func (g *Gateway) compileInput(given *surface.TurnInput, at time.Time) runtime.CompileInput {
	in := given.CompileInput()
	in.Prompt.Facts = g.opts.Facts
	in.Prompt.Facts.TimeZone = cmp.Or(in.Prompt.Facts.TimeZone, surface.ZoneName(at))
	return in
}

// dispatchInTurn answers as "grapnel dispatch --json" prints.
func (g *Gateway) dispatchInTurn(ctx context.Context, c call[turnDispatchParams]) (*phases.Outcome, error) {
	in, err := phaseInput(c.params.Phase, c.params.Input)
	if err != nil {
		return nil, err
	}
	switch c.params.Phase {
	case phases.PostTurn:
		return nil, rpc.Errorf(rpc.CodeInvalid, "phase: %s is the end of a turn: call turn/end", c.params.Phase)
	case phases.SessionStart, phases.SessionResume, phases.SessionEnd:
		return nil, rpc.Errorf(rpc.CodeInvalid, "phase: %s is in no turn: call session/start, session/resume or session/end", c.params.Phase)
	default:
	}
	return inTurn(ctx, g, c.Caller, c.params.Handle, func(ctx context.Context, k *keptTurn) (*phases.Outcome, error) {
		return outcomeOf(k.Dispatch(ctx, in))
	})
}

// outcomeOf is an outcome as it is answered: one that failed closed has its error in
// it.
func outcomeOf(out *phases.Outcome, err error) (*phases.Outcome, error) {
	if out == nil {
		return nil, engineError(err)
	}
	return out, nil
}

// callTool answers for a model that has called a tool.
func (g *Gateway) callTool(ctx context.Context, c call[toolParams]) (*toolAnswer, error) {
	call := phases.ToolCall{Tool: c.params.Tool, Arguments: c.params.Arguments, IdempotencyKey: c.params.IdempotencyKey}
	return inTurn(ctx, g, c.Caller, c.params.Handle, func(ctx context.Context, k *keptTurn) (*toolAnswer, error) {
		res, err := k.CallTool(ctx, call)
		if refused, ok := errors.AsType[*phases.Error](err); ok {
			return &toolAnswer{IsError: true, Diagnostics: []phases.Diagnostic{}, Error: refused}, nil
		}
		if err != nil {
			return nil, engineError(err)
		}
		return &toolAnswer{Content: res.Content, IsError: res.IsError, Diagnostics: append([]phases.Diagnostic{}, res.Diagnostics...)}, nil
	})
}

// end answers with the outcome of turn.post_turn.
func (g *Gateway) end(ctx context.Context, c call[endParams]) (*phases.Outcome, error) {
	if err := phases.ValidateInput(&c.params.End); err != nil {
		return nil, &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error()}
	}
	kept, err := g.turns.take(c.Caller, c.params.Handle)
	if err != nil {
		return nil, err
	}
	g.metrics.turnEnded(endAsked)
	end := func(ctx context.Context) (*phases.Outcome, error) {
		return outcomeOf(g.turns.finish(ctx, kept, &c.params.End))
	}
	if !c.params.Wait {
		return end(ctx)
	}
	return g.collected(ctx, "the turn has ended", end)
}

// completeTurn is completeContext for a turn that is compared by its ids, of a
// workspace that is there, where there is an engine for it.
func (g *Gateway) completeTurn(ctx context.Context, c *rpc.Caller, turn phases.Turn) (phases.Turn, error) {
	if err := needIDs("turn", "manifests are kept, and prompts compared, by it",
		namedID{"workspace_id", turn.WorkspaceID}, namedID{"thread_id", turn.ThreadID}, namedID{"turn_id", turn.TurnID}); err != nil {
		return turn, err
	}
	return g.completeContext(ctx, c, "turn", turn)
}

package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/internal/surface"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// compileParams are those of turn/compile.
type compileParams struct {
	Turn  phases.Turn       `json:"turn"            jsonschema:"where and when; workspace_id, thread_id and turn_id are needed. A dir must lie below one of the gateway's roots"`
	Input surface.TurnInput `json:"input,omitzero"  jsonschema:"what the host brings"`
	Actor string            `json:"actor,omitempty"`
}

// dispatchParams are those of phase/dispatch.
type dispatchParams struct {
	Phase   phases.Phase    `json:"phase"`
	Context phases.Context  `json:"context,omitzero" jsonschema:"where and when. A dir must lie below one of the gateway's roots"`
	Input   json.RawMessage `json:"input,omitempty"  jsonschema:"the input of the phase, as its schema has it"`
	Actor   string          `json:"actor,omitempty"`
}

// finishParams are those of turn/finish.
type finishParams struct {
	Turn  phases.Turn          `json:"turn"            jsonschema:"as it was given to turn/compile"`
	Input surface.TurnInput    `json:"input,omitzero"  jsonschema:"as it was given to turn/compile; user_text, model and provider are looked at"`
	End   phases.PostTurnInput `json:"end"             jsonschema:"how the turn ended, as the input of turn.post_turn. Without a user_text it has that of the input"`
	Wait  bool                 `json:"wait,omitempty"  jsonschema:"answer only when the background work of this gateway is done"`
	Actor string               `json:"actor,omitempty"`
}

// toolParams are those of tool/call.
type toolParams struct {
	Turn           phases.Turn       `json:"turn"                      jsonschema:"as it was given to turn/compile"`
	Input          surface.TurnInput `json:"input,omitzero"            jsonschema:"as it was given to turn/compile; user_text, model, provider and existing_tools are looked at"`
	Tool           string            `json:"tool"                      jsonschema:"the tool's name, as turn/compile has offered it"`
	Arguments      json.RawMessage   `json:"arguments,omitempty"       jsonschema:"the arguments, as the model gave them"`
	IdempotencyKey string            `json:"idempotency_key,omitempty" jsonschema:"the id that the model gave the call: the same call again does nothing twice"`
	Actor          string            `json:"actor,omitempty"`
}

// toolAnswer is the result of tool/call.
type toolAnswer struct {
	Content     json.RawMessage     `json:"content"         jsonschema:"the tool's answer, any JSON"`
	IsError     bool                `json:"is_error"        jsonschema:"whether the tool tells the model of a failure, or error says why it did not answer"`
	Diagnostics []phases.Diagnostic `json:"diagnostics"`
	Error       *phases.Error       `json:"error,omitempty" jsonschema:"why the call was refused, or failed; content is null then"`
}

func (g *Gateway) turnMethods() []rpc.Method {
	return []rpc.Method{
		method("turn/compile", rpc.CompileRight,
			"Runs a turn through the plugins, compiles its prompt and records its manifest. A turn that was denied, or whose phase failed closed, is a result with an error in it.",
			func(p *compileParams) asked { return asked{&p.Turn.WorkspaceID, &p.Actor} }, g.compile),
		method("turn/finish", rpc.DispatchRight,
			"Tells the plugins that a turn is over, under the policies of its input; they go on in the background. The same turn again does nothing twice.",
			func(p *finishParams) asked { return asked{&p.Turn.WorkspaceID, &p.Actor} }, g.finish),
		method("tool/call", rpc.DispatchRight,
			"Calls a tool of a plugin in a turn, under the policies of its input. A call that was refused, or failed, is a result with an error in it.",
			func(p *toolParams) asked { return asked{&p.Turn.WorkspaceID, &p.Actor} }, g.callTool),
		method("phase/dispatch", rpc.DispatchRight,
			"Runs one phase through the plugins. One that failed closed is a result with an error in it.",
			func(p *dispatchParams) asked { return asked{&p.Context.WorkspaceID, &p.Actor} }, g.dispatch),
	}
}

// errNoEngine is the answer of a gateway without an engine.
func errNoEngine() error {
	return rpc.Errorf(rpc.CodeUnavailable, "this gateway has no engine: it compiles and dispatches nothing")
}

// compile answers as "grapnel compile --json" prints: what is known of a blocked
// turn is what its host needs.
func (g *Gateway) compile(ctx context.Context, c call[compileParams]) (*runtime.Compiled, error) {
	turn, err := g.completeTurn(c.params.Turn)
	if err != nil {
		return nil, err
	}
	in := c.params.Input.CompileInput()
	in.Prompt.Facts = g.opts.Facts
	in.Prompt.Facts.TimeZone = cmp.Or(in.Prompt.Facts.TimeZone, surface.ZoneName(turn.Now))
	done, err := g.opts.Engine.CompileTurn(ctx, turn, in)
	if done == nil {
		return nil, engineError(err)
	}
	return done.For(audience(c.Caller)), nil
}

// finish answers with the outcome of turn.post_turn. Work that nobody has waited long
// enough for goes on.
func (g *Gateway) finish(ctx context.Context, c call[finishParams]) (*phases.Outcome, error) {
	turn, err := g.completeTurn(c.params.Turn)
	if err != nil {
		return nil, err
	}
	if err := phases.ValidateInput(&c.params.End); err != nil {
		return nil, &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error()}
	}
	out, err := g.opts.Engine.FinishTurn(ctx, turn, c.params.Input.CompileInput(), c.params.End)
	if out == nil {
		return nil, engineError(err)
	}
	out = out.For(audience(c.Caller))
	if !c.params.Wait {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := g.opts.Engine.WaitBackground(ctx); err != nil {
		return nil, rpc.Errorf(rpc.CodeUnavailable, "the turn is finished; its background work was not done within %v and goes on", callTime)
	}
	return out, nil
}

// callTool answers for a model that has called a tool, so it can call tools.
func (g *Gateway) callTool(ctx context.Context, c call[toolParams]) (*toolAnswer, error) {
	turn, err := g.completeTurn(c.params.Turn)
	if err != nil {
		return nil, err
	}
	in := c.params.Input.CompileInput()
	in.ToolCalling = true
	res, err := g.opts.Engine.CallTurnTool(ctx, turn, in, phases.ToolCall{
		Tool: c.params.Tool, Arguments: c.params.Arguments, IdempotencyKey: c.params.IdempotencyKey,
	})
	if refused, ok := errors.AsType[*phases.Error](err); ok {
		return &toolAnswer{IsError: true, Diagnostics: []phases.Diagnostic{}, Error: refused.For(audience(c.Caller))}, nil
	}
	if err != nil {
		return nil, engineError(err)
	}
	return &toolAnswer{Content: res.Content, IsError: res.IsError, Diagnostics: phases.DiagnosticsFor(res.Diagnostics, audience(c.Caller))}, nil
}

// completeTurn is completeContext for a turn that is kept and compared by its ids,
// where there is an engine for it.
func (g *Gateway) completeTurn(turn phases.Turn) (phases.Turn, error) {
	turn, err := g.completeContext("turn", turn)
	if err != nil {
		return turn, err
	}
	for _, id := range []struct{ name, value string }{
		{"workspace_id", turn.WorkspaceID}, {"thread_id", turn.ThreadID}, {"turn_id", turn.TurnID},
	} {
		if id.value == "" {
			return turn, rpc.Errorf(rpc.CodeInvalid, "turn.%s: it is missing; manifests are kept, and prompts compared, by it", id.name)
		}
	}
	if g.opts.Engine == nil {
		return turn, errNoEngine()
	}
	if turn.Now.IsZero() {
		turn.Now = g.opts.Now()
	}
	return turn, nil
}

// dispatch answers as "grapnel dispatch --json" prints.
func (g *Gateway) dispatch(ctx context.Context, c call[dispatchParams]) (*phases.Outcome, error) {
	table := phases.Standard()
	if _, known := table.Lookup(c.params.Phase); !known {
		return nil, rpc.Errorf(rpc.CodeInvalid, "phase: unknown phase %q%s", c.params.Phase, phases.DidYouMean(string(c.params.Phase), table.Names()))
	}
	in, err := phases.DecodeInput(table, c.params.Phase, c.params.Input)
	if err != nil {
		return nil, &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error()}
	}
	if err := phases.ValidateInput(in); err != nil {
		return nil, &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error()}
	}
	where, err := g.completeContext("context", c.params.Context)
	if err != nil {
		return nil, err
	}
	if g.opts.Engine == nil {
		return nil, errNoEngine()
	}
	out, err := g.opts.Engine.Dispatch(ctx, where, in)
	if out == nil {
		return nil, engineError(err)
	}
	return out.For(audience(c.Caller)), nil
}

// completeContext fills in what the command line does, but for what only its user
// can mean: ids and a folder.
func (g *Gateway) completeContext(name string, c phases.Context) (phases.Context, error) {
	c, err := surface.Complete(c)
	if err != nil {
		return c, rpc.Errorf(rpc.CodeInvalid, "%s.profile: %v", name, err)
	}
	if c.Dir, err = g.inRoots(c.Dir); err != nil {
		return c, rpc.Errorf(rpc.CodeInvalid, "%s.dir: %v", name, err)
	}
	return c, nil
}

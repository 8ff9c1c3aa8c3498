package runtime

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// CallTool calls a tool of the named plugin outside any turn: what a turn has brought in or hides does not matter,
// and the call is only reported as an [EventRun]. The plugin sees no policies. The call takes no longer than the
// plugin's limits.tool and ctx allow. An error is a *[phases.Error]; a failure that the tool reports to the model
// (IsError) is not one. The call's context and idempotency key have the bounds of [phases.CheckContext].
func (e *Engine) CallTool(ctx context.Context, plugin string, call phases.ToolCall) (*phases.ToolResult, error) {
	g, err := e.acquire()
	if err != nil {
		return nil, err
	}
	defer g.leave()
	if err := phases.CheckContext(&call.Context); err != nil {
		return nil, err
	}
	if err := phases.CheckID("idempotency_key", call.IdempotencyKey); err != nil {
		return nil, err
	}
	call.OutsideTurn, call.Policies = true, nil
	res, _, err := e.callTool(ctx, g, g.outside(), plugin, call, nil)
	return res, err
}

// CallTool calls a tool of this turn: one that a plugin's tool bundle has brought in and that is not hidden, or the
// engine's own request_tools, which loads hidden ones. Other tools are refused with CauseForbidden and a message that
// says what to do.
//
// Each call, also a refused one, leaves a row in the turn's ledger, and in the runs of the next manifest, under the
// phase [phases.PhaseToolCall]. Calls may run concurrently. The result is handed out whole; a preview of it belongs
// into tool.post_call.
//
// The plugin gets the turn's context and, with the grant see: policy, its policies, in place of the call's. The
// idempotency key has at most [phases.MaxIDBytes]; without one the call is numbered. A host that may repeat a call gives
// a key, such as the model's id of the call. It need be unique within the turn only, as the ids of some models are: the
// plugin gets it behind the turn's ids. A turn with a full ledger makes no call
// ([Turn.LedgerBytes]).
func (t *Turn) CallTool(ctx context.Context, call phases.ToolCall) (*phases.ToolResult, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	if err := t.state.Admit(); err != nil {
		return nil, err
	}
	call.Context, call.OutsideTurn = t.now(t.context), false
	id := call.IdempotencyKey
	if err := phases.CheckID("idempotency_key", call.IdempotencyKey); err != nil {
		return nil, t.refuseTool(ctx, "", &call, err)
	}
	if call.Tool == phases.RequestTools {
		return t.requestTools(ctx, call)
	}
	owner, refused := t.state.Callable(call.Tool)
	if refused != nil {
		return nil, t.refuseTool(ctx, owner, &call, refused)
	}
	if id != "" {
		call.IdempotencyKey = t.scope() + "call/" + id
	} else if key := t.key(phases.PhaseToolCall); key != "" {
		call.IdempotencyKey = key + "/" + owner + "." + call.Tool
	}
	call.Policies = t.state.Policies()
	remark, wrong := t.state.CallRemark(&call, t.gen.planned.Load().phases[phases.ToolPreCall].Running())
	res, run, err := t.engine.callTool(ctx, t.gen, t.state, owner, call, t.usage.Last(&t.prompt).Ref)
	t.state.AddCall(run, &call, id, res)
	if wrong {
		t.engine.emit(Event{
			Kind: EventDiagnostic, Plugin: owner, Subscription: run.Subscription, Phase: phases.PhaseToolCall,
			State: string(remark.Severity), Code: remark.Code, Message: remark.Message,
		})
		if res != nil {
			res.Diagnostics = append(slices.Clip(res.Diagnostics), remark)
		}
	}
	return res, err
}

// RequestTools makes the tools of hidden domains callable in this turn, as [CompileInput].RequestedDomains does, for a
// host that compiles no prompt.
func (t *Turn) RequestTools(domains ...string) { t.state.Ask(domains) }

func (t *Turn) refuseTool(ctx context.Context, owner string, call *phases.ToolCall, why *phases.Error) error {
	run := newToolRun(t.gen, owner, call.Tool)
	t.engine.settleTool(ctx, nil, &run, nil, why)
	t.state.AddCall(run, call, text.Head(text.Repair(call.IdempotencyKey), phases.MaxIDBytes), nil)
	return why
}

//nolint:gochecknoglobals // an immutable plan of a type
var answerEncoder = sync.OnceValue(digest.EncoderOf[turnstate.Loaded])

// requestTools answers a call of request_tools. Errors of the model are in the answer (IsError); valid domains are
// loaded anyway.
func (t *Turn) requestTools(ctx context.Context, call phases.ToolCall) (*phases.ToolResult, error) {
	begin := time.Now()
	if !t.state.OffersRequest() {
		return nil, t.refuseTool(ctx, phases.OwnerBuiltin, &call,
			turnstate.RefusedTool("%s was not offered in this turn: nothing is hidden, or the prompt does not list it", phases.RequestTools))
	}
	var a turnstate.Loaded
	names, err := turnstate.RequestedDomains(call.Arguments)
	if err == nil {
		a = t.state.Load(names)
		loaded := make([]string, len(a.Loaded))
		for i := range a.Loaded {
			loaded[i] = a.Loaded[i].Domain
		}
		t.engine.sessions.Ask(t.now(t.context), loaded)
	} else {
		a = t.state.Load(nil)
		a.Errors = []string{err.Error()}
	}
	content, err := answerEncoder().Append(nil, &a)
	if err != nil {
		return nil, t.refuseTool(ctx, phases.OwnerBuiltin, &call, phases.Errorf(phases.CauseInternal, "the answer of %s: %w", call.Tool, err))
	}
	res := &phases.ToolResult{Content: content, IsError: len(a.Errors) > 0}
	run := newToolRun(t.gen, phases.OwnerBuiltin, call.Tool)
	run.Attempts, run.DurationMS = 1, turnstate.Millis(time.Since(begin))
	t.engine.settleTool(ctx, nil, &run, res, nil)
	t.state.AddCall(run, &call, call.IdempotencyKey, nil)
	return res, nil
}

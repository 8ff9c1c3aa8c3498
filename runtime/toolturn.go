package runtime

import (
	"context"
	"maps"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
)

// CallTool calls a tool that is there in this turn: one of a plugin, which that
// plugin's tool bundle has brought in and which is not hidden, or the engine's own
// request_tools, which loads hidden ones. A tool that is not there is refused with
// CauseForbidden and a message that says what to do; removing a tool from the
// bundles of turn.pre_tool_materialization removes the ability to call it.
//
// Each call, also a refused one, leaves a row in the turn's ledger: the next
// Compile has it in its manifest's runs, under the phase [phases.PhaseToolCall].
// Calls may run concurrently. The result is handed out whole; a preview of it
// belongs into tool.post_call.
//
// The call's idempotency key has at most [phases.MaxIDBytes]. A turn whose ledger is
// full makes no call ([Turn.LedgerBytes]); the next manifest says how many it refused.
//
// The plugin is told the turn's context and, with the grant see: policy, the turn's
// policies so far; what the call says of either does not count.
//
// Without an idempotency key the call gets one of the turn's, numbered as the
// calls come; a host that may repeat a call gives its own, such as the id that the
// model gave the call.
func (t *Turn) CallTool(ctx context.Context, call phases.ToolCall) (*phases.ToolResult, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave()
	if err := t.scope.admit(); err != nil {
		return nil, err
	}
	call.Context, call.OutsideTurn = t.context, false
	if err := phases.CheckID("idempotency_key", call.IdempotencyKey); err != nil {
		return nil, t.refuseTool(ctx, "", call.Tool, err)
	}
	if call.Tool == phases.RequestTools {
		return t.requestTools(ctx, call)
	}
	owner, refused := t.scope.callable(call.Tool)
	if refused != nil {
		return nil, t.refuseTool(ctx, owner, call.Tool, refused)
	}
	if call.IdempotencyKey == "" {
		if key := t.key(phases.PhaseToolCall); key != "" {
			call.IdempotencyKey = key + "/" + owner + "." + call.Tool
		}
	}
	call.Policies = t.scope.policySet()
	remark, wrong := t.callRemark(&call)
	res, run, err := t.engine.callTool(ctx, t.gen, t.scope, owner, call)
	t.scope.called(run, res)
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

// refuseTool leaves the row of a call that was not made.
func (t *Turn) refuseTool(ctx context.Context, owner, tool string, why *phases.Error) error {
	run := newToolRun(t.gen, owner, tool)
	t.engine.settleTool(ctx, nil, &run, nil, why)
	t.scope.called(run, nil)
	return why
}

// refusedTool is the error of a call that the turn does not allow. Its message is
// for the model, too.
func refusedTool(format string, args ...any) *phases.Error {
	return phases.Errorf(phases.CauseForbidden, format, args...)
}

// callable returns the plugin that brought a tool into the turn, and why the tool
// cannot be called, if it cannot.
func (s *scope) callable(name string) (owner string, refused *phases.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known []string
	for _, t := range s.allTools() {
		if t.Name != name {
			known = append(known, t.Name)
			continue
		}
		if d := t.Definition.HiddenDomain; d != "" && !s.asked[d] {
			return t.Owner, refusedTool("the tool %q is hidden: call %s with its domain %q first", name, phases.RequestTools, d)
		}
		return t.Owner, nil
	}
	return "", refusedTool("no plugin has brought a tool %.80q into this turn%s: only what turn.pre_tool_materialization brought can be called",
		name, phases.DidYouMean(name, known))
}

// policySet are the turn's policies so far; they must not be changed.
func (s *scope) policySet() []phases.PolicyEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.policies)
}

// called puts a tool call into the ledger, with what its answer remarked.
func (s *scope) called(run phases.Run, res *phases.ToolResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.addRuns(run)
	if res != nil {
		s.notes.add(res.Diagnostics)
	}
}

// offer notes what a prompt offers the model. Once request_tools was offered it is
// answered to the end of the turn: a model may call it twice at a time.
func (s *scope) offer(offered []phases.MergedTool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requestable = s.requestable || slices.ContainsFunc(offered, func(t phases.MergedTool) bool {
		return t.Name == phases.RequestTools && t.Owner == phases.OwnerBuiltin
	})
}

// requested are the hidden domains that were asked for, sorted.
func (s *scope) requested() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.asked))
}

// definitions are the tools of a request that the host does not know itself.
func definitions(offered []phases.MergedTool) []phases.Tool {
	list := make([]phases.Tool, 0, len(offered))
	for i := range offered {
		if offered[i].Owner != phases.OwnerHost {
			list = append(list, offered[i].Definition)
		}
	}
	return list
}

// toolNames are all tools that the model will be offered.
func toolNames(offered []phases.MergedTool, existing []string) []string {
	names := slices.Clone(existing)
	for i := range offered {
		names = append(names, offered[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
)

type (
	// toolParams are a call that the model made.
	toolParams struct {
		Handle    string          `json:"handle"              jsonschema:"the turn, as turn/begin gave it"`
		CallID    string          `json:"call_id,omitempty"   jsonschema:"the id that the model gave the call: reminders name it, and the same call of a plugin's tool again does nothing twice"`
		Tool      string          `json:"tool"                jsonschema:"the tool's name"`
		Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"the arguments as the model wrote them: a JSON object"`
		Paths     []string        `json:"paths,omitempty"     jsonschema:"files and directories that the call is about"`
		Actor     string          `json:"actor,omitempty"`
	}
	checkParams struct {
		toolParams

		Allowed *bool `json:"allowed,omitempty" jsonschema:"what a person said about a call whose last answer was the verdict ask. A denied call stays denied"`
	}
	finishParams struct {
		toolParams

		Text       string  `json:"text"                  jsonschema:"what the tool gave"`
		IsError    bool    `json:"is_error,omitempty"    jsonschema:"whether the tool failed"`
		DurationMS float64 `json:"duration_ms,omitempty" jsonschema:"how long the call took, for the end of the turn"`
	}
)

// call returns the call, or an error that names what is too long.
func (p *toolParams) call() (loop.Call, error) {
	for _, id := range []namedID{{"call_id", p.CallID}, {"tool", p.Tool}} {
		if err := phases.CheckID(id.name, id.value); err != nil {
			return loop.Call{}, engineError(err)
		}
	}
	if p.Tool == "" {
		return loop.Call{}, rpc.Errorf(rpc.CodeInvalid, "tool: it is empty")
	}
	in := &phases.ToolPreCallInput{Tool: p.Tool, Arguments: p.Arguments, TouchedPaths: p.Paths}
	if err := phases.ValidateInput(in); err != nil {
		return loop.Call{}, &rpc.Error{Code: rpc.CodeInvalid, Message: err.Error()}
	}
	return loop.Call{ID: p.CallID, Tool: p.Tool, Arguments: p.Arguments, Paths: p.Paths}, nil
}

type (
	checkedCall struct {
		Arguments   json.RawMessage     `json:"arguments"              jsonschema:"the arguments to call the tool with: a hook may have rewritten them; null if there are none"`
		Paths       []string            `json:"paths"                  jsonschema:"files and directories that the call is about now"`
		Refused     *refusedCall        `json:"refused,omitempty"      jsonschema:"why the call must not be made; absent if it may"`
		DecisionRef *phases.DecisionRef `json:"decision_ref,omitempty" jsonschema:"the record of the prompt in force when hooks decided about the call; absent if none did, or no prompt is known"`
	}
	refusedCall struct {
		Verdict    phases.Verdict `json:"verdict"               jsonschema:"deny; or ask: a person may allow the call. Ask one, and make the same call of this method again with allowed"`
		By         string         `json:"by,omitempty"          jsonschema:"the subscription that decided, if one did"`
		Reason     string         `json:"reason,omitempty"`
		ReasonCode string         `json:"reason_code,omitempty"`
		Text       string         `json:"text"                  jsonschema:"the result of the call for the model, unless a person allows it"`
	}
	finishedCall struct {
		Text    string `json:"text"     jsonschema:"the result for the model: hooks may have rewritten it, and it is trimmed to the turn's max_result_chars"`
		IsError bool   `json:"is_error" jsonschema:"whether the result tells the model of a failure"`
		Changed bool   `json:"changed"  jsonschema:"whether text is not what the tool gave"`
	}
	calledTool struct {
		finishedCall

		Refused     *refusedCall        `json:"refused,omitempty"      jsonschema:"why the call was not made; absent if it was"`
		Error       *phases.Error       `json:"error,omitempty"        jsonschema:"why the tool did not answer; absent if it did"`
		Diagnostics []phases.Diagnostic `json:"diagnostics"`
		DecisionRef *phases.DecisionRef `json:"decision_ref,omitempty" jsonschema:"the record of the prompt in force when hooks decided about the call; absent if none did, or no prompt is known"`
	}
)

// For is the answer as the audience may see it. Text is for the model, and the same for all.
func (a *calledTool) For(who phases.Audience) *calledTool {
	shown := *a
	shown.Error, shown.Diagnostics = a.Error.For(who), phases.DiagnosticsFor(a.Diagnostics, who)
	return &shown
}

func refusedOf(r *loop.Refused) *refusedCall {
	if r == nil {
		return nil
	}
	return &refusedCall{Verdict: r.Verdict, By: r.By, Reason: r.Reason, ReasonCode: r.ReasonCode, Text: r.Error()}
}

func finishedOf(r *loop.Result) finishedCall {
	return finishedCall{Text: r.Text, IsError: r.IsError, Changed: r.Changed}
}

func (g *Gateway) toolMethods() []rpc.Method {
	return []rpc.Method{
		method(group{}, "tool/call", rpc.DispatchRight,
			"Makes a call of a plugin's tool, or of request_tools, which loads hidden ones: the hooks of tool.pre_call judge and rewrite it, those of tool.post_call its result. A call that was refused, or failed, is a result that says so.",
			g.callTool),
		method(group{}, "tool/check", rpc.DispatchRight,
			"Has a call of the client's own tool judged and rewritten (tool.pre_call), before the client makes it. A refused call is a result that says so.",
			g.checkTool),
		method(group{}, "tool/finish", rpc.DispatchRight,
			"Has the result of a checked call seen, rewritten (tool.post_call) and trimmed, and returns what the model gets. A call that was refused is not finished.",
			g.finishTool),
	}
}

type answerKey struct{}

// withAnswer lets answered find what a person said.
func withAnswer(ctx context.Context, allowed *bool) context.Context {
	return context.WithValue(ctx, answerKey{}, allowed)
}

// answered is what the client says that a person said: the gateway itself asks nobody.
func answered(ctx context.Context, _ *loop.Refused) (bool, error) {
	allowed, _ := ctx.Value(answerKey{}).(*bool)
	if allowed == nil {
		return false, loop.ErrNotYet
	}
	return *allowed, nil
}

func (g *Gateway) callTool(ctx context.Context, c call[checkParams]) (*calledTool, error) {
	call, err := c.params.call()
	if err != nil {
		return nil, err
	}
	return inTurn(ctx, g, c.Caller, c.params.Handle, func(ctx context.Context, k *keptTurn) (*calledTool, error) {
		return runTool(withAnswer(ctx, c.params.Allowed), k, call)
	})
}

// runTool makes a call of a plugin's tool in a turn.
func runTool(ctx context.Context, t hostTurn, call loop.Call) (*calledTool, error) {
	done := &calledTool{Diagnostics: []phases.Diagnostic{}}
	r, err := t.RunTool(ctx, call, func(ctx context.Context, call loop.Call) (string, bool, error) {
		done.DecisionRef = call.DecisionRef
		res, err := t.CallTool(ctx, phases.ToolCall{Tool: call.Tool, Arguments: call.Arguments, IdempotencyKey: call.ID})
		done.Error, _ = errors.AsType[*phases.Error](err)
		if err != nil {
			return "", true, err
		}
		done.Diagnostics = append(done.Diagnostics, res.Diagnostics...)
		return res.Text(), res.IsError, nil
	})
	if err != nil {
		return nil, engineError(err)
	}
	if done.finishedCall, done.Refused = finishedOf(&r), refusedOf(r.Refused); r.Refused != nil {
		done.DecisionRef = r.Refused.DecisionRef
	}
	return done, nil
}

func (g *Gateway) checkTool(ctx context.Context, c call[checkParams]) (*checkedCall, error) {
	call, err := c.params.call()
	if err != nil {
		return nil, err
	}
	return inTurn(ctx, g, c.Caller, c.params.Handle, func(ctx context.Context, k *keptTurn) (*checkedCall, error) {
		checked, refused, err := k.CheckTool(withAnswer(ctx, c.params.Allowed), call)
		if err != nil {
			return nil, engineError(err)
		}
		return &checkedCall{Arguments: checked.Arguments, Paths: append([]string{}, checked.Paths...), Refused: refusedOf(refused), DecisionRef: checked.DecisionRef}, nil
	})
}

func (g *Gateway) finishTool(ctx context.Context, c call[finishParams]) (*finishedCall, error) {
	call, err := c.params.call()
	if err != nil {
		return nil, err
	}
	if c.params.DurationMS < 0 {
		return nil, rpc.Errorf(rpc.CodeInvalid, "duration_ms: it is below 0")
	}
	took := time.Duration(min(c.params.DurationMS, float64(24*time.Hour/time.Millisecond)) * float64(time.Millisecond))
	return inTurn(ctx, g, c.Caller, c.params.Handle, func(ctx context.Context, k *keptTurn) (*finishedCall, error) {
		r, err := k.FinishTool(ctx, call, c.params.Text, c.params.IsError, took)
		if err != nil {
			return nil, engineError(err)
		}
		done := finishedOf(&r)
		return &done, nil
	})
}

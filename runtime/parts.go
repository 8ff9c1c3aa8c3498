package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/grapnelhq/grapnel/phases"
)

// CallTurnTool calls a tool of a turn for hosts that keep no [Turn], such as those
// behind a gateway: it goes through turn.pre_policy and turn.pre_tool_materialization
// again, with the same input, and then does what [Turn.CallTool] does. A tool that
// Prompt.RequestedDomains does not name is hidden as before. What these phases decide
// against the turn is an error, as of [Engine.CompileTurn].
//
// The call is told as an [EventRun]; it is in no manifest. A host that may repeat a
// call gives it an idempotency key, such as the id that the model gave the call;
// without one, each is a call of its own.
func (e *Engine) CallTurnTool(ctx context.Context, turn phases.Turn, in CompileInput, call phases.ToolCall) (*phases.ToolResult, error) {
	if call.IdempotencyKey == "" {
		id, err := ulid.New(ulid.Timestamp(e.opts.Now()), e.opts.Entropy)
		if err != nil {
			return nil, fmt.Errorf("a call's id: %w", err)
		}
		call.IdempotencyKey = id.String()
	}
	t, err := e.BeginTurn(ctx, turn)
	if err != nil {
		return nil, err
	}
	defer t.close(ctx)
	for _, step := range []phases.Input{in.prePolicy(), in.preTools()} {
		if err := t.pass(ctx, step); err != nil {
			return nil, err
		}
	}
	t.scope.ask(in.Prompt.RequestedDomains)
	return t.CallTool(ctx, call)
}

// FinishTurn tells the hooks of turn.post_turn that a turn is over, for hosts that
// keep no [Turn]. It goes through turn.pre_policy again, with the same input, since
// that says what these hooks may do; its diagnostics come first. An empty UserText of the end is that of the
// input. Finished again, the same turn has the same idempotency keys.
//
// A turn that turn.pre_policy denies was never answered: its end is told all the same.
func (e *Engine) FinishTurn(ctx context.Context, turn phases.Turn, in CompileInput, end phases.PostTurnInput) (*phases.Outcome, error) {
	t, err := e.BeginTurn(ctx, turn)
	if err != nil {
		return nil, err
	}
	policy, _ := t.Dispatch(ctx, in.prePolicy()) // what failed is in its diagnostics
	end.UserText = cmp.Or(end.UserText, phases.NewPreview(in.UserText, phases.MaxTurnText))
	out, err := t.End(ctx, &end)
	if policy != nil && out != nil {
		out.Diagnostics = append(slices.Clip(policy.Diagnostics), out.Diagnostics...)
	}
	return out, err
}

// pass dispatches a phase ahead of what the turn is for; what stops the turn is an
// error.
func (t *Turn) pass(ctx context.Context, step phases.Input) error {
	out, err := t.Dispatch(ctx, step)
	if err != nil {
		return err
	}
	return blockedBy(out)
}

func (in *CompileInput) prePolicy() *phases.PrePolicyInput {
	return &phases.PrePolicyInput{UserText: phases.T(in.UserText), Model: in.Model, Provider: in.Provider}
}

func (in *CompileInput) preTools() *phases.PreToolsInput {
	return &phases.PreToolsInput{ToolCalling: in.ToolCalling, ExistingTools: in.ExistingTools}
}

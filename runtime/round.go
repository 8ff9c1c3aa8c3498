package runtime

import (
	"context"
	"errors"

	"github.com/grapnelhq/grapnel/phases"
)

// Round compiles the prompt of one round with the provider, for hosts that leave the
// order of phases to the engine: first the phases ahead of the compiler that
// [Engine.CompileTurn] names, then [Turn.Compile]. A phase that this turn has passed
// already, in an earlier round or by [Turn.Dispatch], is not dispatched again; one that
// failed or was denied when it was last dispatched is, so that no later round gets past
// it. An ask counts as passed only where the host dispatched the phase itself, and so
// could ask somebody. Rounds of one turn must not run concurrently. The result and the
// error are those of CompileTurn; when the result is nil, [Turn.Compile] says.
func (t *Turn) Round(ctx context.Context, in CompileInput) (*Compiled, error) {
	if err := t.enterRound(&in); err != nil {
		return nil, err
	}
	defer t.leave()
	err := t.before(ctx, in)
	switch {
	case err == nil:
		return t.compile(ctx, in)
	case errors.Is(err, ErrTurnEnded):
		return nil, err
	}
	r, failed := t.newRecording()
	if failed != nil {
		return nil, failed
	}
	return r.blocked(ctx, in, err)
}

// before runs the phases ahead of the compiler that the turn has not passed yet.
func (t *Turn) before(ctx context.Context, in CompileInput) error {
	text := phases.T(in.UserText)
	steps := []phases.Input{
		&phases.PrePolicyInput{UserText: text, Model: in.Model, Provider: in.Provider},
		&phases.PrePromptContextInput{UserText: text, Model: in.Model, Provider: in.Provider},
	}
	if len(in.RecallPlan) > 0 {
		steps = append(steps, &phases.PostPreflightInput{UserText: text, Model: in.Model, Provider: in.Provider, RecallPlan: in.RecallPlan})
	}
	steps = append(steps, &phases.PreToolsInput{ToolCalling: in.ToolCalling, ExistingTools: in.ExistingTools})
	for _, step := range steps {
		if t.scope.hasPassed(step.Phase()) {
			continue
		}
		out, err := t.Dispatch(ctx, step)
		if err == nil {
			err = blockedBy(out)
		}
		if err != nil {
			t.scope.stop(step.Phase()) // nobody was asked
			return err
		}
	}
	return nil
}

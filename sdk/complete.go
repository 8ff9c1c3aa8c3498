package sdk

import (
	"context"
	"encoding/json"

	"github.com/grapnelhq/grapnel/phases"
)

// Complete asks the host's model: the method "complete" of the host service
// "model", by the grant "model.complete". Pass the handler's context on: the call
// is charged to the turn, ends with the hook, and is refused without one.
//
// An error is a *phases.Error, and often: without the service (CauseUnavailable;
// see Configuration.Services) or the grant (CauseForbidden), after the operator's
// budget for the turn (CauseBudgetExhausted), without an answer in time
// (CauseTimeout), for one that is no JSON although a schema was given
// (CauseInvalidReply). A plugin should do without then. The host asks the model
// once; what is Retryable may be asked again, out of the same budget.
func Complete(ctx context.Context, host phases.Host, rq phases.CompletionRequest) (*phases.CompletionResponse, error) {
	if host == nil {
		return nil, phases.Errorf(phases.CauseUnavailable, "there is no host before the first Configure")
	}
	params, err := json.Marshal(rq)
	if err != nil {
		return nil, phases.Errorf(phases.CauseInvalidReply, "the request is not valid: %w", err)
	}
	answer, err := host.Call(ctx, "model", "complete", params)
	if err != nil {
		return nil, err
	}
	res := &phases.CompletionResponse{}
	if err := json.Unmarshal(answer, res); err != nil {
		return nil, phases.Errorf(phases.CauseInvalidReply, "the host's answer: %w", err)
	}
	return res, nil
}

package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/advice"
	"github.com/grapnelhq/grapnel/plugins/memory/recall"
)

// maxComplaint bounds what is said of a failure of a model, in characters.
const maxComplaint = 200

// errNoModel is why no model is asked although the configuration wants one.
var errNoModel = errors.New("the host grants no model (grants.host: model.complete)")

// ask asks a model through the host, and leaves the caller time to go on without.
func (m *memory) ask(ctx context.Context, host phases.Host, r phases.CompletionRequest) (*phases.CompletionResponse, error) {
	if !m.model || host == nil {
		return nil, errNoModel
	}
	params, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-reserve))
		defer cancel()
	}
	data, err := host.Call(ctx, modelService, modelMethod, params)
	if err != nil {
		return nil, err
	}
	if len(data) > 2*phases.MaxCompletionOutput {
		return nil, fmt.Errorf("the model's answer has %d bytes", len(data))
	}
	return advice.Decode(data)
}

// modelFailed says that the rules stood in for a model. What a model answered may be in
// the error, but for what a user wrote: the text is for the operator.
func modelFailed(instead string, err error) phases.Diagnostic {
	why, _ := recall.Cut(err.Error(), maxComplaint)
	if errors.Is(err, context.DeadlineExceeded) {
		why = "it did not answer in time"
	}
	return phases.Diagnostic{Code: "model_failed", Severity: phases.SeverityWarning, Message: instead + ": " + why}
}

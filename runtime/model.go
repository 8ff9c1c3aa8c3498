package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// The host service by which plugins ask a model, its one method, and both in one
// word, as grants and the ledger have it.
const (
	serviceModel   = "model"
	methodComplete = "complete"
	modelComplete  = serviceModel + "." + methodComplete
)

// The bounds of what a host's Complete may cost the engine.
const (
	// modelCalls bounds its calls at one time; further ones wait.
	modelCalls = 64
	// modelHanging is how many of them may have been left by their callers and not
	// have returned. Beyond it the model is taken to hang: calls fail at once.
	modelHanging = 8
	// modelGrace is the most that a call leaves of its caller's time, of which it
	// leaves a tenth: a hook that gets no answer can still do without.
	modelGrace = 100 * time.Millisecond
)

const (
	completeParams = `{"type":"object","additionalProperties":false,"required":["input"],"properties":{` +
		`"system":{"type":"string"},"input":{"type":"string","minLength":1},"schema":{"type":"object"},` +
		`"schema_name":{"type":"string","pattern":"^[A-Za-z0-9_-]{0,64}$"},"max_output_tokens":{"type":"integer","minimum":0,"maximum":1000000},` +
		`"purpose":{"type":"string","maxLength":128}}}`
	completeResult = `{"type":"object","required":["text","model","stopped"],"properties":{"text":{"type":"string"},"model":{"type":"string"},` +
		`"usage":{"type":"object"},"stopped":{"enum":["end","length","refusal","other"]}}}`
)

// model calls the host's Complete for plugins. Whatever that does, it holds nobody
// up beyond the time of the hook that asks, and cannot make the engine pile up
// more than modelCalls goroutines.
type model struct {
	complete func(context.Context, phases.CompletionRequest) (phases.CompletionResponse, error)
	slots    chan struct{}
	hanging  atomic.Int64
}

// newModel returns nil without a function.
func newModel(complete func(context.Context, phases.CompletionRequest) (phases.CompletionResponse, error)) *model {
	if complete == nil {
		return nil
	}
	return &model{complete: complete, slots: make(chan struct{}, modelCalls)}
}

// service is the host service "model".
func (m *model) service() Service {
	return Service{methodComplete: {
		Doc:    "Asks the host's model: {input, system?, schema?, schema_name?, max_output_tokens?, purpose?} gives {text, model, usage, stopped}.",
		Params: json.RawMessage(completeParams), Result: json.RawMessage(completeResult),
		Call: m.answer,
	}}
}

// answer makes one call of the method: what the budget and the caller's time allow
// of it.
func (m *model) answer(ctx context.Context, caller Caller, params json.RawMessage) (json.RawMessage, error) {
	rq, err := readCompletion(params)
	if err != nil {
		return nil, err
	}
	r := caller.run
	switch {
	case r.at == nil:
		return nil, phases.Errorf(phases.CauseForbidden, "the model is asked in the course of a hook or a tool call only: pass on the handler's context")
	case ctx.Err() != nil:
		return nil, timeUp(ctx)
	}
	budget := r.in.declared.Limits.Model
	reserved, refused := r.at.scope.reserveModel(caller.Plugin, budget, rq.MaxOutputTokens)
	if refused != nil {
		return nil, refused
	}
	rq.MaxOutputTokens, r.row.Attempts = reserved, 1
	ctx, r.span = r.in.engine.beginRun(ctx, phases.Trace{}, &r.row)
	defer r.span.done()
	begin := time.Now()
	res, used, err := m.ask(ctx, cmp.Or(budget.Time.D(), config.DefaultModelTime), rq)
	r.row.DurationMS = millis(time.Since(begin))
	r.at.scope.settleModel(caller.Plugin, reserved, used)
	if res != nil {
		r.row.Model, r.row.Usage = res.Model, res.Usage
	}
	if err == nil {
		err = checkCompletion(&rq, res)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(res)
}

// readCompletion reads the parameters and bounds them.
func readCompletion(params json.RawMessage) (rq phases.CompletionRequest, err error) {
	if err := json.Unmarshal(params, &rq); err != nil {
		return rq, phases.Errorf(phases.CauseInvalidReply, "params: %w", err)
	}
	if n := len(rq.System) + len(rq.Input) + len(rq.Schema); n > phases.MaxCompletionInput {
		return rq, phases.Errorf(phases.CauseOversizeRequest, "system, input and schema have %d bytes; at most %d are taken", n, phases.MaxCompletionInput)
	}
	return rq, nil
}

// ask calls the host's function, for as long as the operator and the caller allow.
// It returns the output tokens that count: those reported, or what was allowed
// where nobody knows; none for a call that the function itself says has failed.
func (m *model) ask(ctx context.Context, limit time.Duration, rq phases.CompletionRequest) (res *phases.CompletionResponse, used int, err error) {
	why := "within " + limit.String() + " (limits.model.time)"
	if until, ok := ctx.Deadline(); ok {
		left := time.Until(until)
		if left -= min(left/10, modelGrace); left < limit {
			limit, why = left, "in its caller's time"
		}
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res, err = m.call(bounded, rq)
	switch {
	case err == nil:
		return res, cmp.Or(res.Usage.OutputTokens, rq.MaxOutputTokens), nil
	case cancelled(ctx):
		return nil, rq.MaxOutputTokens, timeUp(ctx)
	case bounded.Err() != nil:
		return nil, rq.MaxOutputTokens, phases.Errorf(phases.CauseTimeout, "the model has not answered %s", why)
	}
	return nil, 0, err
}

// call runs the host's function on a goroutine of its own and waits for it no
// longer than ctx.
func (m *model) call(ctx context.Context, rq phases.CompletionRequest) (*phases.CompletionResponse, error) {
	if n := m.hanging.Load(); n >= modelHanging {
		return nil, phases.Errorf(phases.CauseOverloaded, "the model hangs: %d calls of it have not returned", n)
	}
	select {
	case m.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var left atomic.Bool // by its caller, or by itself: who is second knows
	res, err := abandonable(ctx, func() {
		if left.Swap(true) {
			m.hanging.Add(-1)
		}
		<-m.slots
	}, func() (*phases.CompletionResponse, error) { return m.guarded(ctx, rq) })
	if ctx.Err() != nil && !left.Swap(true) {
		m.hanging.Add(1)
	}
	return res, err
}

// guarded makes a panic of the host's function an error, and its answer fit for a
// plugin and a record.
func (m *model) guarded(ctx context.Context, rq phases.CompletionRequest) (_ *phases.CompletionResponse, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	rq.Schema = slices.Clone(rq.Schema)
	res, err := m.complete(ctx, rq)
	if err != nil {
		return nil, err
	}
	res.Model = text.Sanitize(res.Model, maxWordChars)
	for _, n := range []*int{&res.Usage.InputTokens, &res.Usage.OutputTokens, &res.Usage.CacheReadTokens, &res.Usage.CacheWriteTokens} {
		*n = min(max(*n, 0), math.MaxInt32)
	}
	switch {
	case res.Stopped == "":
		res.Stopped = phases.StoppedEnd
	case !slices.Contains(phases.Stops(), res.Stopped):
		res.Stopped = phases.StoppedOther
	}
	return &res, nil
}

// checkCompletion refuses an answer that is too long, or is no JSON where that was
// asked for, and repairs the text of the others.
func checkCompletion(rq *phases.CompletionRequest, res *phases.CompletionResponse) error {
	if n := len(res.Text); n > phases.MaxCompletionOutput {
		return phases.Errorf(phases.CauseOversizeReply, "the model's answer has %d bytes; at most %d are taken", n, phases.MaxCompletionOutput)
	}
	res.Text = text.Repair(res.Text)
	if len(rq.Schema) == 0 {
		return nil
	}
	err := phases.CheckJSON([]byte(res.Text), phases.MaxJSONDepth)
	switch {
	case err == nil:
		return nil
	case res.Stopped == phases.StoppedLength:
		return phases.Errorf(phases.CauseInvalidReply, "the model's answer is no JSON: it was cut off at %d output tokens", rq.MaxOutputTokens)
	case res.Stopped == phases.StoppedRefusal:
		return phases.Errorf(phases.CauseInvalidReply, "the model's answer is no JSON: it refused")
	}
	return phases.Errorf(phases.CauseInvalidReply, "the model's answer %w", err)
}

// close lets the calls that are on their way end, for a bounded time, and takes no
// more. It fails when some of them hang.
func (m *model) close(ctx context.Context) error {
	if m == nil {
		return nil
	}
	return takeAll(ctx, m.slots, "Options.Complete")
}

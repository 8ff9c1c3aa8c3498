package hostservice

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// The host service by which plugins ask a model, and its method.
const (
	ServiceModel   = "model"
	MethodComplete = "complete"
)

// A call of the model ends a tenth of its caller's time before that one, at most this much: a hook without an answer
// can still do without.
const modelGrace = 100 * time.Millisecond

const (
	completeParams = `{"type":"object","additionalProperties":false,"required":["input"],"properties":{` +
		`"system":{"type":"string"},"input":{"type":"string","minLength":1},"schema":{"type":"object"},` +
		`"schema_name":{"type":"string","pattern":"^[A-Za-z0-9_-]{0,64}$"},"max_output_tokens":{"type":"integer","minimum":0,"maximum":1000000},` +
		`"purpose":{"type":"string","maxLength":128}}}`
	completeResult = `{"type":"object","required":["text","model","stopped"],"properties":{"text":{"type":"string"},"model":{"type":"string"},` +
		`"usage":{"type":"object"},"stopped":{"enum":["end","length","refusal","other"]}}}`
)

// Complete asks a model; see [runtime.Options].
type Complete func(context.Context, phases.CompletionRequest) (phases.CompletionResponse, error)

// Model is the host's model behind the service.
type Model struct {
	*bounded.Func

	complete Complete
}

// NewModel returns the model of a host's function. After Close calls fail with the given error.
func NewModel(complete Complete, closed error) *Model {
	return &Model{bounded.New("the model", closed), complete}
}

// Account is the plugin's call that a call of the model belongs to, and its row.
type Account struct {
	State  *turnstate.State
	Budget config.ModelBudget
	Run    *phases.Run
	// Begin begins the row's span; the function that it returns ends it.
	Begin func(ctx context.Context) (context.Context, func())
}

// Service asks the host's model: {input, system?, schema?, schema_name?, max_output_tokens?, purpose?} gives {text,
// model, usage, stopped}.
func (m *Model) Service() Service {
	return Service{MethodComplete: {Params: json.RawMessage(completeParams), Result: json.RawMessage(completeResult), Call: m.answer}}
}

// answer makes one call of the method, within the budget and the caller's time.
func (m *Model) answer(ctx context.Context, caller Caller, params json.RawMessage) (json.RawMessage, error) {
	rq, err := readCompletion(params)
	if err != nil {
		return nil, err
	}
	a := caller.account
	switch {
	case a == nil:
		return nil, phases.Errorf(phases.CauseForbidden, "the model can only be asked during a hook or a tool call: pass on the handler's context")
	case ctx.Err() != nil:
		return nil, bounded.TimeUp(ctx)
	}
	reserved, refused := a.State.ReserveModel(caller.Plugin, a.Budget, rq.MaxOutputTokens)
	if refused != nil {
		return nil, refused
	}
	rq.MaxOutputTokens, a.Run.Attempts = reserved, 1
	ctx, done := a.Begin(ctx)
	defer done()
	begin := time.Now()
	res, used, err := m.ask(ctx, cmp.Or(a.Budget.Time.D(), config.DefaultModelTime), rq)
	a.Run.DurationMS = float64(time.Since(begin).Microseconds()) / 1000
	a.State.SettleModel(caller.Plugin, reserved, used)
	if res != nil {
		a.Run.Model, a.Run.Usage = res.Model, res.Usage
	}
	if err == nil {
		err = checkCompletion(&rq, res)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(res)
}

func readCompletion(params json.RawMessage) (rq phases.CompletionRequest, err error) {
	if err := json.Unmarshal(params, &rq); err != nil {
		return rq, phases.Errorf(phases.CauseInvalidReply, "params: %w", err)
	}
	if n := len(rq.System) + len(rq.Input) + len(rq.Schema); n > phases.MaxCompletionInput {
		return rq, phases.Errorf(phases.CauseOversizeRequest, "system, input and schema have %d bytes; at most %d are taken", n, phases.MaxCompletionInput)
	}
	return rq, nil
}

// ask calls the host's function, for as long as the operator and the caller allow. It returns the output tokens that
// count: those reported, or the reserved ones if nobody knows; none for a call that failed by itself.
func (m *Model) ask(ctx context.Context, limit time.Duration, rq phases.CompletionRequest) (res *phases.CompletionResponse, used int, err error) {
	why := "within " + limit.String() + " (limits.model.time)"
	if until, ok := ctx.Deadline(); ok {
		left := time.Until(until)
		if left -= min(left/10, modelGrace); left < limit {
			limit, why = left, "in its caller's time"
		}
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res, err = bounded.Call(limited, m.Func, func() (*phases.CompletionResponse, error) { return m.call(limited, rq) }, nil)
	switch {
	case err == nil:
		return res, cmp.Or(res.Usage.OutputTokens, rq.MaxOutputTokens), nil
	case bounded.Cancelled(ctx):
		return nil, rq.MaxOutputTokens, bounded.TimeUp(ctx)
	case limited.Err() != nil:
		return nil, rq.MaxOutputTokens, phases.Errorf(phases.CauseTimeout, "the model has not answered %s", why)
	}
	return nil, 0, err
}

func (m *Model) call(ctx context.Context, rq phases.CompletionRequest) (*phases.CompletionResponse, error) {
	rq.Schema = slices.Clone(rq.Schema)
	res, err := m.complete(ctx, rq)
	if err != nil {
		return nil, err
	}
	res.Model = text.Sanitize(res.Model, turnstate.MaxWordChars)
	for _, n := range []*int{&res.Usage.InputTokens, &res.Usage.OutputTokens, &res.Usage.CacheReadTokens, &res.Usage.CacheWriteTokens} {
		*n = min(max(*n, 0), math.MaxInt32)
	}
	switch {
	case res.Stopped == "":
		res.Stopped = phases.StoppedEnd
	case !res.Stopped.Known():
		res.Stopped = phases.StoppedOther
	}
	return &res, nil
}

// checkCompletion refuses an answer that is too long, or is not JSON as requested, and repairs the text of others.
func checkCompletion(rq *phases.CompletionRequest, res *phases.CompletionResponse) error {
	if n := len(res.Text); n > phases.MaxCompletionOutput {
		return phases.Errorf(phases.CauseOversizeReply, "the model's answer has %d bytes; at most %d are taken", n, phases.MaxCompletionOutput)
	}
	res.Text = text.Repair(res.Text)
	if len(rq.Schema) == 0 {
		return nil
	}
	err := jsonscan.Check([]byte(res.Text), phases.MaxJSONDepth)
	switch {
	case err == nil:
		return nil
	case res.Stopped == phases.StoppedLength:
		return phases.Errorf(phases.CauseInvalidReply, "the model's answer is not JSON: it was cut off at %d output tokens", rq.MaxOutputTokens)
	case res.Stopped == phases.StoppedRefusal:
		return phases.Errorf(phases.CauseInvalidReply, "the model's answer is not JSON: it refused")
	}
	return phases.Errorf(phases.CauseInvalidReply, "the model's answer %w", err)
}

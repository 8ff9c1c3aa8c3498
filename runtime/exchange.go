package runtime

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/phases"
)

// ExchangeKind says what an Exchange was.
type ExchangeKind string

// The kinds of exchanges.
const (
	// ExchangeConfigure is the configuration of a plugin that was started, or whose session was opened again.
	ExchangeConfigure ExchangeKind = "configure"
	// ExchangeDispatch is one call of one hook, ExchangeTool one of a tool.
	ExchangeDispatch ExchangeKind = "dispatch"
	ExchangeTool     ExchangeKind = "tool"
	// ExchangeHost is a host call outside of other exchanges: on the plugin's own account, or after its call had been
	// abandoned.
	ExchangeHost ExchangeKind = "host"
)

// Exchange is one message to a plugin and its answer, before anything of it is checked, merged or cut. Each attempt
// is one; cached answers and refused calls are not. Its JSON is part of a record's line.
type Exchange struct {
	Kind ExchangeKind `json:"kind"`
	// Begin is by the engine's clock, TookMS by the monotonic one.
	Begin time.Time `json:"begin" jsonschema:"when the exchange began, or the line was written"`

	Plugin  string `json:"plugin,omitempty"  jsonschema:"the operator's name"`
	Version string `json:"version,omitempty" jsonschema:"the plugin's version"`
	SHA256  string `json:"sha256,omitempty"  jsonschema:"checksum of its program, or builtin, in_process, unpinned"`
	// Subscription is the hook's full id, or PLUGIN.TOOL.
	Subscription string `json:"subscription,omitempty" jsonschema:"the hook's full id, or PLUGIN.TOOL"`
	// Start numbers the starts of all plugins of one engine: exchanges of one start went to one process. It is 0 for
	// an ExchangeHost of a replaced process.
	Start       uint64  `json:"start,omitempty"       jsonschema:"which start of a plugin answered; its configure line has the same"`
	Generation  uint64  `json:"generation,omitempty"`
	Incarnation uint64  `json:"incarnation,omitempty"`
	TookMS      float64 `json:"took_ms,omitempty"`

	// Configuration and Description belong to ExchangeConfigure.
	Configuration *ExchangeConfiguration `json:"configuration,omitempty"`
	Description   *phases.Description    `json:"description,omitempty"`
	// Dispatch and Result belong to ExchangeDispatch, without what was withheld.
	Dispatch *phases.Dispatch `json:"-"`
	Result   *phases.Result   `json:"result,omitempty"`
	// ToolCall and ToolResult belong to ExchangeTool.
	ToolCall   *phases.ToolCall   `json:"tool_call,omitempty"`
	ToolResult *phases.ToolResult `json:"tool_result,omitempty"`
	// Err is why there is no answer.
	Err *phases.Error `json:"-"`
	// HostCalls are the host calls made meanwhile, in the order of the answers.
	HostCalls []HostCall `json:"-"`

	_ struct{}
}

// ExchangeConfiguration is what a plugin was configured with, without its secrets.
type ExchangeConfiguration struct {
	Instance string `json:"instance"`
	// Config has "***" for each of Secrets: JSON pointers with the names of the environment variables of the values.
	Config   json.RawMessage   `json:"config,omitempty"`
	Secrets  map[string]string `json:"secrets,omitempty" jsonschema:"variables of the environment by JSON pointers into config, where the values are ***"`
	Services []string          `json:"services"`
}

// HostCall is one call of a host service, and its answer as the plugin got it.
type HostCall struct {
	Service string          `json:"service"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Err     *phases.Error   `json:"-"`
	TookMS  float64         `json:"took_ms"`
}

// codeNotRecorded means: an exchange could not be recorded; reported once.
const codeNotRecorded = "not_recorded"

// exchangesKey is the key of what WithExchanges has put into a context.
type exchangesKey struct{}

// WithExchanges returns a context with which calls of the engine (Dispatch, CompileTurn, …) also give their exchanges to
// got, right after each, while the caller waits and from many goroutines; background work does not. The exchange must not
// be changed or kept.
func WithExchanges(ctx context.Context, got func(x *Exchange)) context.Context {
	return context.WithValue(ctx, exchangesKey{}, got)
}

type exchange struct {
	engine *core
	out    Exchange
	began  time.Time
	got    func(x *Exchange) // that of WithExchanges; nil for none

	mu sync.Mutex
	// over is set when it has been reported: later host calls are reported alone.
	over bool
}

func (e *core) beginExchange(ctx context.Context, inc *pool.Incarnation, kind ExchangeKind, generation uint64, subscription string) *exchange {
	got, _ := ctx.Value(exchangesKey{}).(func(x *Exchange))
	if e.opts.OnExchange == nil && got == nil {
		return nil
	}
	x := &exchange{engine: e, began: time.Now(), got: got, out: Exchange{
		Kind: kind, Plugin: inc.Instance.Declared.Name, Start: inc.Start, Generation: generation, Incarnation: inc.Number,
		Subscription: subscription, Begin: e.opts.Now(),
	}}
	x.out.Version, x.out.SHA256 = inc.Instance.Program()
	return x
}

func (x *exchange) configured(in *pool.Instance, c *phases.Configuration, d *phases.Description, err error) {
	if c != nil {
		x.out.Configuration = &ExchangeConfiguration{
			Instance: c.Instance, Config: in.Declared.Shown(), Secrets: in.Declared.Secrets(), Services: append([]string{}, c.Services...),
		}
	}
	if d != nil {
		x.out.Version = d.Version
	}
	x.out.Description = d
	if err != nil {
		x.out.Err = codedError(err)
	}
	x.end(time.Now())
}

func (x *exchange) ended(f frame, failure *phases.Error, at time.Time) {
	if x == nil {
		return
	}
	f.show(&x.out)
	if x.out.Err = failure; failure != nil {
		x.out.Result, x.out.ToolResult = nil, nil
	}
	x.end(at)
}

func (x *exchange) end(at time.Time) {
	x.out.TookMS = milliseconds(at.Sub(x.began))
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	x.engine.reportExchange(&x.out)
	if x.got != nil {
		x.got(&x.out)
	}
}

// add adds a host call. It reports false if the exchange is over or nil.
func (x *exchange) add(c *HostCall) bool {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		x.out.HostCalls = append(x.out.HostCalls, *c)
	}
	return !x.over
}

// reportExchange calls Options.OnExchange. Errors never reach the caller of the plugin.
func (e *core) reportExchange(x *Exchange) {
	if e.opts.OnExchange == nil {
		return
	}
	_, err := bounded.Recovered(func() (struct{}, error) { return struct{}{}, e.opts.OnExchange(x) })
	if err == nil || e.exchangeFailed.Swap(true) {
		return
	}
	e.opts.Logger.Error("exchanges with plugins are not recorded", "error", err)
	e.emit(Event{Kind: EventDiagnostic, State: string(phases.SeverityError), Code: codeNotRecorded, Message: "exchanges with plugins are not recorded", Detail: err.Error()})
}

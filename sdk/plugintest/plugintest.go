package plugintest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TB is what the kit needs of a *testing.T.
type TB interface {
	Helper()
	// Context ends with the test.
	Context() context.Context
	Errorf(format string, args ...any)
}

// Case is one call of one hook or tool. The zero value of each field but Hook and Tool is a sensible default.
type Case struct {
	Hook, Tool string         // Hook names the hook to call, or Tool the tool
	Config     string         // the operator's configuration, JSON or empty. It is not checked against the plugin's schema.
	Context    phases.Context // where the hook runs
	Input      phases.Input   // the hook's input; nil is an empty one of its phase
	// Policies and Contexts are the turn's sets so far. A tool sees the policies only, and none with OutsideTurn.
	Policies []phases.PolicyEntry
	Contexts []phases.ContextEntry
	// Withhold names what the operator does not grant: input fields by JSON name, "policy", "context", "metadata". A
	// guard should not allow what it was not shown.
	Withhold    []string
	OutsideTurn bool   // OutsideTurn calls a tool outside of a turn
	Arguments   string // Arguments are the tool's, JSON
	MaxChars    int    // the plugin's text budget; 0 is 20,000
	Host        *Host  // Host answers host calls; nil refuses them all
	WantCode    string // the code of the expected error, such as "upstream_down"; empty expects success
	// Volatile says why equal calls may have different answers, and switches their comparison off.
	Volatile string
	// Patience is how long the kit waits for a cancelled call and for the last goroutine; 0 is two seconds.
	Patience time.Duration

	anyCode bool // anyCode accepts success and every error
	_       struct{}
}

// Answer is what a plugin answered. Its JSON is the "want.json" of a fixture.
type Answer struct {
	Contributions phases.Contributions `json:"contributions,omitempty"` // Contributions are a hook's
	Content       json.RawMessage      `json:"content,omitempty"`       // Content and IsError are a tool's
	IsError       bool                 `json:"is_error,omitempty"`
	Diagnostics   []phases.Diagnostic  `json:"diagnostics,omitempty"` // Diagnostics stand beside either
	Error         *Failure             `json:"error,omitempty"`       // set instead of all that
}

// Failure is the error of a plugin, as a host gets it.
type Failure struct {
	Code      string `json:"code"` // the plugin's own word
	Message   string `json:"message,omitempty"`
	Retryable bool   `json:"retryable,omitempty"`
}

const (
	codePanic       = "panic"
	callTimeout     = 10 * time.Second // bounds each call
	defaultPatience = 2 * time.Second
	defaultChars    = 20_000
)

// Run makes the call of a case as the package comment lists, reports what is wrong, and returns the answer. It
// configures the plugin again; calls for one plugin must not overlap.
func Run(t TB, p *sdk.Plugin, c Case) Answer {
	t.Helper()
	r := &run{TB: t, plugin: p, c: c.withDefaults()}
	watch(t, r.c.Patience, r.all)
	return r.answer
}

func (c Case) withDefaults() Case {
	c.Host = cmp.Or(c.Host, &Host{})
	c.Patience = cmp.Or(max(c.Patience, 0), defaultPatience)
	c.MaxChars = cmp.Or(c.MaxChars, defaultChars)
	return c
}

type run struct {
	TB
	plugin *sdk.Plugin
	c      Case

	hook   phases.Hook // of the case, if it is one of a hook
	row    phases.Row
	answer Answer
}

// caller makes a call: the plugin itself, or a session with it.
type caller interface {
	dispatch(ctx context.Context, d *phases.Dispatch) (*phases.Result, error)
	callTool(ctx context.Context, c *phases.ToolCall) (*phases.ToolResult, error)
}

func (r *run) all() {
	description, err := r.plugin.Configure(r.Context(), r.configuration())
	if err != nil {
		r.Errorf("the plugin does not take its configuration: %v", err)
		return
	}
	defer r.close()
	if err := r.find(description); err != nil {
		r.Errorf("%v", err)
		return
	}
	if r.checkCancelled() {
		r.answer = r.twice("in process", inProcess{r.plugin})
		r.checkAnswer(r.answer)
		r.overWire(description)
	}
}

// close ends the plugin as a host does; the next case configures it again.
func (r *run) close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), r.c.Patience)
	defer cancel()
	if err := r.plugin.Close(ctx); err != nil {
		r.Errorf("the plugin does not end: %v", err)
	}
}

func (r *run) find(d *phases.Description) error {
	if (r.c.Hook == "") == (r.c.Tool == "") {
		return errors.New("the case names both a hook and a tool, or none")
	}
	var known []string
	for i := range d.Tools {
		known = append(known, d.Tools[i].Name)
		if d.Tools[i].Name == r.c.Tool {
			return nil
		}
	}
	if r.c.Tool != "" {
		return fmt.Errorf("the plugin has no tool %q, but %q", r.c.Tool, known)
	}
	known = nil
	for i := range d.Hooks {
		known = append(known, d.Hooks[i].Name)
		if d.Hooks[i].Name == r.c.Hook {
			return r.takeHook(d.Hooks[i])
		}
	}
	return fmt.Errorf("the plugin has no hook %q, but %q", r.c.Hook, known)
}

// takeHook keeps the hook of the case and completes the input.
func (r *run) takeHook(h phases.Hook) error {
	r.hook = h
	var ok bool
	if r.row, ok = phases.Standard().Lookup(h.Phase); !ok {
		r.row = phases.Custom(h.Phase, "", 0, phases.Kinds()...)
	}
	if r.c.Input == nil {
		r.c.Input = r.row.NewInput()
	}
	for _, name := range r.c.Withhold {
		if known := phases.Visible(r.row); known != nil && !slices.Contains(known, name) {
			return fmt.Errorf("the case withholds %q, which %s does not have%s", name, h.Phase, suggest.DidYouMean(name, known))
		}
	}
	return nil
}

func (r *run) configuration() *phases.Configuration {
	c := &phases.Configuration{Instance: r.plugin.Name, Services: r.c.Host.services(), Host: r.c.Host}
	if r.c.Config != "" {
		c.Config = json.RawMessage(r.c.Config)
	}
	return c
}

// ask makes the call once.
func (r *run) ask(ctx context.Context, to caller) Answer {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	budget := phases.AnswerBudget{MaxChars: r.c.MaxChars, MaxBytes: wire.DefaultFrame}
	if r.c.Tool != "" {
		call := &phases.ToolCall{
			Tool: r.c.Tool, Arguments: json.RawMessage(r.c.Arguments), Context: r.c.Context.Clone(), Budget: budget,
			OutsideTurn: r.c.OutsideTurn, Remaining: callTimeout, Generation: 1, Incarnation: 1,
		}
		if !call.OutsideTurn {
			call.Policies = r.c.Policies
		}
		res, err := to.callTool(ctx, call)
		if err != nil || res == nil {
			return Answer{Error: failure(err)}
		}
		return Answer{Content: res.Content, IsError: res.IsError, Diagnostics: res.Diagnostics}
	}
	d := &phases.Dispatch{
		Subscription: r.plugin.Name + "." + r.c.Hook, Hook: r.c.Hook, Phase: r.hook.Phase, Context: r.c.Context.Clone(),
		Input: phases.CloneInput(r.c.Input), Policies: r.c.Policies, Contexts: r.c.Contexts, Attempt: 1, Budget: budget,
		Remaining: callTimeout, Generation: 1, Incarnation: 1,
	}
	if len(r.c.Withhold) > 0 {
		sight := phases.NewSight(r.hook.Needs, func(name string) bool { return name != "*" && !slices.Contains(r.c.Withhold, name) })
		sight.Withhold(d)
	}
	res, err := to.dispatch(ctx, d)
	if err != nil || res == nil {
		return Answer{Error: failure(err)}
	}
	return Answer{Contributions: res.Contributions, Diagnostics: res.Diagnostics}
}

func failure(err error) *Failure {
	if err == nil {
		return nil
	}
	coded, ok := errors.AsType[*phases.Error](err)
	if !ok {
		return &Failure{Code: "error", Message: err.Error()}
	}
	return &Failure{
		Code: cmp.Or(coded.PluginCode, string(coded.Code)), Message: cmp.Or(coded.Detail, coded.Message), Retryable: coded.Retryable,
	}
}

// inProcess calls the plugin like a host that runs it inside.
type inProcess struct{ plugin *sdk.Plugin }

func (p inProcess) dispatch(ctx context.Context, d *phases.Dispatch) (*phases.Result, error) {
	res, err := p.plugin.Dispatch(ctx, d)
	return res, wire.FromPlugin(err)
}

func (p inProcess) callTool(ctx context.Context, c *phases.ToolCall) (*phases.ToolResult, error) {
	res, err := p.plugin.CallTool(ctx, c)
	return res, wire.FromPlugin(err)
}

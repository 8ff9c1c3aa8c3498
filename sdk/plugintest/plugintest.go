package plugintest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TB is what the kit needs of a test; a *testing.T has it.
type TB interface {
	Helper()
	// Context ends with the test.
	Context() context.Context
	Errorf(format string, args ...any)
}

// Case is one call of one hook or tool. The zero value of each field but Hook
// and Tool is a sensible default.
type Case struct {
	// Hook names the hook that is called, Tool the tool instead; set one of them.
	Hook, Tool string
	// Config is the operator's configuration, JSON; empty for none. The kit does
	// not check it against the plugin's schema, as a host does.
	Config string
	// Context is what the hook is told of where it is.
	Context phases.Context
	// Input is the hook's input; nil is an empty one of its phase.
	Input phases.Input
	// Policies and Contexts are the turn's sets so far. A tool sees the policies
	// only, and none with OutsideTurn.
	Policies []phases.PolicyEntry
	Contexts []phases.ContextEntry
	// Withhold names what the operator does not grant: input fields by JSON name,
	// "policy", "context", "metadata". They are withheld as a host withholds them. A
	// guard should not allow what it was not shown.
	Withhold []string
	// OutsideTurn calls a tool as a host does by itself, in no turn.
	OutsideTurn bool
	// Arguments are the tool's, JSON.
	Arguments string
	// MaxChars is the text budget that the plugin is told; 0 is 20,000.
	MaxChars int
	// Host answers host calls; nil refuses them all.
	Host *Host
	// WantCode is the code of the error that the plugin has to answer with, such
	// as "upstream_down". Empty means that it has to succeed.
	WantCode string
	// Volatile switches the comparison of equal calls off, for plugins that
	// answer from what changes; it says why.
	Volatile string
	// Patience is how long the kit waits for an end: of a cancelled call, of the
	// last goroutine. 0 is two seconds.
	Patience time.Duration

	// anyCode takes success and every error.
	anyCode bool
	_       struct{}
}

// Answer is what a plugin answered. Its JSON is the "want.json" of a fixture.
type Answer struct {
	// Contributions are a hook's.
	Contributions phases.Contributions `json:"contributions,omitempty"`
	// Content and IsError are a tool's.
	Content json.RawMessage `json:"content,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
	// Diagnostics stand beside either.
	Diagnostics []phases.Diagnostic `json:"diagnostics,omitempty"`
	// Error is set instead of all that.
	Error *Failure `json:"error,omitempty"`
}

// Failure is the error of a plugin, as a host gets it.
type Failure struct {
	// Code is the plugin's own word.
	Code      string `json:"code"`
	Message   string `json:"message,omitempty"`
	Retryable bool   `json:"retryable,omitempty"`
}

// The plugin's codes that the kit knows.
const (
	codePanic = "panic"
	// callTimeout bounds each call; it is what the plugin is told to have left.
	callTimeout     = 10 * time.Second
	defaultPatience = 2 * time.Second
	defaultChars    = 20_000
)

// Run makes the call of a case as the package comment lists, reports what is
// wrong, and returns the answer. It configures the plugin anew and may be
// called many times, but not at the same time for one plugin.
func Run(t TB, p *sdk.Plugin, c Case) Answer {
	t.Helper()
	r := &run{TB: t, plugin: p, c: c.withDefaults()}
	watch(t, r.c.Patience, r.all)
	return r.answer
}

func (c Case) withDefaults() Case {
	if c.Host == nil {
		c.Host = &Host{}
	}
	if c.Patience <= 0 {
		c.Patience = defaultPatience
	}
	if c.MaxChars == 0 {
		c.MaxChars = defaultChars
	}
	return c
}

// run is one Run.
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

// all is what is done for a case.
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

// close ends the plugin as a host does. Whoever goes on with it configures it again,
// as the next case does.
func (r *run) close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), r.c.Patience)
	defer cancel()
	if err := r.plugin.Close(ctx); err != nil {
		r.Errorf("the plugin does not end: %v", err)
	}
}

// find looks the hook or tool of the case up.
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
			return fmt.Errorf("the case withholds %q, which %s does not have%s", name, h.Phase, phases.DidYouMean(name, known))
		}
	}
	return nil
}

// configuration is what the plugin is configured with, over the wire and in
// process.
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
	room := phases.Room{MaxChars: r.c.MaxChars, MaxBytes: wire.DefaultFrame}
	if r.c.Tool != "" {
		call := &phases.ToolCall{
			Tool: r.c.Tool, Arguments: json.RawMessage(r.c.Arguments), Context: r.c.Context.Clone(), Room: room,
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
		Input: phases.CloneInput(r.c.Input), Policies: r.c.Policies, Contexts: r.c.Contexts, Attempt: 1, Room: room,
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

// failure is an error as a host gets it; nil for none.
func failure(err error) *Failure {
	if err == nil {
		return nil
	}
	coded, ok := errors.AsType[*phases.Error](err)
	if !ok {
		return &Failure{Code: "error", Message: err.Error()}
	}
	// The words are the plugin's, and so is the test that reads them.
	f := &Failure{Code: coded.PluginCode, Message: cmp.Or(coded.Detail, coded.Message), Retryable: coded.Retryable}
	if f.Code == "" {
		f.Code = string(coded.Code)
	}
	return f
}

// inProcess calls the plugin as a host does that runs it inside.
type inProcess struct{ plugin *sdk.Plugin }

func (p inProcess) dispatch(ctx context.Context, d *phases.Dispatch) (*phases.Result, error) {
	res, err := p.plugin.Dispatch(ctx, d)
	return res, asHost(err)
}

func (p inProcess) callTool(ctx context.Context, c *phases.ToolCall) (*phases.ToolResult, error) {
	res, err := p.plugin.CallTool(ctx, c)
	return res, asHost(err)
}

// asHost makes a plugin's error what a host makes of it.
func asHost(err error) error {
	if err == nil {
		return nil
	}
	return wire.FromPlugin(err)
}

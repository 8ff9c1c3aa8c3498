package sdk

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

// Plugin is one plugin: a literal with exported fields, and the configuration in force. Do not copy it after use; its
// methods are safe for concurrent use. Hosts call Describe, Configure (again whenever the configuration changes),
// then Dispatch and CallTool, many at once, and Close at the end. Authors need none of them.
type Plugin struct {
	// Name is the plugin's own name: letters, digits, _ and -. An operator may run it under another.
	Name string
	// Version is shown in every record of every run.
	Version string
	// Doc is one line for people.
	Doc string
	// Hooks are the handlers; OnConfigure may add more.
	Hooks []Hook
	// Tools are the tools that the plugin answers. A contribution (phases.ToolBundle) offers them to the model.
	Tools []Tool
	// Requires lists protocol features that the host must have.
	Requires []string
	// ConfigSchema is a JSON Schema that the host checks the configuration against. Nil accepts no configuration.
	ConfigSchema json.RawMessage
	// Concurrency is the most calls that the plugin wants at once; 0 is the host's choice.
	Concurrency int
	// OnConfigure takes the operator's configuration; nil ignores it. An error refuses it, a *phases.ConfigError with
	// the place, and leaves the previous Setup in force; otherwise the new Setup replaces it.
	OnConfigure func(ctx context.Context, c *phases.Configuration) (Setup, error)
	// OnClose ends what the plugin has started besides its calls, such as a watch or a connection; it may be nil and
	// must return when ctx ends. It does not run in a killed process.
	OnClose func(ctx context.Context) error

	current atomic.Pointer[setup]
	_       struct{}
}

// Setup is what a configuration adds to the hooks and tools of the literal.
type Setup struct {
	Hooks []Hook
	Tools []Tool
	// AnyTool answers calls of tools that are in no list, for a plugin whose tools come and go, so that its
	// description cannot have them. If it is nil, such a call fails.
	AnyTool ToolHandler
}

// Describe returns the description under the configuration in force, or an error that lists all mistakes of the
// literal (see Validate). The description must not be modified.
func (p *Plugin) Describe(context.Context) (*phases.Description, error) {
	s, err := p.inForce()
	if err != nil {
		return nil, err
	}
	return s.description, nil
}

// Configure puts a configuration in force and returns the new description. On an error the previous one stays. Panics
// of handlers are errors with the code "panic", here as in Dispatch, CallTool and Close.
func (p *Plugin) Configure(ctx context.Context, c *phases.Configuration) (d *phases.Description, err error) {
	defer recovered(&err)
	var add Setup
	if p.OnConfigure != nil {
		if add, err = p.OnConfigure(ctx, c); err != nil {
			return nil, err
		}
	}
	s, err := p.prepare(add, c.Host)
	if err != nil {
		return nil, err
	}
	p.current.Store(s)
	return s.description, nil
}

// Dispatch calls the hook that d names.
func (p *Plugin) Dispatch(ctx context.Context, d *phases.Dispatch) (res *phases.Result, err error) {
	s, err := p.inForce()
	if err != nil {
		return nil, err
	}
	handle, ok := s.handlers[d.Hook]
	if !ok {
		return nil, Fail("unknown_hook", fmt.Sprintf("the plugin %s has no hook %q", p.Name, d.Hook))
	}
	defer recovered(&err)
	cs, err := handle(ctx, &Call{Dispatch: d, Host: s.host}, d.Input)
	if err != nil {
		return nil, asFailure(err)
	}
	return &phases.Result{Contributions: cs}, nil
}

// CallTool calls the tool that c names.
func (p *Plugin) CallTool(ctx context.Context, c *phases.ToolCall) (res *phases.ToolResult, err error) {
	s, err := p.inForce()
	if err != nil {
		return nil, err
	}
	tool := s.tools[c.Tool]
	if tool == nil {
		tool = s.anyTool
	}
	if tool == nil {
		return nil, Fail("unknown_tool", fmt.Sprintf("the plugin %s has no tool %q", p.Name, c.Tool))
	}
	defer recovered(&err)
	if res, err = tool(ctx, &ToolCall{ToolCall: c, Host: s.host}); err != nil {
		return nil, asFailure(err)
	}
	return res, nil
}

// Close calls OnClose. A host calls it last; to use the plugin again it calls Configure.
func (p *Plugin) Close(ctx context.Context) (err error) {
	if p.OnClose == nil {
		return nil
	}
	defer recovered(&err)
	return p.OnClose(ctx)
}

// Validate checks the literal: name, version, exactly one handler a hook, and everything that
// phases.ValidateDescription lists. Describe runs it too; call it in a test.
func (p *Plugin) Validate() error {
	_, err := p.prepare(Setup{}, nil)
	return err
}

type setup struct {
	description *phases.Description
	handlers    map[string]Handler[phases.Input]
	tools       map[string]ToolHandler
	anyTool     ToolHandler
	host        phases.Host
}

// inForce returns the configuration in force, or the bare literal before the first Configure.
func (p *Plugin) inForce() (*setup, error) {
	if s := p.current.Load(); s != nil {
		return s, nil
	}
	return p.prepare(Setup{}, nil)
}

func (p *Plugin) prepare(add Setup, host phases.Host) (*setup, error) {
	s := &setup{
		host:     host,
		handlers: map[string]Handler[phases.Input]{},
		tools:    map[string]ToolHandler{},
		anyTool:  add.AnyTool,
		description: &phases.Description{
			Name: p.Name, Version: p.Version, Doc: p.Doc, Requires: p.Requires, ConfigSchema: p.ConfigSchema,
			Limits: phases.PluginLimits{Concurrency: p.Concurrency},
		},
	}
	var custom []phases.Row
	for _, hooks := range [][]Hook{p.Hooks, add.Hooks} {
		for i := range hooks {
			h := &hooks[i]
			bound, err := h.bind()
			if err != nil {
				return nil, fmt.Errorf("plugin %q: hook %q: %w", p.Name, h.Name, err)
			}
			s.handlers[h.Name] = bound.handle
			s.description.Hooks = append(s.description.Hooks, h.proposal(bound.phase))
			known := slices.ContainsFunc(custom, func(r phases.Row) bool { return r.Phase == bound.phase })
			if strings.HasPrefix(string(bound.phase), "x.") && !known {
				custom = append(custom, phases.Custom(bound.phase, "", 0, phases.Kinds()...))
			}
		}
	}
	for _, tools := range [][]Tool{p.Tools, add.Tools} {
		for i := range tools {
			if tools[i].Call == nil {
				return nil, fmt.Errorf("plugin %q: tool %q has no handler", p.Name, tools[i].Name)
			}
			s.tools[tools[i].Name] = tools[i].Call
			s.description.Tools = append(s.description.Tools, tools[i].Tool)
		}
	}
	// Whether the host has the custom phases is the host's to say.
	table, err := phases.NewTable(custom...)
	if err != nil {
		return nil, fmt.Errorf("plugin %q: %w", p.Name, err)
	}
	return s, phases.ValidateDescription(s.description, table)
}

// Complete asks the host's model (service "model", method "complete", grant "model.complete"). Pass the handler's
// context on: the call is charged to the turn and ends with the hook.
//
// Errors are *phases.Error, and frequent; a plugin should then work without an answer. Causes: no service
// (CauseUnavailable; see Configuration.Services) or grant (CauseForbidden), the turn's budget is used up
// (CauseBudgetExhausted), no answer in time (CauseTimeout), not JSON although a schema was given (CauseInvalidReply).
// The host asks the model once; if the error is Retryable, the plugin may ask again from the same budget.
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

// DecodeConfig decodes an operator's configuration strictly: unknown keys, wrong types and trailing data are errors,
// each a [*phases.ConfigError] that points at its place. Without data, into keeps its value: set defaults first.
func DecodeConfig(data json.RawMessage, into any) error {
	err := decodeStrict(data, into)
	if err == nil {
		return nil
	}
	if config, ok := errors.AsType[*phases.ConfigError](err); ok {
		return config // from an UnmarshalJSON of the plugin's own
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return ConfigErrorf("/"+strings.ReplaceAll(wrong.Field, ".", "/"), "want %s, got %s", wanted(wrong.Type), jsonscan.KindName(wrong.Value))
	}
	return &phases.ConfigError{Message: strings.TrimPrefix(err.Error(), "json: "), AtKey: errors.Is(err, jsonscan.ErrUnknownField)}
}

// wanted names a type as a configuration has it.
func wanted(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return jsonscan.KindName("string")
	}
	return jsonscan.KindName(t.Kind().String())
}

// ConfigErrorf returns an error about the operator's configuration. pointer is a JSON pointer (RFC 6901) to the
// mistake; "" is the whole configuration.
func ConfigErrorf(pointer, format string, args ...any) *phases.ConfigError {
	return &phases.ConfigError{Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}

// DecodeArguments decodes the arguments of a tool call as strictly as [DecodeConfig]. The error's text is for the
// model that wrote the arguments.
func DecodeArguments(data json.RawMessage, into any) error {
	err := decodeStrict(data, into)
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Errorf("%s is a %s and should be a %v", wrong.Field, wrong.Value, wrong.Type.Kind())
	}
	return fmt.Errorf("the arguments are not what the tool takes: %s", strings.TrimPrefix(err.Error(), "json: "))
}

func decodeStrict(data []byte, into any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	return jsonscan.Decode(data, into)
}

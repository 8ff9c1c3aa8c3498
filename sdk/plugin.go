package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/grapnelhq/grapnel/phases"
)

// Plugin is one plugin: a literal with exported fields, and the configuration in
// force behind them. Do not copy it once it has been used; its methods are safe
// for concurrent use.
//
// The methods are what a host calls, in this order: Describe, Configure (again
// whenever the operator changes the configuration), then Dispatch and CallTool,
// many at once, and Close at the end. Authors need none of them.
type Plugin struct {
	// Name is the plugin's own name: letters, digits, _ and -. An operator may
	// run it under another.
	Name string
	// Version is shown in every record of every run.
	Version string
	// Doc is one line for people.
	Doc string
	// Hooks are the handlers. See Configure for hooks that depend on the
	// configuration.
	Hooks []Hook
	// Tools are the tools that the plugin answers. Whether a model is offered
	// them is said by a contribution (phases.ToolBundle).
	Tools []Tool
	// Requires lists protocol features that the host must have.
	Requires []string
	// ConfigSchema is a JSON Schema; the host checks the configuration against it
	// before it is sent. Nil accepts no configuration.
	ConfigSchema json.RawMessage
	// Concurrency is the most calls that the plugin wants at once; 0 leaves it to
	// the host.
	Concurrency int
	// OnConfigure takes the operator's configuration; nil ignores it. An error
	// refuses it; a *phases.ConfigError says where. It may be called again, and
	// what it returns then replaces the Setup before; on error that stays.
	OnConfigure func(ctx context.Context, c *phases.Configuration) (Setup, error)
	// OnClose ends what the plugin has started for itself beside its calls, such
	// as a watch or a connection; nil if there is nothing. It must return when
	// ctx ends. A process that is killed never gets there.
	OnClose func(ctx context.Context) error

	current atomic.Pointer[setup]
	_       struct{}
}

// Setup is what a configuration adds to the literal. Its hooks and tools come
// behind those of the literal.
type Setup struct {
	Hooks []Hook
	Tools []Tool
}

// Describe returns the plugin's description under the configuration in force,
// or an error that lists all mistakes of the literal (see Validate). The
// description must not be modified.
func (p *Plugin) Describe(context.Context) (*phases.Description, error) {
	s, err := p.inForce()
	if err != nil {
		return nil, err
	}
	return s.description, nil
}

// Configure puts a configuration in force and returns the description again. On
// error the one before stays; a panic of OnConfigure is an error with the code
// "panic".
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

// Dispatch calls the hook that d names. A panic of the handler comes back as an
// error with the code "panic".
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

// CallTool calls the tool that c names, like Dispatch.
func (p *Plugin) CallTool(ctx context.Context, c *phases.ToolCall) (res *phases.ToolResult, err error) {
	s, err := p.inForce()
	if err != nil {
		return nil, err
	}
	tool, ok := s.tools[c.Tool]
	if !ok {
		return nil, Fail("unknown_tool", fmt.Sprintf("the plugin %s has no tool %q", p.Name, c.Tool))
	}
	defer recovered(&err)
	if res, err = tool(ctx, &ToolCall{ToolCall: c, Host: s.host}); err != nil {
		return nil, asFailure(err)
	}
	return res, nil
}

// Close calls OnClose. A host calls it at its own end, when no other call runs any
// more; one that goes on with the plugin after all configures it again. A panic
// of OnClose is an error with the code "panic".
func (p *Plugin) Close(ctx context.Context) (err error) {
	if p.OnClose == nil {
		return nil
	}
	defer recovered(&err)
	return p.OnClose(ctx)
}

// Validate checks the literal: name, version, exactly one handler a hook, and
// everything that phases.ValidateDescription lists. Describe runs it too; call
// it in a test to see mistakes before a host does.
func (p *Plugin) Validate() error {
	_, err := p.prepare(Setup{}, nil)
	return err
}

// setup is one configuration in force. It is immutable.
type setup struct {
	description *phases.Description
	handlers    map[string]Handler[phases.Input]
	tools       map[string]ToolHandler
	host        phases.Host
}

// inForce returns the configuration in force, or the bare literal before the
// first Configure.
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
		description: &phases.Description{
			Name: p.Name, Version: p.Version, Doc: p.Doc, Requires: p.Requires, ConfigSchema: p.ConfigSchema,
			Limits: phases.PluginLimits{Concurrency: p.Concurrency},
		},
	}
	var custom []phases.Row
	for _, hooks := range [][]Hook{p.Hooks, add.Hooks} {
		for i := range hooks {
			bound, err := hooks[i].bind()
			if err != nil {
				return nil, fmt.Errorf("plugin %q: hook %q: %w", p.Name, hooks[i].Name, err)
			}
			s.handlers[hooks[i].Name] = bound.handle
			s.description.Hooks = append(s.description.Hooks, hooks[i].proposal(bound.phase))
			custom = append(custom, bound.custom()...)
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
	return s, s.validate(custom)
}

// validate checks the description against the standard phases and those custom
// ones that the hooks name; whether the host has them is the host's to say.
func (s *setup) validate(custom []phases.Row) error {
	table, err := phases.NewTable(distinct(custom)...)
	if err != nil {
		return fmt.Errorf("plugin %q: %w", s.description.Name, err)
	}
	return phases.ValidateDescription(s.description, table)
}

func distinct(rows []phases.Row) []phases.Row {
	seen := map[phases.Phase]bool{}
	var out []phases.Row
	for _, r := range rows {
		if !seen[r.Phase] {
			seen[r.Phase] = true
			out = append(out, r)
		}
	}
	return out
}

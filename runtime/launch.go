package runtime

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/phases"
)

// spec says how to start a declared plugin's process.
func (e *Engine) spec(p config.Plugin) (proc.Spec, error) {
	s := proc.Spec{
		Name: p.Name, Path: p.Path, Args: p.Args, SHA256: p.SHA256, Pins: p.Pins, AllowUnsafePath: p.UnsafePath,
		Frame: frameOf(p), MutualTLS: p.TLS, Env: proc.Environment{Pass: p.Env.Pass, Set: map[string]string{}}, Log: e.pluginLog(p.Name), Redact: newRedactor(&p).text,
	}
	for name, value := range p.Env.Set {
		s.Env.Set[name] = value.Value
	}
	var err error
	if s.Sandbox, err = confinement(&p); err != nil {
		return s, phases.Errorf(phases.CauseExecFailed, "the plugin %s cannot be confined: %w", p.Name, err)
	}
	if p.Builtin == "" {
		return s, nil
	}
	l, ok := e.opts.Builtins[p.Builtin]
	if !ok {
		return s, phases.Errorf(phases.CauseExecFailed, "this host has no built-in plugin %q", p.Builtin)
	}
	s.Path, s.File, s.Args = l.Path, l.File, append(slices.Clone(l.Args), p.Args...)
	s.AllowUnsafePath = true // the host itself lies there
	maps.Copy(s.Env.Set, l.Env)
	return s, nil
}

// pluginLog hands on what a plugin writes to its standard error. A plain line has no
// fields, and slog leaves an empty group out: the name stands beside it.
func (e *Engine) pluginLog(plugin string) func(proc.LogLine) {
	return func(l proc.LogLine) {
		e.opts.Logger.LogAttrs(context.Background(), l.Level, l.Message, slog.String("plugin", plugin), l.Attr()) //nolint:sloglint // the plugin's own words
		e.emit(Event{Kind: EventLog, Plugin: plugin, State: l.Level.String(), Detail: l.Message, Count: l.Dropped})
	}
}

// configuration is what a plugin is told, checked against its schema.
func (in *instance) configuration(d *phases.Description) (*phases.Configuration, error) {
	if err := checkConfig(d.ConfigSchema, in.declared.Config); err != nil {
		if rejected, ok := errors.AsType[*phases.ConfigError](err); ok {
			return nil, &phases.Error{ // what the schema says quotes the configuration
				Code: phases.CauseInternal, Message: "its configuration does not fit the plugin's schema", Detail: rejected.Error(), Err: rejected,
			}
		}
		return nil, err
	}
	return &phases.Configuration{
		Instance: in.declared.Name, Config: slices.Clone(in.declared.Config), Services: in.engine.services.granted(in.declared.Grants.Host), Host: in.host(),
	}, nil
}

// sweep removes what hosts that were killed have left behind. It runs beside
// the start of the plugins.
func (e *Engine) sweep() {
	if s := proc.SweepLeftovers(e.life, ""); s.Processes+s.Folders+s.Groups > 0 {
		e.opts.Logger.Info("removed what an earlier host left behind", "processes", s.Processes, "folders", s.Folders, "groups", s.Groups)
	}
}

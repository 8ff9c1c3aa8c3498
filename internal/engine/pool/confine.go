package pool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
)

// Confinement says how a declared plugin's process is confined: by "sandbox", and by
// grants of single places, which need T1. It depends on the declaration alone.
func Confinement(p *config.Plugin) (proc.Sandbox, error) {
	tier, key := p.Tier()
	if tier != p.Sandbox && p.Sandbox != "" {
		return proc.Sandbox{}, fmt.Errorf("%s names single places, and the sandbox tier %s cannot tell them from others", key, p.Sandbox)
	}
	var box proc.Sandbox
	var err error
	if box.Tier, err = sandbox.ParseTier(tier); err != nil {
		return proc.Sandbox{}, err
	}
	if box.Tier > sandbox.T0 {
		if box.Policy, err = sandbox.FromGrants(p.Grants.Read, p.Grants.Write, p.Grants.Net); err != nil {
			return proc.Sandbox{}, err
		}
		box.Policy.NoSockets = p.Transport == config.TransportStdio
	}
	box.Policy.Limits.Memory = uint64(max(0, p.Limits.Memory))
	return box, nil
}

// Check refuses a configuration with plugins that this host does not know how to start, or that this machine cannot
// confine as declared. The error has all of them.
func (p *Pool) Check(cfg *config.Config) error {
	var found []error
	for i := range cfg.Plugins {
		if err := p.checkDeclared(cfg, &cfg.Plugins[i]); err != nil {
			found = append(found, err)
		} else if err := p.checkConfined(cfg, i); err != nil {
			found = append(found, err)
		}
	}
	return errors.Join(found...)
}

func (p *Pool) checkDeclared(cfg *config.Config, d *config.Plugin) error {
	if p.opts.Local(d.Name) != nil {
		return nil
	}
	_, builtin := p.opts.Programs[d.Builtin]
	switch {
	case d.Builtin != "" && !builtin:
		known := slices.Sorted(maps.Keys(p.opts.Programs))
		return cfg.PlanError(d.Name, "builtin", fmt.Sprintf("unknown built-in plugin %q%s", d.Builtin, suggest.DidYouMean(d.Builtin, known)), nil)
	case d.Builtin == "" && d.Command == "":
		return cfg.PlanError(d.Name, "", "it has neither builtin nor command", nil)
	}
	return nil
}

func (p *Pool) checkConfined(cfg *config.Config, i int) error {
	d := &cfg.Plugins[i]
	tier, key := d.Tier()
	place := fmt.Sprintf("plugins.%d.%s", i, key)
	box, err := Confinement(d)
	switch {
	case err != nil:
		return cfg.Errorf(place, "plugin %q: %w", d.Name, err)
	case box.Tier == sandbox.T0:
		return nil
	case p.opts.Local(d.Name) != nil:
		return cfg.Errorf(place, "plugin %q wants the sandbox tier %s and runs inside the host, where nothing confines it: run it as a process, or remove this", d.Name, tier)
	}
	if err := sandbox.Probe().Reach(box.Tier, box.Policy, box.Groups); err != nil {
		return cfg.Errorf(place, "plugin %q: %w; %s", d.Name, err, hint(d, err))
	}
	return nil
}

func hint(p *config.Plugin, err error) string {
	missing, ok := errors.AsType[*sandbox.UnreachableError](err)
	switch {
	case ok && missing.Tier == sandbox.T2:
		return "start the host in a control group that is delegated to it (systemd: Delegate=yes), or write sandbox: T1"
	case p.Sandbox == "":
		return "use a machine that can, or, if you trust the plugin, grant '*' for read, write and net"
	}
	return "use a machine that can, or, if you trust the plugin, write sandbox: T0"
}

// CodeSandboxPartial means: a plugin's sandbox lacks something on this machine, or a granted path did not exist.
const CodeSandboxPartial = "sandbox_partial"

// SandboxNote is the diagnostic about a plugin's partial sandbox, if there is one.
func SandboxNote(row *phases.PluginRow) (phases.Diagnostic, bool) {
	if len(row.TierLacks)+len(row.AbsentPaths) == 0 {
		return phases.Diagnostic{}, false
	}
	var words []string
	if len(row.TierLacks) > 0 {
		words = append(words, strings.Join(row.TierLacks, "; "))
	}
	if len(row.AbsentPaths) > 0 {
		words = append(words, "absent when it started, and therefore not granted: "+strings.Join(row.AbsentPaths, ", "))
	}
	return phases.Diagnostic{
		Code: CodeSandboxPartial, Severity: phases.SeverityWarning, Plugin: row.Plugin,
		Message: "the plugin " + row.Plugin + " runs in the sandbox tier " + row.Tier + ": " + strings.Join(words, ". "),
	}, true
}

// CodeNotEnforced means: a setting has no effect here.
const CodeNotEnforced = "not_enforced"

// NotEnforced warns of limits that are accepted here and have no effect.
func (p *Pool) NotEnforced(cfg *config.Config) (notes []phases.Diagnostic) {
	warn := func(plugin, slot, message string) {
		notes = append(notes, phases.Diagnostic{Code: CodeNotEnforced, Severity: phases.SeverityWarning, Plugin: plugin, Slot: slot, Message: message})
	}
	for i := range cfg.Plugins {
		declared := &cfg.Plugins[i]
		inside := p.opts.Local(declared.Name) != nil
		if inside && declared.Limits.Recycle != (config.Recycle{}) {
			warn(declared.Name, "limits.recycle", "the plugin "+declared.Name+" runs inside the host: it has no process to recycle")
		}
		switch unlimited := "the memory limit of the plugin " + declared.Name + " is not enforced: "; {
		case declared.Limits.Memory <= 0:
		case inside:
			warn(declared.Name, "limits.memory", unlimited+"it runs inside the host")
		case !MeasuresMemory():
			warn(declared.Name, "limits.memory", unlimited+"this system cannot measure a process")
		}
	}
	return notes
}

package runtime

import (
	"errors"
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/sandbox"
	"github.com/grapnelhq/grapnel/phases"
)

// confinement says how a declared plugin's process is confined: by "sandbox", and
// by grants of single places, which need T1. Without either it may do what its
// user may, whatever is granted. It depends on the declaration alone; whether the
// machine can do it is for [reachable] to say.
func confinement(p *config.Plugin) (proc.Sandbox, error) {
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
	}
	box.Policy.Limits.Memory = uint64(max(0, p.Limits.Memory))
	return box, nil
}

// checkConfined refuses a configuration with a plugin that this machine cannot
// confine as it says: a plugin never runs under less protection than its operator
// has written down.
func (e *Engine) checkConfined(cfg *config.Config) error {
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		tier, key := p.Tier()
		place := fmt.Sprintf("plugins.%d.%s", i, key)
		box, err := confinement(p)
		if err != nil {
			return cfg.Errorf(place, "plugin %q: %w", p.Name, err)
		}
		if box.Tier == sandbox.T0 {
			continue
		}
		if _, inProcess := e.opts.InProcess[p.Name]; inProcess {
			return cfg.Errorf(place, "plugin %q wants the sandbox tier %s and runs inside the host, where nothing confines it: run it as a process, or take this away", p.Name, tier)
		}
		if err := reachable(sandbox.Probe(), box); err != nil {
			return cfg.Errorf(place, "plugin %q: %w; %s", p.Name, err, remedy(p, err))
		}
	}
	return nil
}

// reachable says whether this machine can confine a process as it is wanted.
func reachable(support sandbox.Support, box proc.Sandbox) error {
	if err := support.Check(box.Policy); err != nil || box.Tier < sandbox.T2 {
		return err
	}
	_, _, err := sandbox.FindGroupBase(box.Groups, box.Policy.Limits)
	return err
}

// remedy says what an operator can do about a tier that is out of reach.
func remedy(p *config.Plugin, err error) string {
	missing, ok := errors.AsType[*sandbox.UnreachableError](err)
	switch {
	case ok && missing.Tier == sandbox.T2:
		return "start the host in a control group that is delegated to it (systemd: Delegate=yes), or write sandbox: T1"
	case p.Sandbox == "":
		return "use a machine that can, or, if you trust the plugin, grant '*' for read, write and net"
	}
	return "use a machine that can, or, if you trust the plugin, write sandbox: T0"
}

// codeSandboxPartial marks a plugin whose sandbox has less, or grants less, than
// its operator may think.
const codeSandboxPartial = "sandbox_partial"

// sandboxNote is the remark about a plugin's sandbox, if there is something to be
// said.
func sandboxNote(row *phases.PluginRow) (phases.Diagnostic, bool) {
	if len(row.TierLacks)+len(row.AbsentPaths) == 0 {
		return phases.Diagnostic{}, false
	}
	var words []string
	if len(row.TierLacks) > 0 {
		words = append(words, strings.Join(row.TierLacks, "; "))
	}
	if len(row.AbsentPaths) > 0 {
		words = append(words, "not there when it started, and therefore not granted: "+strings.Join(row.AbsentPaths, ", "))
	}
	return phases.Diagnostic{
		Code: codeSandboxPartial, Severity: phases.SeverityWarning, Plugin: row.Plugin,
		Message: "the plugin " + row.Plugin + " runs in the sandbox tier " + row.Tier + ": " + strings.Join(words, ". "),
	}, true
}

package runtime

import (
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
)

// unsupported refuses what the configuration asks for and this version cannot
// give: a plugin must never run under less protection than its operator has
// written down.
func unsupported(cfg *config.Config) error {
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		place := fmt.Sprintf("plugins.%d", i)
		if p.Sandbox != "" && p.Sandbox != "T0" {
			return cfg.Errorf(place+".sandbox", "plugin %q wants the sandbox tier %s; this version reaches T0 (own process group, no host environment, private folder)", p.Name, p.Sandbox)
		}
		for _, grant := range []struct {
			key   string
			names []string
		}{{"read", p.Grants.Read}, {"write", p.Grants.Write}, {"net", p.Grants.Net}} {
			if slices.ContainsFunc(grant.names, func(name string) bool { return name != "*" }) {
				return cfg.Errorf(place+".grants."+grant.key, "plugin %q is granted only some places to %s; that needs the sandbox tier T1, and this version reaches T0: grant '*' or nothing", p.Name, grant.key)
			}
		}
	}
	return nil
}

// codeNotEnforced marks settings that are accepted and have no effect.
const codeNotEnforced = "not_enforced"

// notEnforced warns of settings that this version accepts and does not enforce.
func (e *Engine) notEnforced(cfg *config.Config) []phases.Diagnostic {
	var notes []phases.Diagnostic
	for i := range cfg.Plugins {
		if p := &cfg.Plugins[i]; p.Limits.Memory > 0 {
			notes = append(notes, phases.Diagnostic{
				Code: codeNotEnforced, Severity: phases.SeverityWarning, Plugin: p.Name, Slot: "limits.memory",
				Message: "the memory limit of the plugin " + p.Name + " is not enforced by this version",
			})
		}
	}
	if _, inMemory := e.opts.State.(*memoryState); inMemory {
		notes = append(notes, stateInMemory(cfg)...)
	}
	if cfg.Store.Value != "" && e.opts.Sink == nil {
		notes = append(notes, phases.Diagnostic{
			Code: codeNotEnforced, Severity: phases.SeverityWarning, Slot: "store", Message: "manifests are not kept: this host has no store",
		})
	}
	return notes
}

// codeStateInMemory marks a plugin that may keep state where a restart loses it.
const codeStateInMemory = "state_in_memory"

// stateInMemory warns of plugins that may use the service "state" of an engine
// without a store.
func stateInMemory(cfg *config.Config) []phases.Diagnostic {
	var notes []phases.Diagnostic
	for i := range cfg.Plugins {
		if p := &cfg.Plugins[i]; phases.Allows(p.Grants.Host, serviceState) {
			notes = append(notes, phases.Diagnostic{
				Code: codeStateInMemory, Severity: phases.SeverityWarning, Plugin: p.Name, Slot: "grants.host",
				Message: "what the plugin " + p.Name + " keeps by the service \"state\" is gone when this process ends: this host has no store for it",
			})
		}
	}
	return notes
}

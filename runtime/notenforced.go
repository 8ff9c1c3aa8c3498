package runtime

import (
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/phases"
)

// codeNotEnforced marks settings that are accepted and have no effect.
const codeNotEnforced = "not_enforced"

// notEnforced warns of settings that are accepted here and have no effect.
func (e *Engine) notEnforced(cfg *config.Config) []phases.Diagnostic {
	var notes []phases.Diagnostic
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		_, inProcess := e.opts.InProcess[p.Name]
		why := "it runs inside the host"
		if !inProcess {
			why = "this system does not tell what a process holds"
		}
		if p.Limits.Memory > 0 && (inProcess || !proc.CanMeasure()) {
			notes = append(notes, phases.Diagnostic{
				Code: codeNotEnforced, Severity: phases.SeverityWarning, Plugin: p.Name, Slot: "limits.memory",
				Message: "the memory limit of the plugin " + p.Name + " is not enforced: " + why,
			})
		}
	}
	if _, inMemory := e.opts.State.(*memoryState); inMemory {
		notes = append(notes, stateInMemory(cfg)...)
	}
	if cfg.Store.Value != "" && e.opts.Sink == nil {
		notes = append(notes, phases.Diagnostic{
			Code: codeNotEnforced, Severity: phases.SeverityWarning, Slot: "store", Message: e.notKept(),
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

package runtime

import (
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/hostservice"
	"github.com/grapnelhq/grapnel/internal/pool"
	"github.com/grapnelhq/grapnel/phases"
)

// codeStateInMemory: a plugin may keep state, and a restart loses it.
const codeStateInMemory = "state_in_memory"

// notEnforced warns of settings that are accepted here and have no effect.
func (e *Engine) notEnforced(cfg *config.Config) []phases.Diagnostic {
	notes := e.pool.NotEnforced(cfg)
	warn := func(code, plugin, slot, message string) {
		notes = append(notes, phases.Diagnostic{Code: code, Severity: phases.SeverityWarning, Plugin: plugin, Slot: slot, Message: message})
	}
	_, forgetful := e.opts.State.(*hostservice.MemoryState)
	for i := range cfg.Plugins {
		if p := &cfg.Plugins[i]; forgetful && phases.Allows(p.Grants.Host, hostservice.ServiceState) {
			warn(codeStateInMemory, p.Name, "grants.host",
				"what the plugin "+p.Name+" keeps by the service \"state\" is gone when this process ends: this host has no store for it")
		}
	}
	switch {
	case cfg.Store.Value == "" || e.opts.Sink != nil:
	case e.opts.Queue == nil:
		warn(pool.CodeNotEnforced, "", "store", "this host has no store: manifests are not kept, and background work is lost when this process ends")
	default:
		warn(pool.CodeNotEnforced, "", "store", "manifests are not kept: this host has no store for them")
	}
	return notes
}

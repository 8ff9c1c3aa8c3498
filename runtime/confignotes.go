package runtime

import (
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/hostservice"
	"github.com/grapnelhq/grapnel/internal/pool"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	// codeNotEnforced: a setting has no effect here.
	codeNotEnforced = "not_enforced"
	// codeStateInMemory: a plugin may keep state, and a restart loses it.
	codeStateInMemory = "state_in_memory"
)

// notEnforced warns of settings that are accepted here and have no effect.
func (e *Engine) notEnforced(cfg *config.Config) []phases.Diagnostic {
	var notes []phases.Diagnostic
	warn := func(code, plugin, slot, message string) {
		notes = append(notes, phases.Diagnostic{Code: code, Severity: phases.SeverityWarning, Plugin: plugin, Slot: slot, Message: message})
	}
	_, forgetful := e.opts.State.(*hostservice.MemoryState)
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		_, inProcess := e.opts.InProcess[p.Name]
		if inProcess && p.Limits.Recycle != (config.Recycle{}) {
			warn(codeNotEnforced, p.Name, "limits.recycle", "the plugin "+p.Name+" runs inside the host: it has no process to recycle")
		}
		switch unlimited := "the memory limit of the plugin " + p.Name + " is not enforced: "; {
		case p.Limits.Memory <= 0:
		case inProcess:
			warn(codeNotEnforced, p.Name, "limits.memory", unlimited+"it runs inside the host")
		case !pool.MeasuresMemory():
			warn(codeNotEnforced, p.Name, "limits.memory", unlimited+"this system cannot measure a process")
		}
		if forgetful && phases.Allows(p.Grants.Host, hostservice.ServiceState) {
			warn(codeStateInMemory, p.Name, "grants.host",
				"what the plugin "+p.Name+" keeps by the service \"state\" is gone when this process ends: this host has no store for it")
		}
	}
	switch {
	case cfg.Store.Value == "" || e.opts.Sink != nil:
	case e.opts.Queue == nil:
		warn(codeNotEnforced, "", "store", "this host has no store: manifests are not kept, and background work is lost when this process ends")
	default:
		warn(codeNotEnforced, "", "store", "manifests are not kept: this host has no store for them")
	}
	return notes
}

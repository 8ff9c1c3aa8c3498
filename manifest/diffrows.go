package manifest

import "github.com/grapnelhq/grapnel/phases"

func diffTexts(a, b map[string]string) []Change[string] {
	return diffNamed(a, b, func(x, y string) bool { return x == y }, func(*string) *string { return new("") })
}

func headOf(m *Manifest) map[string]string {
	out := map[string]string{
		"provider": m.Cache.Provider, "model": m.Cache.Model, "profile": string(m.Profile), "mode": string(m.Mode), "agent": m.AgentID, "actor": m.Actor,
		"build": m.Build, "compiler_version": m.CompilerVersion, "configuration": m.ConfigHash, "fingerprint_key": m.FingerprintKeyID,
	}
	for name, value := range out {
		if value == "" {
			delete(out, name)
		}
	}
	return out
}

func hostTools(m *Manifest) map[string]string {
	out := make(map[string]string, len(m.HostTools))
	for _, t := range m.HostTools {
		out[t.Name] = t.Hash
	}
	return out
}

func omittedOf(m *Manifest) map[string]string {
	out := make(map[string]string, len(m.Omitted))
	for _, o := range m.Omitted {
		out[o.Owner+"/"+o.ID] = o.Reason
	}
	return out
}

func remindersOf(m *Manifest) map[string]string {
	out := make(map[string]string, len(m.Reminders))
	for _, r := range m.Reminders {
		putOther(out, r.Owner+"/"+r.Type, r.Hash)
	}
	return out
}

func filesOf(m *Manifest) map[string]string {
	out := make(map[string]string, len(m.Files))
	for _, f := range m.Files {
		out[f.Path] = f.Status
	}
	return out
}

func pluginSlots(m *Manifest) map[string]PluginSlot {
	out := make(map[string]PluginSlot, len(m.Plugins))
	for i := range m.Plugins {
		p := &m.Plugins[i]
		out[p.Plugin] = PluginSlot{Version: p.Version, SHA256: p.SHA256, GrantHash: p.GrantHash, State: p.State}
	}
	return out
}

func runSlots(m *Manifest) map[string]RunSlot {
	out := make(map[string]RunSlot, len(m.Runs))
	for i := range m.Runs {
		r := &m.Runs[i]
		slot := RunSlot{State: r.State, Code: r.Code, Verdict: r.Verdict, Plugin: r.Plugin}
		if slot.State == phases.StateCached { // the same work
			slot.State = phases.StateSucceeded
		}
		out[string(r.Phase)+"/"+r.Subscription] = slot
	}
	return out
}

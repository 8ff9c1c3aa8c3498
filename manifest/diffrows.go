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

// rowsOf are rows of a list by name, with a number behind the name of a row that another one has already.
func rowsOf[S any, T comparable](list []S, row func(*S) (name string, value T)) map[string]T {
	out := make(map[string]T, len(list))
	for i := range list {
		name, value := row(&list[i])
		putOther(out, name, value)
	}
	return out
}

func hostTools(m *Manifest) map[string]string {
	return rowsOf(m.HostTools, func(t *HostTool) (string, string) { return t.Name, t.Hash })
}

func omittedOf(m *Manifest) map[string]string {
	return rowsOf(m.Omitted, func(o *phases.Omitted) (string, string) { return o.Owner + "/" + o.ID, o.Reason })
}

func remindersOf(m *Manifest) map[string]string {
	return rowsOf(m.Reminders, func(r *Reminder) (string, string) { return r.Owner + "/" + r.Type, r.Hash })
}

func filesOf(m *Manifest) map[string]string {
	return rowsOf(m.Files, func(f *File) (string, string) { return f.Path, f.Status })
}

func pluginSlots(m *Manifest) map[string]PluginSlot {
	return rowsOf(m.Plugins, func(p *phases.PluginRow) (string, PluginSlot) {
		return p.Plugin, PluginSlot{Version: p.Version, SHA256: p.SHA256, GrantHash: p.GrantHash, State: p.State}
	})
}

func toolSlots(m *Manifest) map[string]ToolSlot {
	return rowsOf(m.Tools, func(t *Tool) (string, ToolSlot) {
		return t.Name, ToolSlot{BundleID: t.BundleID, Owner: t.Owner, Hash: t.Hash, HiddenDomain: t.HiddenDomain}
	})
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

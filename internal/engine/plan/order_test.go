package plan

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// drawing shows a phase as text: stages on lines, layers between bars.
func drawing(ph *Phase) string {
	var lines []string
	for _, s := range ph.Stages {
		var layers []string
		for _, layer := range s.Layers {
			var names []string
			for _, sub := range layer {
				names = append(names, sub.ID)
			}
			layers = append(layers, strings.Join(names, " "))
		}
		lines = append(lines, string(s.Role)+": "+strings.Join(layers, " | "))
	}
	return strings.Join(lines, "\n")
}

func TestOrder(t *testing.T) {
	t.Parallel()

	h := func(name string, priority int, after ...string) phases.Hook {
		return phases.Hook{Name: name, Phase: phases.ToolPreCall, Priority: priority, After: after}
	}
	before := func(hook phases.Hook, ids ...string) phases.Hook { hook.Before = ids; return hook }
	role := func(hook phases.Hook, r phases.Role) phases.Hook { hook.Role = r; return hook }
	off := func(p Plugin, ids ...string) Plugin {
		p.Overrides = map[string]phases.Override{}
		for _, id := range ids {
			p.Overrides[id] = phases.Override{Enabled: new(false)}
		}
		return p
	}
	tests := []struct {
		name    string
		plugins []Plugin
		want    string
	}{
		{"priority, plugin, id", []Plugin{plugin("b", h("a", 1), h("z", 5), h("b", 1)), plugin("a", h("z", 1), h("y", 1))}, "contribute: b.z a.y a.z b.a b.b"},
		{"dependencies before priority", []Plugin{plugin("a", h("x", 9, "a.y"), h("y", 0), h("z", 5))}, "contribute: a.z a.y | a.x"},
		{"before", []Plugin{plugin("a", h("x", 0), before(h("y", 0), "a.x"))}, "contribute: a.y | a.x"},
		{"both ends say the same", []Plugin{plugin("a", h("x", 0, "a.y"), before(h("y", 0), "a.x"))}, "contribute: a.y | a.x"},
		{"across plugins", []Plugin{plugin("a", h("x", 0, "b.x")), plugin("b", h("x", 0, "c.x")), plugin("c", h("x", 0))}, "contribute: c.x | b.x | a.x"},
		{"as early as possible", []Plugin{plugin("a", h("1", 0), h("2", 0, "a.1"), h("3", 0, "a.2"), h("4", 0, "a.1"))}, "contribute: a.1 | a.2 a.4 | a.3"},
		{"stages", []Plugin{plugin("a", role(h("v", 0), phases.RoleValidate), role(h("o", 9), phases.RoleObserve), h("c", 0), role(h("t", 0), phases.RoleTransform))}, "transform: a.t\ncontribute: a.c\nvalidate: a.v\nobserve: a.o"},
		{"layers in a later stage", []Plugin{plugin("a", role(h("v", 0, "a.w"), phases.RoleValidate), role(h("w", 0), phases.RoleValidate), h("c", 0))}, "contribute: a.c\nvalidate: a.w | a.v"},
		{"soft and absent", []Plugin{plugin("a", h("x", 0, "b.x?", "z.z?"))}, "contribute: a.x"},
		{"soft and there", []Plugin{plugin("a", h("x", 0, "b.x?")), plugin("b", h("x", 0))}, "contribute: b.x | a.x"},
		{"soft in another phase", []Plugin{plugin("a", h("x", 0, "b.x?")), plugin("b", phases.Hook{Name: "x", Phase: phases.PrePolicy})}, "contribute: a.x"},
		{"through one that is off", []Plugin{off(plugin("a", h("1", 0), h("2", 0, "a.1"), h("3", 9, "a.2")), "a.2")}, "contribute: a.1 | a.3"},
		{"one that is off takes no layer", []Plugin{off(plugin("a", h("1", 0), h("2", 0, "a.1")), "a.1")}, "contribute: a.2"},
		{"off is a way out of a cycle", []Plugin{off(plugin("a", h("1", 0, "a.3"), h("2", 0, "a.1"), h("3", 0, "a.2")), "a.1")}, "contribute: a.2 | a.3"},
		{"hook names with dots", []Plugin{plugin("a", h("x.y", 0, "a.x"), h("x", 0))}, "contribute: a.x | a.x.y"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			p, notes := mustBuild(t, Options{}, tt.plugins...)
			if diff := gocmp.Diff(drawing(p.Phase(phases.ToolPreCall)), tt.want); diff != "" {
				t.Errorf("order (-got +want):\n%s", diff)
			}
			if notes != nil {
				t.Errorf("diagnostics: %v", notes)
			}
			checkPlaces(t, p.Phase(phases.ToolPreCall))
			slices.Reverse(tt.plugins)
			for i := range tt.plugins {
				slices.Reverse(tt.plugins[i].Description.Hooks)
			}
			p, _ = mustBuild(t, Options{}, tt.plugins...)
			if diff := gocmp.Diff(drawing(p.Phase(phases.ToolPreCall)), tt.want); diff != "" {
				t.Errorf("order of reversed input (-got +want):\n%s", diff)
			}
		})
	}
}

// checkPlaces checks Index, Expected, Stages and Off against each other.
func checkPlaces(t *testing.T, ph *Phase) {
	t.Helper()
	var running []*Subscription
	for _, s := range ph.Stages {
		for l, layer := range s.Layers {
			if len(layer) == 0 {
				t.Errorf("layer %d of %s is empty", l, s.Role)
			}
			for _, sub := range layer {
				if sub.Layer != l || sub.Stage != s.Role {
					t.Errorf("%s stands in layer %d of %s and says %d of %s", sub.ID, l, s.Role, sub.Layer, sub.Stage)
				}
			}
			running = append(running, layer...)
		}
	}
	places := len(running) + len(ph.Off)
	for _, off := range ph.Off {
		running = append(running, off.Subscription)
	}
	slices.SortFunc(running, func(a, b *Subscription) int { return cmp.Compare(a.Index, b.Index) })
	if !slices.Equal(running, ph.Expected) || places != len(ph.Expected) {
		t.Errorf("stages and off hold %d of %d expected subscriptions, or in another order", places, len(ph.Expected))
	}
	for i, sub := range ph.Expected {
		if sub.Index != i {
			t.Errorf("%s has index %d at %d", sub.ID, sub.Index, i)
		}
	}
}

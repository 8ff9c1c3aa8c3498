package runtime_test

import (
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// BenchmarkOverview is what a status costs, of 20 plugins with ten hooks each.
func BenchmarkOverview(b *testing.B) {
	h := newHosted()
	for i := range 20 {
		p := plugin("p" + string(rune('a'+i)))
		for j := range 10 {
			name := "h" + string(rune('a'+j))
			p.Hooks = append(p.Hooks, section(name, p.Name+name, "x"))
		}
		one := newHosted(p)
		h.cfg.Plugins = append(h.cfg.Plugins, one.cfg.Plugins...)
		h.opts.InProcess[p.Name] = p
	}
	eng := h.start(b)
	dispatch(b, eng, &phases.PrePromptCompileInput{})
	b.ReportAllocs()
	for b.Loop() {
		if n := len(eng.Overview().Hooks); n != 200 {
			b.Fatal(n)
		}
	}
}

package runtime_test

import (
	"slices"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// BenchmarkCountingPaired asks an engine that counts and one that does not in turn, so
// that a busy machine is equally unfair to both, and reports the median of each.
func BenchmarkCountingPaired(b *testing.B) {
	names := []string{"counting-ns", "not-counting-ns"}
	var engines []*runtime.Engine
	for range names {
		engines = append(engines, newHosted(plugin("house", section("text", "house_rules", "Be brief."))).start(b))
	}
	engines[1].StopCounting()
	took := make([][]time.Duration, len(engines))
	for b.Loop() {
		for i, eng := range engines {
			begin := time.Now()
			if _, err := eng.Dispatch(b.Context(), host(), &phases.PrePromptCompileInput{}); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(begin))
		}
	}
	for i, name := range names {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][len(took[i])/2]), name)
	}
}

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

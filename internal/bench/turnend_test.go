package bench_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// BenchmarkTurnEnd measures what the record of a turn's end costs, beside that of its prompt.
func BenchmarkTurnEnd(b *testing.B) {
	s, err := store.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "log.db"), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	eng, err := runtime.New(b.Context(), &config.Config{Version: 1}, runtime.Options{Sink: s})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = eng.Close(b.Context()) }()
	var prompts, ends []float64
	for b.Loop() {
		turn, err := eng.BeginTurn(b.Context(), phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1"})
		if err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		if _, err := turn.Compile(b.Context(), runtime.CompileInput{}); err != nil {
			b.Fatal(err)
		}
		compiled := time.Now()
		if _, err := turn.End(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		prompts, ends = append(prompts, float64(compiled.Sub(begin).Microseconds())), append(ends, float64(time.Since(compiled).Microseconds()))
	}
	slices.Sort(prompts)
	slices.Sort(ends)
	b.ReportMetric(prompts[len(prompts)/2], "prompt-µs")
	b.ReportMetric(ends[len(ends)/2], "end-µs")
}

package record_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/record"
	"github.com/grapnelhq/grapnel/runtime"
)

// speaker is a plugin inside the host whose hook says a kilobyte.
type speaker struct{}

func (speaker) Describe(context.Context) (*phases.Description, error) {
	return &phases.Description{Name: "speaker", Version: "1.0.0", Hooks: []phases.Hook{
		{Name: "say", Phase: phases.PrePromptCompile, Kinds: []phases.Kind{phases.KindPromptSection}},
	}}, nil
}

func (s speaker) Configure(ctx context.Context, _ *phases.Configuration) (*phases.Description, error) {
	return s.Describe(ctx)
}

func (speaker) Dispatch(context.Context, *phases.Dispatch) (*phases.Result, error) {
	return &phases.Result{Contributions: []phases.Contribution{&phases.PromptSection{SectionID: "said", Content: strings.Repeat("0123456789abcdef", 64)}}}, nil
}

func (speaker) CallTool(context.Context, *phases.ToolCall) (*phases.ToolResult, error) {
	return &phases.ToolResult{}, nil
}

// speaking is an engine with that plugin.
func speaking(b *testing.B, on func(*runtime.Exchange) error) *runtime.Engine {
	b.Helper()
	all := []string{"*"}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "speaker", Grants: phases.Grants{Contribute: all, Sections: all}}}}
	eng, err := runtime.New(b.Context(), cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"speaker": speaker{}}, OnExchange: on})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := eng.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return eng
}

// BenchmarkRecording alternates dispatches with a record and without one, of a plugin
// inside the host, which is the shortest dispatch that there is.
func BenchmarkRecording(b *testing.B) {
	w, err := record.Open(filepath.Join(b.TempDir(), "r.jsonl"), record.Options{MaxBytes: 16 << 30})
	if err != nil {
		b.Fatal(err)
	}
	engines := []*runtime.Engine{speaking(b, nil), speaking(b, w.Write)}
	var times [2][]time.Duration
	turn := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Mode: phases.ModeAgent}
	for b.Loop() {
		for i, eng := range engines {
			begin := time.Now()
			if out, err := eng.Dispatch(b.Context(), turn, &phases.PrePromptCompileInput{}); err != nil || len(out.Merged.Sections) != 1 {
				b.Fatalf("%v %+v", err, out)
			}
			times[i] = append(times[i], time.Since(begin))
		}
	}
	b.StopTimer()
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	for i, name := range []string{"without", "with"} {
		slices.Sort(times[i])
		b.ReportMetric(float64(times[i][len(times[i])/2].Nanoseconds())/1000, "p50-"+name+"-µs")
	}
}

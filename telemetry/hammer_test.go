package telemetry_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/telemetry"
)

// TestHammer has turns, collections and new series at the same time: nothing is lost,
// and no lock waits for another.
func TestHammer(t *testing.T) {
	t.Parallel()
	const hosts, each = 8, 50
	r := newRig(t, telemetry.Options{MaxSeries: 20})
	eng := started(t, r.Telemetry, nil, &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{section("good", "text")}})
	if err := r.Watch(eng); err != nil {
		t.Fatal(err)
	}
	var work, looks sync.WaitGroup
	done := make(chan struct{})
	looks.Go(func() {
		for {
			r.metrics(t, "grapnel.plugin.up")
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for host := range hosts {
		work.Go(func() {
			for i := range each {
				if _, err := eng.Dispatch(t.Context(), turn(), &phases.PrePromptCompileInput{}); err != nil {
					t.Error(err)
				}
				r.tell(with(func(r *phases.Run) { r.Plugin, r.Subscription = "fleeting", fmt.Sprintf("fleeting.h%d-%d", host, i) }))
			}
		})
	}
	work.Wait()
	close(done)
	looks.Wait()

	counted, fleeting := int64(0), 0
	for _, line := range r.metrics(t, "grapnel.run.count") {
		var n int64
		if _, err := fmt.Sscanf(line, "grapnel.run.count %d ", &n); err != nil {
			t.Fatal(err)
		}
		counted, fleeting = counted+n, fleeting+1
	}
	if want := int64(2 * hosts * each); counted != want {
		t.Errorf("%d runs were counted, want %d", counted, want)
	}
	if most := 20 + hosts + 1; fleeting > most {
		t.Errorf("%d series, want at most %d", fleeting, most)
	}
	if got, want := len(r.spans.GetSpans()), 2*hosts*each; got != want {
		t.Errorf("%d spans, want %d", got, want)
	}
}

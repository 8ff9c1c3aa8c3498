package runtime

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// TestPhaseCountsNeverGoBack: what is left of all dispatches without those that failed
// is shown as a counter, and one that goes back looks like a restart to who reads it.
func TestPhaseCountsNeverGoBack(t *testing.T) {
	t.Parallel()

	counting := tallied()
	failed := Event{Kind: EventDispatch, Phase: phases.PrePromptCompile, State: string(phases.StateFailed), Took: time.Millisecond}
	var stop atomic.Bool
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			for !stop.Load() {
				counting.take(&failed, time.Now)
			}
		})
	}
	v := &viewer{engine: &Engine{table: phases.Standard(), tally: counting}}
	for range 2000 {
		for _, row := range v.phases() {
			if succeeded := row.Dispatches - row.Failed - row.Cancelled; succeeded != 0 {
				t.Errorf("%d dispatches succeeded of %d that all failed", succeeded, row.Dispatches)
			}
		}
		if t.Failed() {
			break
		}
	}
	stop.Store(true)
	wait.Wait()
}

//go:build unix

package runtime_test

import (
	"context"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestStoppedDelaysNobody: when a plugin is stopped with calls in all of its slots,
// it is killed only after the whole of its grace. Those who wait for a slot are not
// held for that long, but told that it is not there.
func TestStoppedDelaysNobody(t *testing.T) {
	if alone(t) {
		return
	}
	b := newBench(t)
	p := bad(t, "bad", "stop")
	quick(&p)
	p.Limits.Concurrency = 4
	eng := b.start(t, p)
	outs := make([]*phases.Outcome, 8)
	var calls sync.WaitGroup
	for i := range outs {
		calls.Go(func() {
			outs[i], _ = eng.Dispatch(context.WithoutCancel(t.Context()), host(), &phases.PrePromptCompileInput{})
		})
	}
	calls.Wait()
	unanswered, refused := 0, 0
	for _, out := range outs {
		checkGood(t, eng, out)
		switch run := runOf(t, out, "bad.h"); {
		case run.Code == string(phases.CauseTimeout) && run.Incarnation == 1:
			unanswered++
		case run.Code == string(phases.CauseUnavailable) && run.Incarnation == 0 && run.QueueMS >= 200:
			refused++
		default:
			t.Errorf("run = %+v", run)
		}
	}
	if unanswered != 4 || refused != 4 {
		t.Errorf("%d calls were not answered, %d were not made", unanswered, refused)
	}
	b.awaitState(t, "bad", phases.PluginReady, 2)
}

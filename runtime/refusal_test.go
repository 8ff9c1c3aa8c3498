package runtime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// TestRefusedWithoutSlot: a hook whose breaker is open is answered for at once,
// although another call has the one slot that its plugin has, and beside a hook
// that takes its time. The same holds for one with retries: another attempt would
// have the same end.
func TestRefusedWithoutSlot(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		bad := &phases.PromptSection{SectionID: "s", Title: "s", Content: "x", Stability: "shaky"}
		section := []phases.Kind{phases.KindPromptSection}
		again := on("again", phases.RuntimePreContext, reply(bad), section...)
		again.Idempotent, again.Retry = true, &phases.Retry{Attempts: 3, Backoff: phases.Duration(100 * ms)}
		slow := on("slow", phases.PrePolicy, taking(time.Hour))
		slow.Timeout = time.Second
		h := newHosted(
			plugin("p", on("h", phases.PrePromptCompile, reply(bad), section...), again, slow),
			plugin("q", on("h", phases.PrePromptCompile, taking(50*ms))),
		)
		h.plugin("p").Limits.Concurrency = 1
		eng := h.start(t)
		for range 5 {
			dispatch(t, eng, &phases.PrePromptCompileInput{})
			dispatch(t, eng, &phases.RuntimePreContextInput{})
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = eng.Dispatch(context.WithoutCancel(t.Context()), host(), &phases.PrePolicyInput{}) // holds the slot
		}()
		synctest.Wait()
		begin := time.Now()
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		if took := time.Since(begin); took != 50*ms {
			t.Errorf("the dispatch took %v", took)
		}
		if run := runOf(t, out, "p.h"); run.Code != string(phases.CauseBreakerOpen) || run.Attempts != 1 || run.QueueMS != 0 {
			t.Errorf("run = %+v", run)
		}
		if run := runOf(t, out, "q.h"); run.State != phases.StateSucceeded {
			t.Errorf("the other one: %+v", run)
		}
		begin = time.Now()
		out = dispatch(t, eng, &phases.RuntimePreContextInput{})
		if run, took := runOf(t, out, "p.again"), time.Since(begin); run.Code != string(phases.CauseBreakerOpen) || run.Attempts != 1 || took != 0 {
			t.Errorf("refused for good: %+v after %v", run, took)
		}
		<-ended
	})
}

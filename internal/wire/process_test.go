package wire

import (
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// TestTwoProcesses runs a session with a plugin in another process, and kills
// that process while calls run.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	path, plugin := spawn(t)
	s := open(t, dial(t, path, 0), HostOptions{})
	if _, err := s.Configure(deadline(t), &phases.Configuration{Instance: "far"}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			text := strings.Repeat("far away ", i*100)
			res, _, err := s.Dispatch(deadline(t), textDispatch(text), nil)
			if err != nil || echoed(t, res) != text {
				t.Errorf("the text did not come back: %v", err)
			}
		})
	}
	wg.Wait()
	if err := s.Drain(deadline(t)); err != nil {
		t.Error(err)
	}
	if err := plugin.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	f := newFreed()
	_, _, err := s.Dispatch(deadline(t), textDispatch("x"), f.call)
	checkCode(t, err, phases.CauseSessionReset)
	checkCode(t, s.Err(), phases.CauseSessionReset)
	f.wait(t)
}

package supervise

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRecycleThatCannotBeStopped: on a busy machine a kill may take longer than a
// stop may. The next start waits, but that is not counted against the service.
func TestRecycleThatCannotBeStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.service.onStop = func(context.Context) error { return errors.New("it could not be killed in time") }
		r.serve()
		for i := range 3 * failureLimit {
			r.Recycle(Any, "too many abandoned calls")
			synctest.Wait()
			if st := r.Status(); st.State != StateBackoff || st.Code != CodeInternal || !strings.Contains(st.Detail, "killed in time") {
				t.Fatalf("after %d: %+v", i+1, st)
			}
			pause(time.Minute)
		}
		r.service.onStop = nil
		r.mustHalt()
	})
}

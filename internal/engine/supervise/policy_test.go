package supervise

import (
	"testing"
	"time"
)

// epoch is where the clocks of the policy tests begin.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// step is one thing that happens to a service: a wait, then a failure or a
// change of health.
type step struct {
	after   time.Duration
	class   Class // zero: healthy (or not, if ends is set)
	ends    bool
	stays   bool // in quarantine
	delay   time.Duration
	counted int
}

// fail is a step with a failure that is answered by a retry.
func fail(after time.Duration, class Class, delay time.Duration, counted int) step {
	return step{after: after, class: class, delay: delay, counted: counted}
}

// unhealthy is a step that ends a healthy period.
func unhealthy(after time.Duration) step { return step{after: after, ends: true} }

func TestPolicyNext(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	begun := step{after: s} // a healthy period
	quarantine := func(after time.Duration, class Class, counted int) step {
		return step{after: after, class: class, stays: true, counted: counted}
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"old failures fall out of the window", []step{
			fail(0, ClassOrdinary, 100*ms, 1), fail(100*s, ClassOrdinary, 200*ms, 2), fail(100*s, ClassOrdinary, 400*ms, 3),
			fail(99*s, ClassOrdinary, 800*ms, 4), fail(s, ClassOrdinary, 1600*ms, 4), quarantine(s, ClassOrdinary, 5),
		}},
		{"health resets the wait and not the count", []step{
			fail(0, ClassOrdinary, 100*ms, 1), fail(s, ClassOrdinary, 200*ms, 2),
			begun, fail(60*s, ClassOrdinary, 100*ms, 3),
			begun, fail(60*s, ClassOrdinary, 100*ms, 4),
			begun, quarantine(60*s, ClassOrdinary, 5),
		}},
		{"two short periods are no long one", []step{
			fail(0, ClassOrdinary, 100*ms, 1),
			begun, unhealthy(40 * s), begun, fail(40*s, ClassOrdinary, 200*ms, 2),
		}},
		{"a long period counts though it ended before the failure", []step{
			fail(0, ClassOrdinary, 100*ms, 1), begun, unhealthy(60 * s), fail(s, ClassOrdinary, 100*ms, 2),
		}},
		{"resource is waited out and never counted", []step{
			fail(0, ClassResource, 100*ms, 0), fail(s, ClassResource, 200*ms, 0), fail(s, ClassResource, 400*ms, 0),
			fail(s, ClassResource, 800*ms, 0), fail(s, ClassResource, 1600*ms, 0), fail(s, ClassResource, 3200*ms, 0),
			fail(s, ClassResource, 6400*ms, 0), fail(s, ClassResource, 12800*ms, 0), fail(s, ClassResource, 25600*ms, 0),
			fail(s, ClassResource, 30*s, 0), fail(s, ClassResource, 30*s, 0),
		}},
		{"resource and ordinary have waits of their own", []step{
			fail(0, ClassResource, 100*ms, 0), fail(s, ClassResource, 200*ms, 0), fail(s, ClassOrdinary, 100*ms, 1),
			fail(s, ClassResource, 100*ms, 1), fail(s, ClassOrdinary, 200*ms, 2),
		}},
		{"memory waits longer and counts", []step{
			fail(0, ClassMemory, 5*s, 1), fail(10*s, ClassMemory, 10*s, 2), fail(20*s, ClassMemory, 20*s, 3),
			fail(40*s, ClassMemory, 40*s, 4), quarantine(40*s, ClassMemory, 5),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var h history
			now := epoch
			for i, st := range tt.steps {
				now = now.Add(st.after)
				switch {
				case st.class != "":
					delay, stays := h.failed(st.class, now, 0)
					if delay != st.delay || stays != st.stays || len(h.counted) != st.counted {
						t.Fatalf("step %d: %v, quarantine %v, %d counted; want %+v", i+1, delay, stays, len(h.counted), st)
					}
				case st.ends:
					h.unhealthy(now)
				default:
					h.healthy(now)
				}
			}
		})
	}
}

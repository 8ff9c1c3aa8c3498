package pool

import (
	"testing"
	"time"
)

// TestPauseAfterALook: a look that takes long delays the next one by no more than
// lookLatest.
func TestPauseAfterALook(t *testing.T) {
	t.Parallel()

	for took, want := range map[time.Duration]time.Duration{
		0: lookEvery, time.Millisecond: lookEvery, 200 * time.Millisecond: 2 * time.Second, time.Minute: lookLatest,
	} {
		if got := pauseAfter(took); got != want {
			t.Errorf("pauseAfter(%v) = %v, want %v", took, got, want)
		}
	}
}

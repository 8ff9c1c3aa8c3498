package jobs

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// TestBackoff: waits double up to a bound, and jitter takes no more than half.
func TestBackoff(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(1, 2))
	one, zero := func() float64 { return 1 }, func() float64 { return 0 }
	for range 5000 {
		first, most := time.Duration(random.Int64N(int64(time.Hour)))+1, time.Duration(random.Int64N(int64(time.Hour)))+1
		times := 1 + random.IntN(80)
		whole, least, next := backoff(first, times, most, one), backoff(first, times, most, zero), backoff(first, times+1, most, one)
		if whole > most || whole < min(first, most)-1 || least < whole/2-1 || least > whole || next < whole {
			t.Fatalf("first %s, most %s, time %d: %s to %s, then %s", first, most, times, least, whole, next)
		}
		if next > 2*whole+2 {
			t.Fatalf("first %s, most %s, time %d: %s, then %s", first, most, times, whole, next)
		}
	}
	j := Job{Backoff: 3 * time.Second}
	if wait := j.RetryWait(2, one); wait != 6*time.Second {
		t.Errorf("the second wait is %s", wait)
	}
	if wait := RequeueWait(1, zero); wait != 50*time.Millisecond {
		t.Errorf("the first wait is %s", wait)
	}
}

// TestKeyIsUnambiguous: no two jobs have one key because of how their parts are
// put together.
func TestKeyIsUnambiguous(t *testing.T) {
	t.Parallel()

	parts := []string{"a", "b", `a","b`, "a/b", ""}
	seen := map[string]Job{}
	for _, workspace := range parts {
		for _, plugin := range parts {
			for _, kind := range parts {
				for _, key := range parts[:4] {
					j := Job{Context: phases.Context{WorkspaceID: workspace}, Plugin: plugin, Kind: kind, IdempotencyKey: key}
					if other, taken := seen[j.Key()]; taken {
						t.Errorf("one key for %+v and %+v", j, other)
					}
					seen[j.Key()] = j
				}
			}
		}
	}
	if j := (Job{Plugin: "p"}); j.Key() != "" {
		t.Errorf("a job without a key has %q", j.Key())
	}
}

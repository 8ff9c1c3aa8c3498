//go:build linux

package runtime_test

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSoak runs an engine with plugins of which a third misbehave at random. In the end the good plugins must have been
// served all the time, and memory, descriptors, goroutines and processes must be as at the start. While callers dispatch,
// configurations change; after each stretch the bad plugins are replaced by good ones before anything is counted. The same
// seed is the same mixture, not the same run: when processes die depends on the machine.
//
// It is a soak of some seconds. GRAPNEL_SOAK makes it longer: a time ("30m") or a number of dispatches;
// GRAPNEL_SOAK_SEED draws another mixture. It is not parallel: it counts what the whole process has.
func TestSoak(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	o := soakOptions{dispatches: 600, plugins: 6, seed: 3, callers: 16, self: []string{self, asProgram}, progress: &progress}
	if os.Getenv("GRAPNEL_LONG") != "" || os.Getenv("GRAPNEL_SOAK") != "" {
		o.dispatches, o.plugins = 3000, 20
	}
	if long := os.Getenv("GRAPNEL_SOAK"); long != "" {
		o.progress = os.Stderr
		if o.dispatches, err = strconv.ParseUint(long, 10, 64); err != nil {
			o.dispatches = math.MaxUint32
			o.limit, err = time.ParseDuration(long)
		}
		if err != nil || o.dispatches == 0 || o.limit < 0 {
			t.Fatalf("GRAPNEL_SOAK=%q is neither a time nor a number of dispatches", long)
		}
	}
	if seed := os.Getenv("GRAPNEL_SOAK_SEED"); seed != "" {
		if o.seed, err = strconv.ParseUint(seed, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	r, err := soak(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	if len(r.Problems) > 0 {
		t.Errorf("problems: %q", r.Problems)
	}
	if o.limit == 0 && r.Dispatches != o.dispatches || len(r.Samples) < 5 || r.Reloads+r.Refused == 0 {
		t.Errorf("%d dispatches, %d samples, %d reloads", r.Dispatches, len(r.Samples), r.Reloads)
	}
	bad := uint64(0)
	for what, n := range r.Runs {
		if what != "succeeded" {
			bad += n
		}
	}
	if r.Runs["succeeded"] == 0 || bad == 0 {
		t.Errorf("nothing went wrong, or everything: %v", r.Runs)
	}
}

package runtime_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestHangingSink: calls that hang are bounded; further ones fail at once, and
// what ends after all is told.
func TestHangingSink(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var j journal
		release := make(chan struct{})
		h := newHosted()
		s := &memorySink{before: hangingAt("Append", release)}
		h.opts.Sink, h.opts.OnEvent = s, j.events(runtime.EventManifest)
		eng := h.start(t)
		const hanging = 8
		for range hanging {
			if done, err := compile(t, eng, runtime.CompileInput{}); err != nil || done.Prompt == nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		done, err := compile(t, eng, runtime.CompileInput{})
		if err != nil || done.Prompt == nil || time.Since(begun) != 0 {
			t.Errorf("error %v after %s", err, time.Since(begun))
		}
		if got := j.all(); got[len(got)-1] != "not_kept overloaded" {
			t.Errorf("events %v", got)
		}
		checkSame(t, "stats", eng.Stats(), runtime.Stats{ManifestsNotKept: hanging + 1, SinkHanging: hanging})
		close(release)
		synctest.Wait()
		checkSame(t, "stats after all", eng.Stats(), runtime.Stats{ManifestsNotKept: hanging + 1, ManifestsKeptLate: hanging})
		if got := j.all(); got[len(got)-1] != "kept_late" {
			t.Errorf("events %v", got)
		}
		if done, err := compile(t, eng, runtime.CompileInput{}); err != nil || done.Manifest.Seq != hanging {
			t.Errorf("seq %d, %v", done.Manifest.Seq, err)
		}
	})
}

// TestCloseWithAHangingSink: closing is bounded, and says what is left.
func TestCloseWithAHangingSink(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := newHosted()
		h.opts.Sink = &memorySink{before: hangingAt("Append", release)}
		eng, err := runtime.New(t.Context(), &h.cfg, h.opts)
		if err != nil {
			t.Fatal(err)
		}
		turn := begin(t, eng)
		for range 3 {
			prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{}))
		}
		begun := time.Now()
		err = eng.Close(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "3 calls of the sink have not returned") || time.Since(begun) > time.Second {
			t.Errorf("Close = %v after %s", err, time.Since(begun))
		}
		if err := eng.ReportUsage(t.Context(), manifest.Usage{ManifestID: "01JZ0000000000000000000000"}); !errors.Is(err, runtime.ErrClosed) {
			t.Errorf("ReportUsage after Close = %v", err)
		}
		close(release)
		synctest.Wait()
		if got := eng.Stats(); got.ManifestsKeptLate != 3 || got.SinkHanging != 0 {
			t.Errorf("stats %+v", got)
		}
	})
}

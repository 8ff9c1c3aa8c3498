package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
		if diff := cmp.Diff(eng.Stats(), runtime.Stats{ManifestsNotKept: hanging + 1, SinkHanging: hanging}); diff != "" {
			t.Errorf("stats (-got +want):\n%s", diff)
		}
		close(release)
		synctest.Wait()
		if diff := cmp.Diff(eng.Stats(), runtime.Stats{ManifestsNotKept: hanging + 1, ManifestsKeptLate: hanging}); diff != "" {
			t.Errorf("stats after all (-got +want):\n%s", diff)
		}
		if got := j.all(); got[len(got)-1] != "kept_late" {
			t.Errorf("events %v", got)
		}
		if done, err := compile(t, eng, runtime.CompileInput{}); err != nil || done.Manifest.Seq != hanging {
			t.Errorf("seq %d, %v", done.Manifest.Seq, err)
		}
	})
}

// TestManyTurnsOnAHangingSink: the engine has no more goroutines in the sink than
// it allows itself, and no turn waits for longer than it should.
func TestManyTurnsOnAHangingSink(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		inside, most, hangs := 0, 0, false
		h := newHosted()
		h.opts.Sink = &memorySink{before: func(context.Context, string) error {
			if !hangs {
				return nil
			}
			mu.Lock()
			inside++
			most = max(most, inside)
			mu.Unlock()
			<-release
			return nil
		}}
		eng := h.start(t)
		t.Cleanup(func() { close(release) })
		if _, err := compile(t, eng, runtime.CompileInput{}); err != nil { // so that the thread's last prompt is known
			t.Fatal(err)
		}
		hangs = true
		begun := time.Now()
		var wait sync.WaitGroup
		for range 200 {
			wait.Go(func() {
				if _, err := eng.CompileTurn(t.Context(), host(), runtime.CompileInput{}); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		took := time.Since(begun)
		mu.Lock()
		defer mu.Unlock()
		if took != 500*time.Millisecond || most != 64 {
			t.Errorf("%d calls at a time, over after %s", most, took)
		}
		if got := eng.Stats(); got.ManifestsNotKept != 200 || got.SinkHanging != 64 {
			t.Errorf("stats %+v", got)
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
			if _, err := turn.Compile(t.Context(), runtime.CompileInput{}); err != nil {
				t.Fatal(err)
			}
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

// TestCloseWithoutTimeLeft: a caller with no time left learns of no calls that
// there are not, and those on their way end all the same.
func TestCloseWithoutTimeLeft(t *testing.T) {
	t.Parallel()

	for name, slow := range map[string]bool{"nothing on its way": false, "one call on its way": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				h := newHosted()
				h.opts.Sink = &memorySink{before: func(_ context.Context, called string) error {
					if called == "Append" {
						time.Sleep(300 * time.Millisecond)
					}
					return nil
				}}
				eng, err := runtime.New(t.Context(), &h.cfg, h.opts)
				if err != nil {
					t.Fatal(err)
				}
				var wait sync.WaitGroup
				if slow {
					turn := begin(t, eng)
					wait.Go(func() {
						if done, err := turn.Compile(t.Context(), runtime.CompileInput{}); err != nil || done.Manifest.Seq != 0 {
							t.Errorf("the turn: %v", err)
						}
					})
				}
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := eng.Close(ctx); err != nil {
					t.Errorf("Close = %v", err)
				}
				wait.Wait()
				if got := eng.Stats(); slow != (got.ManifestsKept == 1) {
					t.Errorf("stats %+v", got)
				}
			})
		})
	}
}

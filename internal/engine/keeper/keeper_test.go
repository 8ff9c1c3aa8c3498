package keeper

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

var errClosed = errors.New("closed")

// sink answers after a time, whatever its context says.
type sink struct {
	after time.Duration
	err   error
}

func (s *sink) answer() error { <-time.After(s.after); return s.err }

func (s *sink) Append(context.Context, *manifest.Manifest, []manifest.Text) error { return s.answer() }

func (s *sink) Last(context.Context, string, string) (*manifest.Manifest, error) {
	return &manifest.Manifest{}, s.answer()
}

func (s *sink) Report(context.Context, manifest.Usage) error { return s.answer() }

func TestKeeper(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name              string
		sink              sink
		code              phases.Cause
		kept, lost, later uint64
	}{
		{"in time", sink{after: 400 * time.Millisecond}, "", 1, 0, 0},
		{"late", sink{after: time.Second}, phases.CauseTimeout, 0, 1, 1},
		{"refused", sink{err: errors.New("full")}, phases.CauseUnavailable, 0, 1, 0},
		{"late and refused", sink{after: time.Second, err: errors.New("full")}, phases.CauseTimeout, 0, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				k := New(&tt.sink, errClosed)
				var late uint64
				ended, cancel := context.WithCancel(t.Context())
				cancel() // an interrupted turn is kept all the same
				begin := time.Now()
				errs := map[string]error{"Append": k.Append(ended, &manifest.Manifest{}, nil, func() { late++ })}
				if took := time.Since(begin); took > sinkTime {
					t.Errorf("Append took %s", took)
				}
				errs["Report"] = k.Report(ended, manifest.Usage{})
				m, err := k.Last(ended, "w", "t")
				errs["Last"] = err
				if (m == nil) == (err == nil) {
					t.Errorf("Last = %v, %v", m, err)
				}
				for name, err := range errs {
					if tt.code == "" && err != nil || tt.code != "" && (err == nil || Code(err) != tt.code) {
						t.Errorf("%s: %v, want the code %q", name, err, tt.code)
					}
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				got := [...]uint64{k.Kept.Load(), k.NotKept.Load(), k.KeptLate.Load(), k.Usage.Load(), k.UsageLost.Load(), late}
				if want := [...]uint64{tt.kept, tt.lost, tt.later, tt.kept, tt.lost, tt.later}; got != want {
					t.Errorf("counted %v, want %v", got, want)
				}
				if err := k.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if err := k.Report(t.Context(), manifest.Usage{}); !errors.Is(err, errClosed) {
					t.Errorf("after Close: %v", err)
				}
			})
		})
	}
}

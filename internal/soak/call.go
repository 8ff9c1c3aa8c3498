//go:build linux

package soak

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// call lets the callers call until the limit or the time of the stretch is
// reached, and waits for them.
func (r *run) call(ctx context.Context) {
	var wait sync.WaitGroup
	for range r.o.Callers {
		wait.Go(func() {
			seen := map[string]uint64{}
			for r.more(ctx) {
				n := r.next.Add(1)
				if n > r.limit.Load() {
					break
				}
				r.dispatch(ctx, rand.New(rand.NewPCG(r.o.Seed, n+1)), seen)
			}
			r.add(seen)
		})
	}
	wait.Wait()
	r.next.Store(r.done()) // those who came too late have not called
}

func (r *run) more(ctx context.Context) bool {
	return ctx.Err() == nil && (r.until.IsZero() || time.Now().Before(r.until))
}

// add takes over what one caller has counted.
func (r *run) add(seen map[string]uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, n := range seen {
		r.runs[name] += n
	}
}

// dispatch is one call of one kind. A few callers leave early.
func (r *run) dispatch(ctx context.Context, rng *rand.Rand, seen map[string]uint64) {
	leaves := rng.IntN(50) == 0
	if leaves {
		bounded, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(5000))*time.Microsecond)
		defer cancel()
		ctx = bounded
	}
	begin := time.Now()
	out, err := r.dispatchOne(ctx, rng)
	took := time.Since(begin)
	r.took.Record(took)
	if leaves || ctx.Err() != nil { // its hooks are cut short, or had no time at all
		seen["(the caller left)"]++
		return
	}
	if _, failed := errors.AsType[*runtime.PhaseError](err); err != nil && !failed || out == nil {
		r.disturb("dispatch", fmt.Sprint(err))
		return
	}
	r.slow(out, took)
	for i := range out.Runs {
		row := &out.Runs[i]
		seen[strings.TrimSpace(string(row.State)+" "+row.Code)]++
		if out.Phase == phases.PrePromptCompile && strings.HasPrefix(row.Plugin, "good") && row.State != phases.StateSucceeded {
			r.disturb(row.Subscription, fmt.Sprintf("%s %s", row.State, row.Code))
		}
	}
}

// slow keeps what took longest.
func (r *run) slow(out *phases.Outcome, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if took <= r.slowest || len(out.Runs) == 0 {
		return
	}
	r.slowest = took
	longest := slices.MaxFunc(out.Runs, func(a, b phases.Run) int { return cmp.Compare(a.DurationMS+a.QueueMS, b.DurationMS+b.QueueMS) })
	r.report.Slowest = fmt.Sprintf("%s in %.0f ms, of which %s took %.0f ms and waited %.0f ms (%s)", out.Phase, millis(took),
		longest.Subscription, longest.DurationMS, longest.QueueMS, strings.TrimSpace(string(longest.State)+" "+longest.Code))
}

// dispatchOne is a dispatch of the prompt, of a tool, or one in a turn.
func (r *run) dispatchOne(ctx context.Context, rng *rand.Rand) (*phases.Outcome, error) {
	c := phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: strconv.FormatUint(rng.Uint64(), 10), Mode: phases.ModeAgent}
	prompt := &phases.PrePromptCompileInput{Sections: []string{strings.Repeat("s", rng.IntN(4096))}}
	switch n := rng.IntN(1000); {
	case n < 50:
		turn, err := r.engine.BeginTurn(ctx, phases.Turn{WorkspaceID: c.WorkspaceID, ThreadID: c.ThreadID, TurnID: c.TurnID, Mode: c.Mode})
		if err != nil {
			return nil, err
		}
		out, err := turn.Dispatch(ctx, prompt)
		if _, ended := turn.End(ctx, &phases.PostTurnInput{}); err == nil {
			err = ended
		}
		return out, err
	case n < 300:
		return r.engine.Dispatch(ctx, c, &phases.ToolPreCallInput{Tool: "t", Arguments: arguments(rng.IntN(4096))})
	case n < 301: // more than a frame
		return r.engine.Dispatch(ctx, c, &phases.ToolPreCallInput{Tool: "t", Arguments: arguments(5 << 20)})
	}
	return r.engine.Dispatch(ctx, c, prompt)
}

func arguments(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("a", n) + `"`) }

// disturb notes what should not have happened.
func (r *run) disturb(what, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.disturbedCount++; len(r.disturbed) < 5 {
		r.disturbed = append(r.disturbed, what+": "+why)
	}
}

// note counts the engine's events but for those that are counted elsewhere.
func (r *run) note(e runtime.Event) {
	var name string
	switch e.Kind {
	case runtime.EventPlugin, runtime.EventBreaker, runtime.EventDropped, runtime.EventAbandoned:
		name = strings.Join(strings.Fields(string(e.Kind)+" "+e.State+" "+e.Code), " ")
	case runtime.EventLog:
		if e.Count == 0 {
			return
		}
		name = "log lines dropped"
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Kind == runtime.EventPlugin && e.Code == string(phases.CauseInternal) && len(r.report.Internal) < 5 {
		r.report.Internal = append(r.report.Internal, fmt.Sprintf("%s is %s: %s", e.Plugin, e.State, e.Message+" "+e.Detail))
	}
	r.events[name] += uint64(max(1, e.Count))
}

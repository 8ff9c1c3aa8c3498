package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

const (
	soakCallers  = 16
	soakWarmUp   = 200     // dispatches that fill the engine's caches before the first count
	soakStretch  = 100_000 // dispatches between two counts
	soakReload   = 1000    // dispatches between two configurations
	soakSlack    = 4       // how many descriptors and goroutines more there may be in the end
	soakGrowth   = 1 << 20 // how many bytes the heap may grow in a stretch, or in all of a shorter run
	soakGoodTime = 10 * time.Second
)

// soak is an engine with plugins of which a third misbehave.
type soak struct {
	seed       uint64
	dispatches uint64
	end        time.Time // ends the run earlier
	engine     *runtime.Engine
	rng        *rand.Rand // of what is declared
	plugins    []config.Plugin

	next, reloads atomic.Uint64 // next numbers the dispatches
	disturbed     atomic.Uint64 // counts good hooks that were not served
	ending        atomic.Bool   // the engine is being closed
	mu            sync.Mutex
	runs          map[string]uint64 // counts hooks by state and code
}

// TestSoak runs an engine with plugins of which a third misbehave at random. The good plugins must be served all the time,
// and after each stretch, when the bad ones are replaced by good ones, the host must hold what it held at the start. While
// callers dispatch, configurations change. The same seed is the same mixture, not the same run: when processes die depends
// on the machine.
//
// It is a soak of some seconds. GRAPNEL_SOAK makes it longer: a time ("30m") or a number of dispatches; GRAPNEL_SOAK_SEED
// draws another mixture. It is not parallel: it counts what the whole process has.
func TestSoak(t *testing.T) {
	newBench(t) // which checks that nothing is left after the end
	s := newSoak(t)
	var err error
	if s.engine, err = runtime.New(t.Context(), s.config(), runtime.Options{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeEngine(t, s.engine) })
	s.call(t, soakWarmUp, nil)
	begin, first := time.Now(), heldNow(t)
	for s.next.Load() < s.dispatches && time.Now().Before(s.end) && !t.Failed() {
		s.stretch(t, min(s.next.Load()+soakStretch, s.dispatches))
		s.checkHeld(t, first)
		t.Logf("seed %d: %d dispatches in %v, %d reloads; hooks: %v", s.seed, s.next.Load(), time.Since(begin), s.reloads.Load(), s.runs)
	}
	s.closeMeanwhile(t)
	good := s.runs["succeeded"]
	if good == 0 || len(s.runs) < 2 {
		t.Errorf("nothing went wrong, or everything: %v", s.runs)
	}
}

// newSoak reads from the environment how long the run is.
func newSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{dispatches: 600, seed: 3, end: time.Now().Add(math.MaxInt64), runs: map[string]uint64{}}
	plugins := 6
	long := os.Getenv("GRAPNEL_SOAK")
	if long != "" || os.Getenv(longTests) != "" {
		s.dispatches, plugins = 3000, 20
	}
	var err error
	if long != "" {
		if s.dispatches, err = strconv.ParseUint(long, 10, 64); err != nil {
			limit, wrong := time.ParseDuration(long)
			s.dispatches, s.end, err = math.MaxUint64, time.Now().Add(limit), wrong
		}
	}
	if seed := os.Getenv("GRAPNEL_SOAK_SEED"); seed != "" && err == nil {
		s.seed, err = strconv.ParseUint(seed, 10, 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.rng = rand.New(rand.NewPCG(s.seed, 1))
	for i := range plugins {
		s.plugins = append(s.plugins, s.good(t, i))
	}
	return s
}

// isBad reports whether plugin i is one of the third that misbehaves.
func isBad(i int) bool { return i%3 == 2 }

// good declares a good plugin, each time differently.
func (s *soak) good(t *testing.T, i int) config.Plugin {
	t.Helper()
	return s.declare(t, i, soakGoodTime, soakGoodTime, "good", fmt.Sprintf("round=%d", s.rng.Uint32()))
}

// bad declares a plugin that misbehaves: half at random, half always in the same way.
func (s *soak) bad(t *testing.T, i int) config.Plugin {
	t.Helper()
	modes := []string{
		"noise", "crash", "deaf", "slow", "stop", "stubborn", "orphans", "big", "long", "taken", "exit", "hang", "mute", "no-socket",
		"version", "double", "late", "wrong-id", "stale", "garbage", "huge", "half", "not-utf8", "hang-up", "raw-good",
	}
	mode := "random"
	if s.rng.IntN(2) == 0 {
		mode = modes[s.rng.IntN(len(modes))]
	}
	return s.declare(t, i, time.Second, 50*time.Millisecond, mode, fmt.Sprintf("round=%d", s.rng.Uint32()))
}

// declare declares plugin i. The first is called "good", whose section others try to take; half of the plugins do not take the lane.
func (s *soak) declare(t *testing.T, i int, start, timeout time.Duration, mode, round string) config.Plugin {
	t.Helper()
	name := map[bool]string{true: "bad", false: "good"}[isBad(i)]
	if i > 0 {
		name += strconv.Itoa(i)
	}
	p := bad(t, name, mode, round)
	p.Limits.Start, p.Limits.Memory = phases.Duration(start), 512<<20
	if i%2 == 1 {
		p.Env.Set[overGRPC] = config.Secret{Value: "1"}
	}
	o := phases.Override{Timeout: new(phases.Duration(timeout)), OnFailure: &phases.OnFailure{Default: phases.BestEffort}}
	if isBad(i) {
		o.Priority = new(-1) // who takes another's section loses it
	}
	p.Subscriptions = map[string]phases.Override{name + ".h": o}
	return p
}

// config is a configuration of the plugins in which only the bad ones have little time.
func (s *soak) config() *config.Config {
	cfg := &config.Config{Version: 1, Plugins: append([]config.Plugin(nil), s.plugins...)}
	cfg.Budgets.Turn.Time = phases.Duration(4 * soakGoodTime)
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{
		phases.PrePromptCompile: budget(2 * soakGoodTime), phases.ToolPreCall: budget(2 * soakGoodTime),
	}
	return cfg
}

// reload replaces half of the bad plugins, and rarely a good one. It returns false if one of them does not come up: the
// engine then keeps the configuration that it has.
func (s *soak) reload(t *testing.T) bool {
	t.Helper()
	for i := range s.plugins {
		switch {
		case isBad(i) && s.rng.IntN(2) == 0:
			s.plugins[i] = s.bad(t, i)
		case !isBad(i) && s.rng.IntN(4*len(s.plugins)) == 0:
			s.plugins[i] = s.good(t, i)
		}
	}
	err := s.engine.Reload(t.Context(), s.config())
	if err != nil && !errors.Is(err, runtime.ErrNotUp) {
		t.Errorf("reload: %v", err)
	}
	s.reloads.Add(1)
	return err == nil
}

// stretch calls while configurations with bad plugins are put in force, and then puts good ones in their place.
func (s *soak) stretch(t *testing.T, upTo uint64) {
	t.Helper()
	for !s.reload(t) && !t.Failed() {
	}
	due := make(chan struct{}, 1)
	var reloading sync.WaitGroup
	reloading.Go(func() {
		for range due {
			s.reload(t)
		}
	})
	s.call(t, upTo, due)
	close(due)
	reloading.Wait()
	for i := range s.plugins {
		if isBad(i) {
			s.plugins[i] = s.good(t, i)
		}
	}
	if err := s.engine.Reload(t.Context(), s.config()); err != nil {
		t.Errorf("a configuration of good plugins: %v", err)
	}
}

// call lets the callers call up to a number, and asks for reloads.
func (s *soak) call(t *testing.T, upTo uint64, due chan<- struct{}) {
	t.Helper()
	var callers sync.WaitGroup
	for range soakCallers {
		callers.Go(func() {
			for n := s.next.Add(1); n <= upTo && time.Now().Before(s.end); n = s.next.Add(1) {
				if n%soakReload == 0 {
					select {
					case due <- struct{}{}:
					default:
					}
				}
				s.dispatch(t, rand.New(rand.NewPCG(s.seed, n)))
			}
		})
	}
	callers.Wait()
	s.next.Store(min(s.next.Load(), upTo)) // those who were too late have not called
}

// dispatch makes one call, which a few callers abandon, and checks that the good plugins were served.
func (s *soak) dispatch(t *testing.T, rng *rand.Rand) {
	t.Helper()
	ctx := t.Context()
	abandons := rng.IntN(50) == 0
	if abandons {
		bounded, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(5000))*time.Microsecond)
		defer cancel()
		ctx = bounded
	}
	out, err := s.dispatchOne(ctx, rng)
	if abandons || s.ending.Load() { // its hooks are cut short
		return
	}
	if _, failed := errors.AsType[*runtime.PhaseError](err); err != nil && !failed {
		s.disturb(t, "dispatch", err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range out.Runs {
		row := &out.Runs[i]
		said := strings.TrimSpace(string(row.State) + " " + row.Code)
		s.runs[said]++
		if out.Phase == phases.PrePromptCompile && strings.HasPrefix(row.Plugin, "good") && row.State != phases.StateSucceeded {
			s.disturb(t, row.Subscription, said)
		}
	}
}

// disturb reports the first things that should not have happened.
func (s *soak) disturb(t *testing.T, what, why string) {
	t.Helper()
	if s.disturbed.Add(1) <= 5 {
		t.Errorf("%s: %s", what, why)
	}
}

// dispatchOne dispatches a prompt, a tool call, which may be more than a frame, or a prompt in a turn.
func (s *soak) dispatchOne(ctx context.Context, rng *rand.Rand) (*phases.Outcome, error) {
	prompt := &phases.PrePromptCompileInput{Sections: []string{strings.Repeat("s", rng.IntN(4096))}}
	call := func(n int) (*phases.Outcome, error) {
		return s.engine.Dispatch(ctx, host(), &phases.ToolPreCallInput{Tool: "t", Arguments: raw(`"` + strings.Repeat("a", n) + `"`)})
	}
	switch n := rng.IntN(1000); {
	case n < 100:
		return s.turn(ctx, prompt, strconv.FormatUint(rng.Uint64(), 10))
	case n < 300:
		return call(rng.IntN(4096))
	case n < 301:
		return call(5 << 20)
	}
	return s.engine.Dispatch(ctx, host(), prompt)
}

// turn makes a turn in which tool calls are judged while the prompt is compiled.
func (s *soak) turn(ctx context.Context, prompt phases.Input, id string) (*phases.Outcome, error) {
	c := host()
	c.TurnID = id
	turn, err := s.engine.BeginTurn(ctx, c)
	if err != nil {
		return nil, err
	}
	errs := make([]error, 5)
	var meanwhile sync.WaitGroup
	for i := range 3 {
		meanwhile.Go(func() { _, errs[i] = turn.Dispatch(ctx, &phases.ToolPreCallInput{Tool: "t", Arguments: raw("{}")}) })
	}
	_, errs[3] = turn.Compile(ctx, runtime.CompileInput{UserText: "x"})
	meanwhile.Wait()
	out, err := turn.Dispatch(ctx, prompt)
	_, errs[4] = turn.End(ctx, &phases.PostTurnInput{Status: phases.TurnSucceeded})
	for _, other := range errs {
		if _, failed := errors.AsType[*runtime.PhaseError](other); other != nil && !failed {
			err = other
		}
	}
	return out, err
}

// closeMeanwhile closes the engine while it is called.
func (s *soak) closeMeanwhile(t *testing.T) {
	t.Helper()
	s.ending.Store(true)
	var calling sync.WaitGroup
	calling.Go(func() { s.call(t, s.next.Load()+soakWarmUp, nil) })
	closeEngine(t, s.engine)
	calling.Wait()
}

// held is what a host holds.
type held struct {
	descriptors, goroutines, processes int
	heap                               int64
}

func heldNow(t *testing.T) held {
	t.Helper()
	goruntime.GC() // twice: the first one empties pools half-way
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return held{len(openFiles(t)), goruntime.NumGoroutine(), len(processesOf(t, os.Getpid())), int64(m.HeapAlloc)}
}

// checkHeld waits until the host holds no more than it held at first.
func (s *soak) checkHeld(t *testing.T, first held) {
	t.Helper()
	stretches := max(1, int64(s.next.Load()/soakStretch))
	eventually(t, "the host holds more", func() string {
		now := heldNow(t)
		if now.descriptors > first.descriptors+soakSlack || now.goroutines > first.goroutines+soakSlack ||
			now.processes > first.processes || now.heap > first.heap+stretches*soakGrowth {
			return fmt.Sprintf("%+v, at first %+v", now, first)
		}
		return ""
	})
}

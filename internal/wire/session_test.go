package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// freed counts the calls of a callback and can be waited for.
type freedOnce struct {
	count atomic.Int64
	done  chan struct{}
}

func newFreed() *freedOnce { return &freedOnce{done: make(chan struct{})} }

func (f *freedOnce) call() {
	if f.count.Add(1) == 1 {
		close(f.done)
	}
}

// wait returns when the callback was called, and fails if it was so twice.
func (f *freedOnce) wait(t *testing.T) {
	t.Helper()
	select {
	case <-f.done:
	case <-deadline(t).Done():
		t.Fatal("freed was not called")
	}
	if n := f.count.Load(); n != 1 {
		t.Errorf("freed was called %d times", n)
	}
}

// checkCode fails unless err carries the code.
func checkCode(t *testing.T, err error, want phases.Cause) {
	t.Helper()
	if got := phases.CodeOf(err); got != want {
		t.Errorf("got code %q (%v), want %q", got, err, want)
	}
}

func TestSession(t *testing.T) {
	t.Parallel()
	told := make(chan *phases.Dispatch, 1)
	p := &testPlugin{dispatch: func(_ context.Context, d *phases.Dispatch) (*phases.Result, error) {
		told <- d
		return echo(d), nil
	}}
	s := open(t, serve(t, p, 0), HostOptions{Incarnation: 3})
	ctx := deadline(t)
	if got := s.Description().Name; got != "test" {
		t.Errorf("described as %q", got)
	}
	d, err := s.Configure(ctx, &phases.Configuration{Instance: "mine", Config: raw(`{}`)})
	if err != nil || d.Doc != "mine" {
		t.Fatalf("configured: %v, %v", d, err)
	}
	sent := textDispatch("hello")
	f := newFreed()
	res, stats, err := s.Dispatch(ctx, sent, f.call)
	if err != nil {
		t.Fatal(err)
	}
	f.wait(t)
	if got := echoed(t, res); got != "hello" {
		t.Errorf("got %q", got)
	}
	if stats.BytesIn < 100 || stats.BytesOut < 20 {
		t.Errorf("stats %+v", stats)
	}
	got := <-told
	if got.Incarnation != 3 || got.Remaining <= 0 || got.Remaining > patience {
		t.Errorf("told incarnation %d, remaining %v", got.Incarnation, got.Remaining)
	}
	got.Incarnation, got.Remaining = 0, 0
	if diff := cmp.Diff(sent, got, instants()); diff != "" {
		t.Errorf("dispatch (-sent +told):\n%s", diff)
	}
	out, _, err := s.CallTool(ctx, &phases.ToolCall{Tool: "t", Arguments: raw(`{"a":1}`)}, nil)
	if err != nil || string(out.Content) != `{"a":1}` {
		t.Errorf("tool: %v, %v", out, err)
	}
	if err := s.Ping(ctx); err != nil {
		t.Errorf("ping: %v", err)
	}
	if err := s.Err(); err != nil {
		t.Errorf("a session that lives has the error %v", err)
	}
}

func TestSessionsMayFollowEachOther(t *testing.T) {
	t.Parallel()
	if way == overLines {
		t.Skip("standard input and output serve one session")
	}
	conn := serve(t, &testPlugin{}, 0)
	for i := range 3 {
		s := open(t, conn, HostOptions{})
		if _, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil); err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
		s.Close()
		s.Close()
		<-s.Done()
		checkCode(t, s.Err(), phases.CauseSessionReset)
		f := newFreed()
		_, _, err := s.Dispatch(deadline(t), textDispatch("x"), f.call)
		checkCode(t, err, phases.CauseSessionReset)
		f.wait(t)
	}
}

func TestRemainingTime(t *testing.T) {
	t.Parallel()
	told := make(chan time.Duration, 1)
	p := &testPlugin{dispatch: func(ctx context.Context, d *phases.Dispatch) (*phases.Result, error) {
		until, ok := ctx.Deadline()
		if ok != (d.Remaining > 0) || ok && time.Until(until) > d.Remaining {
			return nil, fmt.Errorf("the context says %v, the dispatch %v", until, d.Remaining)
		}
		told <- d.Remaining
		return echo(d), nil
	}}
	s := open(t, serve(t, p, 0), HostOptions{})
	cases := []struct {
		name     string
		said     time.Duration
		deadline time.Duration
		least    time.Duration
		most     time.Duration
	}{
		{"none", 0, 0, 0, 0},
		{"said", time.Hour, 0, time.Hour, time.Hour},
		{"context", 0, time.Hour, time.Minute, time.Hour},
		{"said less", time.Minute, time.Hour, time.Minute, time.Minute},
		{"context has less", 2 * time.Hour, time.Hour, time.Minute, time.Hour},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			if c.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.deadline)
				defer cancel()
			}
			d := textDispatch("x")
			d.Remaining = c.said
			if _, _, err := s.Dispatch(ctx, d, nil); err != nil {
				t.Fatal(err)
			}
			if got := <-told; got < c.least || got > c.most {
				t.Errorf("told %v, want %v to %v", got, c.least, c.most)
			}
		})
	}
}

func TestFeatures(t *testing.T) {
	t.Parallel()
	needs := func(features ...string) *phases.Description {
		return &phases.Description{Name: "test", Version: "1", Requires: features}
	}
	p := &testPlugin{describe: func(context.Context) (*phases.Description, error) {
		return needs("tools", "teleport"), nil
	}}
	_, err := openWith(deadline(t), serve(t, p, 0), HostOptions{Instance: "tested", Incarnation: 7})
	checkCode(t, err, phases.CauseVersionMismatch)
	for _, word := range []string{"tested", "teleport", "tools", "reconfigure"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not name %q: %v", word, err)
		}
	}
	q := &testPlugin{configure: func(context.Context, *phases.Configuration) (*phases.Description, error) {
		return needs("later"), nil
	}}
	s := open(t, serve(t, q, 0), HostOptions{})
	_, err = s.Configure(deadline(t), &phases.Configuration{})
	checkCode(t, err, phases.CauseVersionMismatch)
}

// TestHammer calls from many goroutines, some of which give up.
func TestHammer(t *testing.T) {
	t.Parallel()
	var running atomic.Int64
	host := &services{call: func(_ context.Context, _, _ string, p json.RawMessage) (json.RawMessage, error) { return p, nil }}
	p := caller(func(ctx context.Context, host phases.Host, d *phases.Dispatch) (string, error) {
		running.Add(1)
		defer running.Add(-1)
		if d.Attempt%5 == 0 {
			_, err := host.Call(ctx, "s", "m", raw(`1`))
			return d.IdempotencyKey, err
		}
		return d.IdempotencyKey, nil
	})
	s := openConfigured(t, p, HostOptions{Host: host, HostCalls: 1000})
	var wg sync.WaitGroup
	var frees, calls atomic.Int64
	for g := range 32 {
		wg.Go(func() {
			for i := range 100 {
				hammer(t, s, g, i, func() { frees.Add(1) })
				calls.Add(1)
			}
		})
	}
	wg.Wait()
	if err := s.Drain(deadline(t)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if frees.Load() != calls.Load() {
		t.Errorf("%d slots freed of %d", frees.Load(), calls.Load())
	}
}

func hammer(t *testing.T, s *Session, g, i int, freed func()) {
	t.Helper()
	ctx := deadline(t)
	if i%7 == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(i)*10*time.Microsecond)
		defer cancel()
	}
	d := textDispatch(strings.Repeat("x", i*i))
	d.Attempt, d.IdempotencyKey = i, fmt.Sprintf("%d/%d", g, i)
	res, _, err := s.Dispatch(ctx, d, freed)
	if err != nil {
		if i%7 != 0 {
			t.Error(err)
		}
		return
	}
	if got := echoed(t, res); got != d.IdempotencyKey {
		t.Errorf("got the answer of %q, want that of %q", got, d.IdempotencyKey)
	}
}

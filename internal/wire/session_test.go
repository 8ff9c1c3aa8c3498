package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	s := open(t, serve(t, p, ServeOptions{}, 0), HostOptions{Incarnation: 3})
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
	if got.Incarnation != 3 || got.Remaining <= 0 || got.Remaining > 20*time.Second {
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
	conn := serve(t, &testPlugin{}, ServeOptions{}, 0)
	for i := range 3 {
		s := open(t, conn, HostOptions{})
		if _, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil); err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
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
	s := open(t, serve(t, p, ServeOptions{}, 0), HostOptions{})
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
	_, err := Open(deadline(t), serve(t, p, ServeOptions{}, 0), HostOptions{Instance: "tested"})
	checkCode(t, err, phases.CauseVersionMismatch)
	for _, word := range []string{"tested", "teleport", "tools", "reconfigure"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not name %q: %v", word, err)
		}
	}
	q := &testPlugin{configure: func(context.Context, *phases.Configuration) (*phases.Description, error) {
		return needs("later"), nil
	}}
	s := open(t, serve(t, q, ServeOptions{}, 0), HostOptions{})
	_, err = s.Configure(deadline(t), &phases.Configuration{})
	checkCode(t, err, phases.CauseVersionMismatch)
	s = open(t, serve(t, p, ServeOptions{}, 0), HostOptions{Features: []string{"tools", "teleport"}})
	if !slices.Contains(s.Description().Requires, "teleport") {
		t.Error("the host's own features do not count")
	}
}

func TestRefusedConfiguration(t *testing.T) {
	t.Parallel()
	p := &testPlugin{configure: func(_ context.Context, c *phases.Configuration) (*phases.Description, error) {
		switch string(c.Config) {
		case `"pointer"`:
			return nil, fmt.Errorf("wrapped: %w", &phases.ConfigError{Pointer: "/a/0", Message: "is odd"})
		case `"error"`:
			return nil, errors.New("no idea")
		case `"panic"`:
			panic("boom")
		default:
			return nil, nil
		}
	}}
	s := open(t, serve(t, p, ServeOptions{}, 0), HostOptions{})
	_, err := s.Configure(deadline(t), &phases.Configuration{Config: raw(`"pointer"`)})
	rejected, ok := errors.AsType[*phases.ConfigError](err)
	if !ok || rejected.Pointer != "/a/0" || rejected.Message != "is odd" {
		t.Errorf("got %v, want a ConfigError", err)
	}
	for config, word := range map[string]string{`"error"`: "error", `"panic"`: "panic", `"nothing"`: "no_answer"} {
		_, err := s.Configure(deadline(t), &phases.Configuration{Config: raw(config)})
		checkPluginCode(t, err, word)
	}
}

func checkPluginCode(t *testing.T, err error, want string) {
	t.Helper()
	e, ok := errors.AsType[*phases.Error](err)
	if !ok || e.Code != phases.CausePluginError || e.PluginCode != want {
		t.Errorf("got %v, want plugin_error with the code %q", err, want)
	}
}

func TestPluginErrors(t *testing.T) {
	t.Parallel()
	answers := map[string]struct {
		err  error
		code phases.Cause
		word string
	}{
		"plain":     {errors.New("broken"), phases.CausePluginError, "error"},
		"coded":     {&phases.Error{Code: phases.CausePluginError, PluginCode: "upstream", Retryable: true}, phases.CausePluginError, "upstream"},
		"busy":      {&phases.Error{Code: phases.CauseOverloaded}, phases.CauseOverloaded, ""},
		"denied":    {&phases.Error{Code: phases.CauseDenied}, phases.CausePluginError, "denied"},
		"cancelled": {&phases.Error{Code: phases.CauseCancelled}, phases.CausePluginError, "cancelled"},
		"crash":     {&phases.Error{Code: phases.CauseCrash, PluginCode: "own"}, phases.CausePluginError, "own"},
	}
	p := &testPlugin{
		dispatch: func(_ context.Context, d *phases.Dispatch) (*phases.Result, error) { return nil, answers[d.Hook].err },
		callTool: func(_ context.Context, c *phases.ToolCall) (*phases.ToolResult, error) {
			if c.Tool == "panic" {
				panic("boom")
			}
			return nil, answers[c.Tool].err
		},
	}
	s := open(t, serve(t, p, ServeOptions{}, 0), HostOptions{})
	for name, want := range answers {
		t.Run(name, func(t *testing.T) {
			_, _, err := s.Dispatch(deadline(t), &phases.Dispatch{Hook: name, Phase: phases.SessionEnd}, nil)
			_, _, toolErr := s.CallTool(deadline(t), &phases.ToolCall{Tool: name}, nil)
			for _, err := range []error{err, toolErr} {
				e, ok := errors.AsType[*phases.Error](err)
				if !ok || e.Code != want.code || e.PluginCode != want.word {
					t.Errorf("got %v, want %s/%s", err, want.code, want.word)
				}
			}
		})
	}
	_, _, err := s.CallTool(deadline(t), &phases.ToolCall{Tool: "panic"}, nil)
	checkPluginCode(t, err, "panic")
	if err == nil || !strings.Contains(err.Error(), "session_test.go") {
		t.Errorf("no stack in %v", err)
	}
}

// TestUnsendableAnswers: whatever a handler returns, the call is answered.
func TestUnsendableAnswers(t *testing.T) {
	t.Parallel()
	p := &testPlugin{
		dispatch: func(_ context.Context, d *phases.Dispatch) (*phases.Result, error) {
			switch d.Hook {
			case "typed nil":
				return &phases.Result{Contributions: []phases.Contribution{(*phases.Policy)(nil)}}, nil
			case "year":
				job := &phases.BackgroundJob{JobKind: "j", NotBefore: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)}
				return &phases.Result{Contributions: []phases.Contribution{job}}, nil
			case "nil entry":
				return &phases.Result{Contributions: []phases.Contribution{nil, &phases.Noop{}}}, nil
			}
			return nil, nil
		},
		callTool: func(context.Context, *phases.ToolCall) (*phases.ToolResult, error) {
			return &phases.ToolResult{Content: raw(`{`)}, nil
		},
	}
	s := open(t, serve(t, p, ServeOptions{}, 0), HostOptions{})
	call := func(hook string) (*phases.Result, error) {
		res, _, err := s.Dispatch(deadline(t), &phases.Dispatch{Hook: hook, Phase: phases.SessionEnd}, nil)
		return res, err
	}
	_, err := call("typed nil")
	checkPluginCode(t, err, "panic")
	_, err = call("year")
	checkPluginCode(t, err, "error")
	res, err := call("nil entry")
	if err != nil || len(res.Contributions) != 1 || len(res.Diagnostics) != 1 {
		t.Errorf("nil entry: %v, %v", res, err)
	}
	if res, err := call("nothing"); err != nil || len(res.Contributions) != 0 {
		t.Errorf("nothing: %v, %v", res, err)
	}
	_, _, err = s.CallTool(deadline(t), &phases.ToolCall{Tool: "broken"}, nil)
	checkCode(t, err, phases.CauseInvalidReply)
}

func TestTextOfAnswersIsRepaired(t *testing.T) {
	t.Parallel()
	p := &testPlugin{dispatch: func(context.Context, *phases.Dispatch) (*phases.Result, error) {
		return &phases.Result{Contributions: []phases.Contribution{
			&phases.PromptSection{SectionID: "s", Content: "a\x00b\xffc\u202ed"},
			&phases.Audit{EventKind: "e", Details: raw(`"\u0000"`)},
		}}, nil
	}}
	s := open(t, serve(t, p, ServeOptions{}, 0), HostOptions{})
	res, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &phases.Result{
		Contributions: []phases.Contribution{
			&phases.PromptSection{SectionID: "s", Content: "a\uFFFDb\uFFFDc\uFFFDd"},
			&phases.Audit{EventKind: "e", Details: raw(`"\ufffd"`)},
		},
		Diagnostics: res.Diagnostics,
	}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(res.Diagnostics) != 1 || res.Diagnostics[0].Code != codeText || !strings.Contains(res.Diagnostics[0].Message, "2 texts") {
		t.Errorf("diagnostics %v", res.Diagnostics)
	}
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	s := open(t, serve(t, &testPlugin{}, ServeOptions{}, 64<<10), HostOptions{Frame: 64 << 10})
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	cases := []struct {
		name string
		ctx  context.Context
		d    *phases.Dispatch
		want phases.Cause
	}{
		{"too long", deadline(t), textDispatch(strings.Repeat("x", 64<<10)), phases.CauseOversizeRequest},
		{"not UTF-8", deadline(t), textDispatch("\xff"), phases.CauseInternal},
		{"given up before", cancelled, textDispatch("x"), phases.CauseCancelled},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFreed()
			_, _, err := s.Dispatch(c.ctx, c.d, f.call)
			checkCode(t, err, c.want)
			f.wait(t)
		})
	}
	if _, _, err := s.Dispatch(deadline(t), textDispatch("still here"), nil); err != nil {
		t.Error(err)
	}
}

func TestOversizeReplyOfTheKit(t *testing.T) {
	t.Parallel()
	p := &testPlugin{dispatch: func(_ context.Context, d *phases.Dispatch) (*phases.Result, error) {
		if d.Hook == "big" {
			return echo(textDispatch(strings.Repeat("x", 64<<10))), nil
		}
		return echo(d), nil
	}}
	for name, o := range map[string]struct{ host, plugin int }{"limit of the host": {64 << 10, 0}, "limit of the plugin": {0, 64 << 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, serve(t, p, ServeOptions{Frame: o.plugin}, o.host), HostOptions{Frame: o.host})
			_, _, err := s.Dispatch(deadline(t), &phases.Dispatch{Hook: "big", Phase: phases.SessionEnd}, nil)
			checkCode(t, err, phases.CauseOversizeReply)
			if _, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil); err != nil {
				t.Errorf("the session did not live on: %v", err)
			}
		})
	}
}

// TestLargeFrames sends the longest frames there are, each way.
func TestLargeFrames(t *testing.T) {
	t.Parallel()
	s := open(t, serve(t, &testPlugin{}, ServeOptions{}, MaxFrame), HostOptions{Frame: MaxFrame})
	text := strings.Repeat("0123456789abcde\n", MaxFrame/16-64)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			res, _, err := s.Dispatch(deadline(t), textDispatch(text), nil)
			if err != nil || echoed(t, res) != text {
				t.Errorf("the text did not come back: %v", err)
			}
		})
	}
	wg.Wait()
}

// stuck is a plugin whose hook "stuck" waits for release whatever its context
// says, and "polite" returns when its context ends.
type stuck struct {
	testPlugin
	started chan string
	release chan struct{}
}

func newStuck() *stuck {
	p := &stuck{started: make(chan string, 100), release: make(chan struct{})}
	p.dispatch = func(ctx context.Context, d *phases.Dispatch) (*phases.Result, error) {
		switch d.Hook {
		case "stuck":
			p.started <- d.Hook
			<-p.release
		case "polite":
			p.started <- d.Hook
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return echo(d), nil
	}
	return p
}

func hook(name string) *phases.Dispatch {
	return &phases.Dispatch{Hook: name, Phase: phases.SessionEnd}
}

func TestCancellation(t *testing.T) {
	t.Parallel()
	why := errors.New("the user has left")
	cases := []struct {
		name string
		ctx  func(context.Context) (context.Context, func())
		want phases.Cause
		is   error
		// hooks that do not know of the deadline by themselves, which would
		// race with the host's.
		hooks []string
	}{
		{"deadline", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			return ctx, func() { <-ctx.Done(); cancel() }
		}, phases.CauseTimeout, context.DeadlineExceeded, []string{"stuck"}},
		{"cancelled", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(why) }
		}, phases.CauseCancelled, why, []string{"polite", "stuck"}},
		{"cancelled for the lack of time", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(&phases.Error{Code: phases.CauseBudgetExhausted}) }
		}, phases.CauseBudgetExhausted, context.Canceled, []string{"polite", "stuck"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newStuck()
			dropped := make(chan Dropped, 10)
			s := open(t, serve(t, p, ServeOptions{}, 0), HostOptions{OnDropped: func(d Dropped) { dropped <- d }})
			for _, name := range c.hooks {
				ctx, end := c.ctx(deadline(t))
				go func() { <-p.started; end() }()
				f := newFreed()
				_, _, err := s.Dispatch(ctx, hook(name), f.call)
				checkCode(t, err, c.want)
				if !errors.Is(err, c.is) {
					t.Errorf("%v is no %v", err, c.is)
				}
				if name == "stuck" {
					if f.count.Load() != 0 {
						t.Error("the slot was freed while the plugin holds it")
					}
					close(p.release)
				}
				f.wait(t)
				if got := <-dropped; got != DroppedLate {
					t.Errorf("dropped as %v, want late", got)
				}
			}
		})
	}
}

func TestCloseFreesEverything(t *testing.T) {
	t.Parallel()
	p := newStuck()
	defer close(p.release)
	s := open(t, serve(t, p, ServeOptions{}, 0), HostOptions{})
	abandoned, waiting := newFreed(), newFreed()
	ctx, cancel := context.WithCancel(deadline(t))
	go func() { <-p.started; cancel() }()
	_, _, err := s.Dispatch(ctx, hook("stuck"), abandoned.call)
	checkCode(t, err, phases.CauseCancelled)
	result := make(chan error)
	go func() {
		_, _, err := s.Dispatch(deadline(t), hook("stuck"), waiting.call)
		result <- err
	}()
	<-p.started
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	checkCode(t, <-result, phases.CauseSessionReset)
	abandoned.wait(t)
	waiting.wait(t)
	<-s.Done()
	if err := s.Err(); !errors.Is(err, errClosed) {
		t.Errorf("ended by %v", err)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	p := newStuck()
	drained := make(chan struct{})
	s := open(t, serve(t, p, ServeOptions{OnDrain: func() { close(drained) }}, 0), HostOptions{})
	result := make(chan error, 1)
	go func() {
		_, _, err := s.Dispatch(deadline(t), hook("stuck"), nil)
		result <- err
	}()
	<-p.started
	short, cancel := context.WithCancel(deadline(t))
	go func() { <-drained; cancel() }()
	checkCode(t, s.Drain(short), phases.CauseCancelled)
	close(p.release)
	if err := <-result; err != nil {
		t.Errorf("a call did not outlive the drain: %v", err)
	}
}

func TestDrainWaits(t *testing.T) {
	t.Parallel()
	p := newStuck()
	drained := make(chan struct{})
	s := open(t, serve(t, p, ServeOptions{OnDrain: func() { close(drained) }}, 0), HostOptions{})
	var answered atomic.Bool
	go func() {
		if _, _, err := s.Dispatch(deadline(t), hook("stuck"), func() { answered.Store(true) }); err != nil {
			t.Error(err)
		}
	}()
	<-p.started
	go func() { <-drained; close(p.release) }()
	if err := s.Drain(deadline(t)); err != nil {
		t.Fatal(err)
	}
	for deadline(t).Err() == nil && !answered.Load() {
		// The answer was sent before Pong; its caller may need a moment.
		if err := s.Ping(deadline(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// services is a host that answers by a function.
type services struct {
	call       func(ctx context.Context, service, method string, params json.RawMessage) (json.RawMessage, error)
	invalidate func(ctx context.Context, what phases.Invalidation) error
}

func (h *services) Call(ctx context.Context, service, method string, params json.RawMessage) (json.RawMessage, error) {
	return h.call(ctx, service, method, params)
}

func (h *services) Invalidate(ctx context.Context, what phases.Invalidation) error {
	return h.invalidate(ctx, what)
}

// caller is a plugin that calls its host, as the dispatch's hook says.
func caller(act func(ctx context.Context, host phases.Host, d *phases.Dispatch) (string, error)) *testPlugin {
	var host atomic.Pointer[phases.Host]
	return &testPlugin{
		configure: func(_ context.Context, c *phases.Configuration) (*phases.Description, error) {
			host.Store(&c.Host)
			return &phases.Description{Name: "test", Version: "1"}, nil
		},
		dispatch: func(ctx context.Context, d *phases.Dispatch) (*phases.Result, error) {
			text, err := act(ctx, *host.Load(), d)
			if err != nil {
				return nil, err
			}
			return echo(textDispatch(text)), nil
		},
	}
}

// configured opens a session and configures it.
func openConfigured(t *testing.T, p Handler, o HostOptions) *Session {
	t.Helper()
	s := open(t, serve(t, p, ServeOptions{}, o.Frame), o)
	if _, err := s.Configure(deadline(t), &phases.Configuration{}); err != nil {
		t.Fatal(err)
	}
	return s
}

type turnKey struct{}

func TestHostCalls(t *testing.T) {
	t.Parallel()
	type seen struct {
		turn     any
		deadline bool
	}
	calls := make(chan seen, 10)
	host := &services{
		call: func(ctx context.Context, service, method string, params json.RawMessage) (json.RawMessage, error) {
			_, ok := ctx.Deadline()
			calls <- seen{ctx.Value(turnKey{}), ok}
			switch method {
			case "coded":
				return nil, &phases.Error{Code: phases.CauseForbidden, Message: "not for you"}
			case "plain":
				return nil, errors.New("secret")
			case "panic":
				panic("secret")
			case "huge":
				return raw(`"` + strings.Repeat("x", DefaultFrame) + `"`), nil
			}
			return fmt.Appendf(nil, `["%s", %s]`, service, params), nil
		},
	}
	p := caller(func(ctx context.Context, host phases.Host, d *phases.Dispatch) (string, error) {
		if d.Hook == "outside" {
			ctx = context.WithoutCancel(context.Background())
		}
		if d.Hook == "derived" {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Minute)
			defer cancel()
		}
		got, err := host.Call(ctx, "state", d.Hook, raw(`1`))
		if err != nil {
			return string(phases.CodeOf(err)) + ": " + err.Error(), nil
		}
		return string(got), nil
	})
	s := openConfigured(t, p, HostOptions{Host: host})
	cases := []struct {
		name, want string
		inside     bool
	}{
		{"inside", `["state", 1]`, true},
		{"derived", `["state", 1]`, true},
		{"outside", `["state", 1]`, false},
		{"coded", "forbidden: not for you (forbidden)", true},
		{"plain", "internal: the host service failed (internal)", true},
		{"panic", "internal: the host service failed (internal)", true},
		{"huge", "oversize_reply: the host's answer cannot be sent (oversize_reply)", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.WithValue(deadline(t), turnKey{}, c.name)
			res, _, err := s.Dispatch(ctx, hook(c.name), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := echoed(t, res); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			want := seen{nil, false}
			if c.inside {
				want = seen{c.name, true}
			}
			if got := <-calls; got != want {
				t.Errorf("the host saw %+v, want %+v", got, want)
			}
		})
	}
}

func TestHostCallsEndWithTheirCall(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}), make(chan error, 1)
	host := &services{call: func(ctx context.Context, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
		close(started)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}}
	p := caller(func(ctx context.Context, host phases.Host, _ *phases.Dispatch) (string, error) {
		_, err := host.Call(ctx, "s", "m", nil)
		return "", err
	})
	s := openConfigured(t, p, HostOptions{Host: host})
	ctx, cancel := context.WithCancelCause(deadline(t))
	why := errors.New("enough")
	go func() { <-started; cancel(why) }()
	_, _, err := s.Dispatch(ctx, hook("x"), nil)
	checkCode(t, err, phases.CauseCancelled)
	if got := <-ended; !errors.Is(got, why) {
		t.Errorf("the host call ended by %v", got)
	}
}

// TestHostCallLimit: no more than so many run, the next is refused at once, and
// other frames pass meanwhile.
func TestHostCallLimit(t *testing.T) {
	t.Parallel()
	const limit = 4
	entered, release := make(chan struct{}, limit), make(chan struct{})
	host := &services{call: func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
		entered <- struct{}{}
		<-release
		return raw(`1`), nil
	}}
	p := caller(func(ctx context.Context, host phases.Host, _ *phases.Dispatch) (string, error) {
		_, err := host.Call(ctx, "s", "m", nil)
		return string(phases.CodeOf(err)), nil
	})
	s := openConfigured(t, p, HostOptions{Host: host, HostCalls: limit})
	var wg sync.WaitGroup
	call := func(want string) {
		res, _, err := s.Dispatch(deadline(t), hook("x"), nil)
		if err != nil {
			t.Error(err)
		} else if got := echoed(t, res); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for range limit {
		wg.Go(func() { call("") })
	}
	for range limit {
		<-entered
	}
	call(string(phases.CauseOverloaded))
	close(release)
	wg.Wait()
	go func() {
		for range entered { // the last call's
			return
		}
	}()
	call("")
}

func TestInvalidate(t *testing.T) {
	t.Parallel()
	told := make(chan phases.Invalidation, 1)
	host := &services{invalidate: func(_ context.Context, what phases.Invalidation) error {
		told <- what
		return nil
	}}
	want := phases.Invalidation{Subscriptions: []string{"a.b"}, Tags: []string{"files"}}
	p := caller(func(ctx context.Context, host phases.Host, _ *phases.Dispatch) (string, error) {
		return "done", host.Invalidate(ctx, want)
	})
	s := openConfigured(t, p, HostOptions{Host: host})
	if _, _, err := s.Dispatch(deadline(t), hook("x"), nil); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-told:
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	default:
		t.Error("Invalidate returned before the host was told")
	}
}

func TestHostWithoutServices(t *testing.T) {
	t.Parallel()
	p := caller(func(ctx context.Context, host phases.Host, d *phases.Dispatch) (string, error) {
		if d.Hook == "invalidate" {
			return "", host.Invalidate(ctx, phases.Invalidation{})
		}
		_, err := host.Call(ctx, "s", "m", raw(d.Hook))
		return string(phases.CodeOf(err)), nil
	})
	s := openConfigured(t, p, HostOptions{})
	for name, want := range map[string]string{`{}`: "unavailable", `{`: "invalid_reply", "invalidate": ""} {
		res, _, err := s.Dispatch(deadline(t), hook(name), nil)
		if err != nil || echoed(t, res) != want {
			t.Errorf("%s: got %v, %v; want %q", name, res, err, want)
		}
	}
}

// TestOldHost: after a session the host that was handed out in it fails.
func TestOldHost(t *testing.T) {
	t.Parallel()
	hosts := make(chan phases.Host, 1)
	p := caller(func(_ context.Context, host phases.Host, _ *phases.Dispatch) (string, error) {
		hosts <- host
		return "", nil
	})
	s := openConfigured(t, p, HostOptions{})
	if _, _, err := s.Dispatch(deadline(t), hook("x"), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	host := <-hosts
	// The plugin may learn of the end a moment later; until then calls wait and
	// are then ended by it.
	_, err := host.Call(deadline(t), "s", "m", nil)
	checkCode(t, err, phases.CauseSessionReset)
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
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
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

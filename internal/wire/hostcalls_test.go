package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

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
	s := open(t, serve(t, p, o.Frame), o)
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
	//nolint:contextcheck // one case calls outside of its call
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
			res, stats, err := s.Dispatch(ctx, hook(c.name), nil)
			if err != nil {
				t.Fatal(err)
			}
			if stats.Lent != c.inside {
				t.Errorf("the call's context was lent: %v", stats.Lent)
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
		<-ctx.Done() // so that the host has given the call up before it is answered
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
	noJSON := "invalid_reply"
	if way == overLines { // lines cannot carry invalid JSON
		noJSON = "internal"
	}
	for name, want := range map[string]string{`{}`: "unavailable", `{`: noJSON, "invalidate": ""} {
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
	s.Close()
	host := <-hosts
	// The plugin may learn of the end a moment later; until then calls wait and
	// are then ended by it.
	_, err := host.Call(deadline(t), "s", "m", nil)
	checkCode(t, err, phases.CauseSessionReset)
}

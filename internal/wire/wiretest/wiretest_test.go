package wiretest_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/internal/wire/wiretest"
	"github.com/grapnelhq/grapnel/phases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open serves a script on a socket and opens a session with it.
func open(t *testing.T, script wiretest.Script) *wire.Session {
	t.Helper()
	dir, err := os.MkdirTemp("", "w") //nolint:usetesting // a socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := wiretest.NewServer()
	wiretest.Register(server, script)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("unix:"+path, wire.DialOptions(0, nil)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	s, err := wire.Open(ctx, conn, wire.HostOptions{Incarnation: 3, Instance: "p"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// call calls the hook "h".
func call(t *testing.T, s *wire.Session) (*phases.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	res, _, err := s.Dispatch(ctx, &phases.Dispatch{Hook: "h", Phase: phases.PrePromptCompile, Input: &phases.PrePromptCompileInput{}}, nil)
	return res, err
}

// TestAnswering: a script that answers well is a plugin like any other.
func TestAnswering(t *testing.T) {
	t.Parallel()

	s := open(t, wiretest.Answering(wiretest.Plugin{Name: "p", Version: "1", Hooks: []string{"h"}}, func(s *wiretest.Session, f *wiretest.Frame) error {
		return s.Send(wiretest.Section(f.ID, f.Incarnation, "s", "for "+f.Hook))
	}))
	d, err := s.Configure(t.Context(), &phases.Configuration{Instance: "p"})
	if err != nil || len(d.Hooks) != 1 || d.Hooks[0].Name != "h" {
		t.Fatalf("Configure = %+v, %v", d, err)
	}
	res, err := call(t, s)
	if err != nil || len(res.Contributions) != 1 {
		t.Fatalf("Dispatch = %+v, %v", res, err)
	}
	if section, ok := res.Contributions[0].(*phases.PromptSection); !ok || section.Content != "for h" {
		t.Errorf("contribution = %+v", res.Contributions[0])
	}
	if err := errors.Join(s.Ping(t.Context()), s.Drain(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestSendAnything: what is no frame reaches the host as it is.
func TestSendAnything(t *testing.T) {
	t.Parallel()

	s := open(t, wiretest.Answering(wiretest.Plugin{Name: "p", Version: "1"}, func(s *wiretest.Session, _ *wiretest.Frame) error {
		return s.Send(bytes.Repeat([]byte{0xff}, 10))
	}))
	if _, err := call(t, s); phases.CodeOf(err) != phases.CauseInvalidReply {
		t.Errorf("Dispatch: %v", err)
	}
}

// TestCutAfter: the host gets the beginning of an answer and no more.
func TestCutAfter(t *testing.T) {
	t.Parallel()

	cut := make(chan struct{})
	s := open(t, wiretest.Answering(wiretest.Plugin{Name: "p", Version: "1"}, func(s *wiretest.Session, f *wiretest.Frame) error {
		s.CutAfter(1000, func() { close(cut) })
		return s.Send(wiretest.Section(f.ID, f.Incarnation, "s", string(bytes.Repeat([]byte("x"), 1<<20))))
	}))
	if _, err := call(t, s); phases.CodeOf(err) != phases.CauseSessionReset {
		t.Errorf("Dispatch: %v", err)
	}
	<-cut
}

// TestDribble: an answer comes byte by byte, and its caller need not wait.
func TestDribble(t *testing.T) {
	t.Parallel()

	s := open(t, wiretest.Answering(wiretest.Plugin{Name: "p", Version: "1"}, func(s *wiretest.Session, f *wiretest.Frame) error {
		s.Dribble(time.Millisecond)
		return s.Send(wiretest.Sections(f.ID, f.Incarnation, 2, "s", "x"))
	}))
	begin := time.Now()
	res, err := call(t, s)
	if err != nil || len(res.Contributions) != 2 {
		t.Fatalf("Dispatch = %+v, %v", res, err)
	}
	if took := time.Since(begin); took < 20*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
	"github.com/grapnelhq/grapnel/phases"
)

// TestOversizeFrames: a plugin that ignores the limit loses its session. The
// call that the frame belonged to is known, whatever its size.
func TestOversizeFrames(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"a little": DefaultFrame + 1, "a lot": 100 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const calls = 5
			p := &unknown{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
				if s.frames = append(s.frames, in); len(s.frames) < calls {
					return nil
				}
				big := &pluginpb.Contribution{Kind: &pluginpb.Contribution_PromptSection{PromptSection: &pluginpb.PromptSection{Content: strings.Repeat("x", size)}}}
				culprit := s.frames[2]
				return s.Send(resultFrame(culprit.GetId(), culprit.GetIncarnation(), &pluginpb.Result{Contributions: []*pluginpb.Contribution{big}}))
			}}
			s, _ := openStranger(t, p, HostOptions{})
			var mu sync.Mutex
			got := map[phases.Cause]int{}
			var wg sync.WaitGroup
			for range calls {
				wg.Go(func() {
					_, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil)
					mu.Lock()
					defer mu.Unlock()
					got[phases.CodeOf(err)]++
				})
			}
			wg.Wait()
			want := map[phases.Cause]int{phases.CauseOversizeReply: 1, phases.CauseSessionReset: calls - 1}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			<-s.Done()
			checkCode(t, s.Err(), phases.CauseOversizeReply)
		})
	}
}

func TestSessionsThatBreak(t *testing.T) {
	t.Parallel()
	cases := map[string]error{
		"with a status":   status.Error(codes.Internal, "oh"),
		"as if cancelled": status.Error(codes.Canceled, "not by the host"),
		"without reason":  io.EOF,
	}
	for name, end := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &unknown{act: func(*strangerSession, *pluginpb.HostFrame) error { return end }}
			s, _ := openStranger(t, p, HostOptions{})
			f := newFreed()
			_, _, err := s.Dispatch(deadline(t), textDispatch("x"), f.call)
			checkCode(t, err, phases.CauseSessionReset)
			f.wait(t)
			checkCode(t, s.Err(), phases.CauseSessionReset)
		})
	}
}

// TestBadBeginnings: Open fails in time and leaves nothing behind.
func TestBadBeginnings(t *testing.T) {
	t.Parallel()
	short, cancel := context.WithCancel(deadline(t))
	cases := []struct {
		name   string
		ctx    context.Context
		before func(*strangerSession, *pluginpb.HostFrame) error
		want   phases.Cause
	}{
		{"mute", short, func(*strangerSession, *pluginpb.HostFrame) error { cancel(); return nil }, phases.CauseCancelled},
		{"ends", deadline(t), func(*strangerSession, *pluginpb.HostFrame) error { return status.Error(codes.Unavailable, "no") }, phases.CauseSessionReset},
		{"empty description", deadline(t), func(s *strangerSession, in *pluginpb.HostFrame) error {
			return s.Send(&pluginpb.PluginFrame{Id: in.GetId(), Incarnation: in.GetIncarnation(), Body: &pluginpb.PluginFrame_Describe{}})
		}, phases.CauseInvalidReply},
		{"error", deadline(t), func(s *strangerSession, in *pluginpb.HostFrame) error {
			return s.Send(&pluginpb.PluginFrame{Id: in.GetId(), Incarnation: in.GetIncarnation(), Body: &pluginpb.PluginFrame_Describe{
				Describe: &pluginpb.Describe{Error: &pluginpb.Error{Code: "version_mismatch", Message: "too old"}},
			}})
		}, phases.CauseVersionMismatch},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(c.ctx, strangerConn(t, &unknown{before: c.before}), HostOptions{Incarnation: 1})
			checkCode(t, err, c.want)
		})
	}
}

// TestFloodOfHostCalls: a plugin that asks without end and reads nothing loses
// its session; the reader never blocks.
func TestFloodOfHostCalls(t *testing.T) {
	t.Parallel()
	p := &unknown{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
		for id := uint64(1); ; id++ {
			frame := &pluginpb.PluginFrame{Id: id, Incarnation: in.GetIncarnation(), Body: &pluginpb.PluginFrame_HostCall{HostCall: &pluginpb.HostCall{Service: "s"}}}
			if err := s.Send(frame); err != nil {
				return err
			}
		}
	}}
	release := make(chan struct{})
	defer close(release)
	host := &services{call: func(ctx context.Context, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}}
	s, _ := openStranger(t, p, HostOptions{Host: host})
	_, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil)
	checkCode(t, err, phases.CauseSessionReset)
	if err == nil || !errors.Is(err, errFlooded) {
		t.Errorf("ended by %v, want %v", err, errFlooded)
	}
}

// TestInvalidationsWithoutID are not answered; those beyond the limit are
// counted.
func TestInvalidationsWithoutID(t *testing.T) {
	t.Parallel()
	p := &unknown{act: func(s *strangerSession, in *pluginpb.HostFrame) error {
		frame := &pluginpb.PluginFrame{Incarnation: in.GetIncarnation(), Body: &pluginpb.PluginFrame_Invalidate{Invalidate: &pluginpb.Invalidate{Parent: 12345}}}
		return errors.Join(s.Send(frame), s.Send(frame), s.answer(in))
	}}
	entered := make(chan struct{}, 2)
	host := &services{invalidate: func(ctx context.Context, _ phases.Invalidation) error {
		entered <- struct{}{}
		<-ctx.Done()
		return nil
	}}
	s, dropped := openStranger(t, p, HostOptions{Host: host, HostCalls: 1})
	if _, _, err := s.Dispatch(deadline(t), textDispatch("x"), nil); err != nil {
		t.Fatal(err)
	}
	<-entered
	if got := next(t, dropped); got != DroppedInvalidation {
		t.Errorf("dropped as %v", got)
	}
}

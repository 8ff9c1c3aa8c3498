package wire

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
	"github.com/grapnelhq/grapnel/phases"
)

// gate is a stream that blocks in SendMsg until it is opened, and notes what
// passes. Frames are not given back before that, as with gRPC.
type gate struct {
	entered chan struct{}
	open    chan struct{}
	mu      sync.Mutex
	passed  []string
	inside  int
}

func (g *gate) SendMsg(m any) error {
	g.mu.Lock()
	if g.inside++; g.inside > 1 {
		panic("two senders at once")
	}
	g.mu.Unlock()
	g.entered <- struct{}{}
	<-g.open
	o, _ := m.(*outgoing)
	g.mu.Lock()
	g.inside--
	g.passed = append(g.passed, string(bytes.TrimRight(o.buffer.ReadOnlyData(), "-")))
	g.mu.Unlock()
	o.buffer.Free()
	return nil
}

func (g *gate) all() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.passed...)
}

// parcel is a frame of so many bytes.
func (w *writer) parcel(name string, size int) *outgoing {
	b := w.frames.Get(size)
	*b = append(*b, name...)
	for len(*b) < size {
		*b = append(*b, '-')
	}
	return &outgoing{data: b}
}

// blockedWriter returns a writer whose goroutine is inside SendMsg with the
// frame "first", because more waits in gRPC than a caller may add to.
func blockedWriter(t *testing.T, frame int) (*writer, *gate, func()) {
	t.Helper()
	g := &gate{entered: make(chan struct{}, 2*maxQueue), open: make(chan struct{})}
	w := newWriter(g, frame)
	unflushed(w).Store(directBytes)
	var run sync.WaitGroup
	run.Go(w.run)
	if err := w.send(deadline(t), w.parcel("first", 10)); err != nil {
		t.Fatal(err)
	}
	<-g.entered
	var once sync.Once
	opened := func() { once.Do(func() { close(g.open) }) }
	t.Cleanup(func() {
		opened()
		w.close(errWriterClosed)
		run.Wait()
	})
	return w, g, opened
}

// waitFor reads entries until so many frames were begun.
func (g *gate) waitFor(n int) {
	for range n {
		<-g.entered
	}
}

func unflushed(w *writer) *atomic.Int64 {
	return &w.carrier.(*streamCarrier).unflushed //nolint:forcetypeassert // newWriter makes it
}

// TestWriterBounds fills the queue by count and by bytes: the next waits, until
// there is room, its context ends, or the writer is closed. What is urgent passes the queue.
func TestWriterBounds(t *testing.T) {
	t.Parallel()
	fills := map[string]struct{ frames, size int }{"frames": {maxQueue, 1}, "bytes": {2, 4096}}
	why := errors.New("enough")
	for name, fill := range fills {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, g, open := blockedWriter(t, 4096)
			for range fill.frames {
				if err := w.send(deadline(t), w.parcel("x", fill.size)); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancelCause(deadline(t))
			given := make(chan error)
			go func() { given <- w.send(ctx, w.parcel("given up", 1)) }()
			w.someWait(t)
			cancel(why)
			if err := <-given; !errors.Is(err, why) {
				t.Errorf("got %v, want %v", err, why)
			}
			admitted := make(chan error)
			go func() { admitted <- w.send(deadline(t), w.parcel("last", 1)) }()
			w.someWait(t)
			if err := w.hurry(w.parcel("urgent", 1), true); err != nil {
				t.Errorf("urgent frames do not pass a full queue: %v", err)
			}
			open()
			if err := <-admitted; err != nil {
				t.Error(err)
			}
			g.waitFor(fill.frames + 2)
			if diff := cmp.Diff([]string{"first", "urgent", "x"}, g.all()[:3]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// someWait returns when a caller waits for room in the queue.
func (w *writer) someWait(t *testing.T) {
	t.Helper()
	for deadline(t).Err() == nil {
		w.mu.Lock()
		have := len(w.waiting)
		w.mu.Unlock()
		if have > 0 {
			return
		}
	}
	t.Fatal("nobody waits")
}

// TestFlowControl: a plugin stops reading. Callers return when their context
// ends, and Close frees the writer that is blocked inside gRPC.
func TestFlowControl(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	p := &unknown{act: func(s *strangerSession, _ *pluginpb.HostFrame) error {
		select {
		case <-release:
		case <-s.Context().Done():
		}
		return nil
	}}
	defer close(release)
	s, _ := openStranger(t, p, HostOptions{})
	text := string(bytes.Repeat([]byte("x"), 1<<20))
	ctx, cancel := context.WithCancel(deadline(t))
	var wg sync.WaitGroup
	freed := make([]*freedOnce, 32)
	for i := range freed {
		freed[i] = newFreed()
		wg.Go(func() {
			_, _, err := s.Dispatch(ctx, textDispatch(text), freed[i].call)
			checkCode(t, err, phases.CauseCancelled)
		})
	}
	s.writer.someWait(t)
	cancel()
	wg.Wait()
	unsent := 0
	for _, f := range freed {
		unsent += int(f.count.Load())
	}
	if unsent == 0 {
		t.Error("no frame was withdrawn from the queue")
	}
	blocked := make(chan error, 1)
	go func() { blocked <- s.Ping(deadline(t)) }()
	s.Close()
	checkCode(t, <-blocked, phases.CauseSessionReset)
	for _, f := range freed {
		f.wait(t)
	}
}

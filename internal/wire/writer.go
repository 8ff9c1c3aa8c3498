package wire

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/mem"
)

// Bounds of the write queue.
const (
	// maxQueue is the most frames that wait to be sent, and apart from them the
	// most that the reader may have made in answer to its peer.
	maxQueue = 256
	// directBytes is how much may wait inside gRPC while callers send by
	// themselves. gRPC blocks a sender when 64 KiB of a stream wait; below half
	// of it sending never blocks.
	directBytes = 32 << 10
	// combined is how many frames of others a caller sends after its own,
	// before the writer's goroutine takes over.
	combined = 16
)

var (
	errWriterClosed = errors.New("the session has ended")
	errFlooded      = errors.New("the peer asks and does not read the answers")
)

// outgoing is one frame on its way out.
type outgoing struct {
	data   *[]byte
	buffer mem.Buffer
}

func (o *outgoing) size() int { return len(*o.data) }

// sender is the sending half of a gRPC stream.
type sender interface{ SendMsg(m any) error }

// writer sends frames, one at a time, in order. Whoever finds nobody sending
// and little waiting inside gRPC sends by itself, which saves two switches of
// goroutines; otherwise frames wait in a bounded queue for the one who is
// sending, or for the writer's own goroutine when sending may block.
type writer struct {
	stream    sender
	maxBytes  int // of queued frames
	frames    frames
	unflushed atomic.Int64 // bytes inside gRPC, not yet given to the connection
	wake      chan struct{}
	closed    chan struct{}

	mu      sync.Mutex
	sending bool // somebody is in SendMsg, or the goroutine is about to be
	urgent  []*outgoing
	queue   []*outgoing
	bytes   int
	waiting []*waiter
	err     error
}

// waiter is a frame for which the queue has no room yet.
type waiter struct {
	o        *outgoing
	admitted chan struct{}
}

func newWriter(stream sender, frame int) *writer {
	w := &writer{stream: stream, maxBytes: 2 * frame, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	w.frames.flushed = func(size int) { w.unflushed.Add(int64(-size)) }
	return w
}

// limit sets the size of a frame, which bounds the queue.
func (w *writer) limit(frame int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.maxBytes = 2 * frame
}

// run sends what callers may not send by themselves. It returns after close.
func (w *writer) run() {
	for {
		select {
		case <-w.wake:
		case <-w.closed:
			return
		}
		for o := w.next(); o != nil; o = w.next() {
			w.transmit(o)
		}
	}
}

// close ends the writer: frames in the queue are dropped, callers that wait get
// err. A SendMsg that blocks is ended by the stream's context, not here.
func (w *writer) close(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	w.err = err
	w.urgent, w.queue, w.waiting, w.bytes = nil, nil, nil, 0
	close(w.closed)
}

// send sends o or queues it, in order. It waits for room in the queue until ctx
// ends; on an error o was not and will not be sent.
func (w *writer) send(ctx context.Context, o *outgoing) error {
	w.mu.Lock()
	if w.err != nil {
		w.mu.Unlock()
		return w.err
	}
	if w.direct() {
		w.sending = true
		w.mu.Unlock()
		w.transmit(o)
		w.release()
		return nil
	}
	if len(w.waiting) == 0 && w.fits(o) {
		w.enqueue(o)
		w.mu.Unlock()
		return nil
	}
	wait := &waiter{o, make(chan struct{})}
	w.waiting = append(w.waiting, wait)
	w.mu.Unlock()
	select {
	case <-wait.admitted:
		return nil
	case <-w.closed:
		return w.err
	case <-ctx.Done():
		return w.giveUp(ctx, wait)
	}
}

// giveUp takes a frame back whose caller does not wait any longer.
func (w *writer) giveUp(ctx context.Context, wait *waiter) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.waiting, wait); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
		return context.Cause(ctx)
	}
	return w.err // it was admitted just now, unless the writer was closed
}

// withdraw takes a frame out of the queue. It reports false when that is too
// late.
func (w *writer) withdraw(o *outgoing) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.queue, o)
	if i < 0 {
		return false
	}
	w.queue = slices.Delete(w.queue, i, i+1)
	w.bytes -= o.size()
	w.admit()
	w.frames.recycle(o.data)
	return true
}

// hurry sends o before all frames that wait. It never blocks: bounded frames
// are refused when too many of them wait, and the session should then end.
func (w *writer) hurry(o *outgoing, bounded bool) error {
	w.mu.Lock()
	if w.err != nil || bounded && len(w.urgent) >= maxQueue {
		defer w.mu.Unlock()
		if w.err != nil {
			return w.err
		}
		return errFlooded
	}
	if w.direct() {
		w.sending = true
		w.mu.Unlock()
		w.transmit(o)
		w.release()
		return nil
	}
	w.urgent = append(w.urgent, o)
	w.start()
	w.mu.Unlock()
	return nil
}

// direct reports whether the caller may send by itself. w.mu is held.
func (w *writer) direct() bool {
	return !w.sending && len(w.urgent) == 0 && len(w.queue) == 0 && w.unflushed.Load() < directBytes
}

func (w *writer) fits(o *outgoing) bool {
	return len(w.queue) < maxQueue && w.bytes+o.size() <= w.maxBytes
}

func (w *writer) enqueue(o *outgoing) {
	w.queue = append(w.queue, o)
	w.bytes += o.size()
	w.start()
}

// start makes the goroutine send, unless somebody sends already and will look
// at the queue afterwards.
func (w *writer) start() {
	if !w.sending {
		w.sending = true
		w.wake <- struct{}{} // has room: only the one who sets sending wakes
	}
}

// admit moves waiting frames into the queue, in order.
func (w *writer) admit() {
	for len(w.waiting) > 0 && w.fits(w.waiting[0].o) {
		first := w.waiting[0]
		w.waiting = slices.Delete(w.waiting, 0, 1)
		w.enqueue(first.o)
		close(first.admitted)
	}
}

// next takes the next frame to send, or ends the sending.
func (w *writer) next() *outgoing {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.pop()
	w.sending = o != nil
	return o
}

func (w *writer) pop() *outgoing {
	if len(w.urgent) > 0 {
		o := w.urgent[0]
		w.urgent = slices.Delete(w.urgent, 0, 1)
		return o
	}
	if len(w.queue) == 0 {
		return nil
	}
	o := w.queue[0]
	w.queue = slices.Delete(w.queue, 0, 1)
	w.bytes -= o.size()
	w.admit()
	return o
}

// release ends a caller's turn of sending: it sends some frames that came
// meanwhile, as long as that cannot block, and leaves the rest to the goroutine.
func (w *writer) release() {
	for range combined {
		if w.unflushed.Load() >= directBytes {
			break
		}
		o := w.next()
		if o == nil {
			return
		}
		w.transmit(o)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.urgent) == 0 && len(w.queue) == 0 {
		w.sending = false
		return
	}
	w.wake <- struct{}{} // sending stays set and is the goroutine's now
}

// transmit hands a frame to gRPC. An error means that the stream has ended,
// which the reader learns too, with the reason.
func (w *writer) transmit(o *outgoing) {
	w.unflushed.Add(int64(o.size()))
	o.buffer = mem.NewBuffer(o.data, &w.frames)
	_ = w.stream.SendMsg(o)
}

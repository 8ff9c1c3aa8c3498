package wire

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/mem"

	"github.com/grapnelhq/grapnel/phases"
)

const (
	// maxQueue bounds the frames that wait, and separately those that the reader made in answer to its peer.
	maxQueue   = 256
	combined   = 16       // how often a caller sends what others have queued meanwhile
	batchBytes = 64 << 10 // from which size on a batch is not added to
)

var (
	errWriterClosed = errors.New("the session has ended")
	errFlooded      = errors.New("the peer asks and does not read the answers")
)

type outgoing struct {
	data     *[]byte
	buffer   mem.Buffer
	admitted chan struct{} // closed when a waiting frame is queued
	sent     atomic.Bool   // the carrier has its data
}

func (o *outgoing) size() int { return len(*o.data) }

// carrier takes frames to the peer: gRPC's stream, or the lane. One goroutine at a time uses it. Errors end the
// session, of which the reader learns the reason.
type carrier interface {
	// send sends frames in order; they are the carrier's then. It may block only if full was true before.
	send(batch []*outgoing)
	full() bool
	// flush waits until full is false.
	flush()
	// most is how many frames send takes at once.
	most() int
}

// writer sends frames one batch at a time, in order. A caller that finds nobody sending and a carrier that is not full
// sends by itself, which saves two switches of goroutines; otherwise frames wait in a bounded queue for whoever is
// sending, or for the writer's goroutine if sending may block.
type writer struct {
	frames frames
	wake   chan struct{}
	closed chan struct{}

	json     *jsonMessage // the form of frames that are sent as JSON; nil for protobuf
	rule     textRule     // repaired by a plugin, demanded of a host
	what     string       // frames are, in errors
	oversize phases.Cause

	mu          sync.Mutex
	carrier     carrier
	crowded     func() bool // reports whether other callers are about to send; nil if that does not matter
	incarnation uint64
	frame       int  // the limit
	sending     bool // somebody is in send, or the goroutine is about to be
	urgent      []*outgoing
	queue       []*outgoing
	bytes       int
	batch       []*outgoing // that is being sent, by whoever set sending
	waiting     []*outgoing // for which the queue has no room yet
	err         error
}

func newWriter(stream sender, frame int) *writer {
	w := &writer{frame: frame, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	s := &streamCarrier{stream: stream, frames: &w.frames}
	w.carrier, w.frames.flushed = s, func(size int) { s.unflushed.Add(int64(-size)) }
	return w
}

// change makes all further frames go another way.
func (w *writer) change(c carrier, crowded func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.carrier, w.crowded = c, crowded
}

// sender is the sending half of a gRPC stream.
type sender interface{ SendMsg(m any) error }

// directBytes is how much may wait inside gRPC while callers send by themselves. gRPC blocks a sender when 64 KiB of
// a stream wait.
const directBytes = 32 << 10

type streamCarrier struct {
	stream    sender
	frames    *frames
	unflushed atomic.Int64 // bytes inside gRPC, not yet given to the connection
}

var _ carrier = (*streamCarrier)(nil)

func (s *streamCarrier) send(batch []*outgoing) {
	for _, o := range batch {
		s.unflushed.Add(int64(o.size()))
		o.buffer = mem.NewBuffer(o.data, s.frames)
		_ = s.stream.SendMsg(o)
		o.sent.Store(true)
	}
}

func (s *streamCarrier) full() bool { return s.unflushed.Load() >= directBytes }
func (s *streamCarrier) flush()     {} // send waits by itself
func (s *streamCarrier) most() int  { return 1 }

// encodeFrame writes a frame within the limit. The request's remaining time is bounded by ctx.
func encodeFrame[T any](ctx context.Context, w *writer, id uint64, b body, m *T, fields func(*form, *T)) (data *[]byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			data, err = nil, panicked(r)
		}
	}()
	w.mu.Lock()
	incarnation, limit := w.incarnation, w.frame
	w.mu.Unlock()
	f := w.frames.begin(w.rule)
	f.repair = w.rule == ruleClean
	if deadline, ok := ctx.Deadline(); ok {
		f.most = max(time.Until(deadline), 1)
	}
	putFrame(f, id, incarnation, b, m, fields)
	if data, err = w.frames.seal(f); err != nil {
		return nil, fmt.Errorf("%s cannot be sent: %w", w.what, err)
	}
	if w.json != nil {
		if data, err = w.frames.inJSON(data, w.json); err != nil {
			return nil, fmt.Errorf("%s cannot be sent: %w", w.what, err)
		}
	}
	if len(*data) > limit {
		defer w.frames.recycle(data)
		return nil, phases.Errorf(w.oversize, "%s takes %d bytes; a frame holds %d", w.what, len(*data), limit)
	}
	return data, nil
}

// answerNow sends what a reader answers by itself. It never waits; an error means that the peer does not read.
func answerNow[T any](ctx context.Context, w *writer, id uint64, b body, m *T, fields func(*form, *T)) error {
	data, err := encodeFrame(ctx, w, id, b, m, fields)
	if err == nil {
		err = w.hurry(&outgoing{data: data}, true)
	}
	if errors.Is(err, errFlooded) {
		return fmt.Errorf("answer %d: %w", id, err)
	}
	return nil // or the session has ended
}

// run sends what callers may not send by themselves, until close.
func (w *writer) run() {
	for {
		select {
		case <-w.wake:
		case <-w.closed:
			return
		}
		for {
			w.current().flush()
			batch, c := w.next()
			if len(batch) == 0 {
				break
			}
			c.send(batch)
		}
	}
}

// close drops queued frames and fails waiting callers. A SendMsg that blocks is ended by the stream's context.
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

// post sends or queues o, in order; without room in the queue it waits, to be queued later. On an error it will not be
// sent.
func (w *writer) post(o *outgoing) error {
	w.mu.Lock()
	if w.err != nil {
		w.mu.Unlock()
		return w.err
	}
	if w.direct(o) {
		return nil
	}
	if len(w.waiting) == 0 && w.fits(o) {
		w.enqueue(o)
		w.mu.Unlock()
		return nil
	}
	o.admitted = make(chan struct{})
	w.waiting = append(w.waiting, o)
	w.mu.Unlock()
	return nil
}

// send is post that waits for room in the queue until ctx ends; on an error o will not be sent.
func (w *writer) send(ctx context.Context, o *outgoing) error {
	if err := w.post(o); err != nil || o.admitted == nil {
		return err
	}
	select {
	case <-o.admitted:
		return nil
	case <-w.closed:
		return w.err
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.waiting, o); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
		return context.Cause(ctx)
	}
	return w.err // it was admitted just now, unless the writer was closed
}

// withdraw takes a frame out of the queue, or out of those that wait for room; false if it is too late.
func (w *writer) withdraw(o *outgoing) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.waiting, o); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	} else if i = slices.Index(w.queue, o); i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
		w.bytes -= o.size()
	} else {
		return false
	}
	w.admit()
	w.frames.recycle(o.data)
	return true
}

// hurry sends o before all frames that wait. It never blocks: bounded frames are refused when too many wait, and the
// session should then end.
func (w *writer) hurry(o *outgoing, bounded bool) error {
	w.mu.Lock()
	if w.err != nil || bounded && len(w.urgent) >= maxQueue {
		defer w.mu.Unlock()
		if w.err != nil {
			return w.err
		}
		return errFlooded
	}
	if w.direct(o) {
		return nil
	}
	w.urgent = append(w.urgent, o)
	w.start()
	w.mu.Unlock()
	return nil
}

// direct sends o if the caller may send by itself: it then unlocks w.mu.
func (w *writer) direct(o *outgoing) bool {
	if w.sending || len(w.urgent) > 0 || len(w.queue) > 0 || w.carrier.full() {
		return false
	}
	w.sending = true
	if w.crowded != nil && w.crowded() {
		// Others run before: their frames go with this one.
		w.queue, w.bytes = append(w.queue, o), w.bytes+o.size()
		w.mu.Unlock()
		runtime.Gosched()
		w.release()
		return true
	}
	w.batch = append(w.batch[:0], o)
	c, batch := w.carrier, w.batch
	w.mu.Unlock()
	c.send(batch)
	w.release()
	return true
}

func (w *writer) fits(o *outgoing) bool {
	return len(w.queue) < maxQueue && w.bytes+o.size() <= 2*w.frame
}

func (w *writer) enqueue(o *outgoing) {
	w.queue = append(w.queue, o)
	w.bytes += o.size()
	w.start()
}

// start wakes the goroutine unless somebody is sending, who will look at the queue afterwards.
func (w *writer) start() {
	if !w.sending {
		w.sending = true
		w.wake <- struct{}{} // has room: only the one who sets sending wakes
	}
}

// admit moves waiting frames into the queue, in order.
func (w *writer) admit() {
	for len(w.waiting) > 0 && w.fits(w.waiting[0]) {
		first := w.waiting[0]
		w.waiting = slices.Delete(w.waiting, 0, 1)
		w.enqueue(first)
		close(first.admitted)
	}
}

// next takes the frames that are sent next, and the way they go; none ends the turn of whoever sends.
func (w *writer) next() ([]*outgoing, carrier) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.batch)
	batch := w.batch[:0]
	for size := 0; len(batch) < w.carrier.most() && size < batchBytes; {
		o := w.pop()
		if o == nil {
			break
		}
		batch, size = append(batch, o), size+o.size()
	}
	w.batch, w.sending = batch, len(batch) > 0
	return batch, w.carrier
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

// release ends a caller's turn: it sends some of the frames that came meanwhile, as long as that cannot block, and
// leaves the rest to the goroutine.
func (w *writer) release() {
	for range combined {
		if w.current().full() {
			break
		}
		batch, c := w.next()
		if len(batch) == 0 {
			return
		}
		c.send(batch)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.urgent) == 0 && len(w.queue) == 0 && !w.carrier.full() {
		w.sending = false
		return
	}
	w.wake <- struct{}{} // sending stays set and is the goroutine's now
}

func (w *writer) current() carrier {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.carrier
}

// hold queues a frame without sending it; a later flushHeld, or another frame, does.
func (w *writer) hold(o *outgoing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.queue, w.bytes = append(w.queue, o), w.bytes+o.size()
	}
}

// flushHeld sends what is held.
func (w *writer) flushHeld() {
	w.mu.Lock()
	if w.sending || len(w.queue) == 0 {
		w.mu.Unlock()
		return
	}
	w.sending = true
	w.mu.Unlock()
	w.release()
}

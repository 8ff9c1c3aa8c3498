package wire

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// inlineTick is how long a handler may keep the reader before another goroutine reads: one to two ticks.
	inlineTick = 500 * time.Microsecond
	// Two handlers in a row that take longer than inlineMost leave the next slowCalls to workers. One may have been
	// unlucky with the processor.
	inlineMost = 50 * time.Microsecond
	slowCalls  = 64
	maxHeld    = 16 // answers that wait for those to frames that are there already
)

// pluginLane is the plugin's end of a lane. Its reader runs handlers by itself, which saves two switches of threads. A
// handler that takes its time, or calls the host, loses the reader's place to a new goroutine.
type pluginLane struct {
	*lane
	served *served

	// turn is odd while a handler runs in the reader. Whoever makes it even reads next.
	turn atomic.Uint64
	late atomic.Int64 // handlers in a row that took long
	slow atomic.Int64 // calls that go to workers
	held int          // answers; of the reader

	watched atomic.Bool // the timer is set

	mu    sync.Mutex
	seen  uint64 // turn at the last tick
	over  bool   // no reader may be started
	timer *time.Timer
}

// serveLane reads frames from the lane, besides those of the stream.
func (s *served) serveLane() error {
	l, err := newLane(s.offered, MaxFrame, &s.writer.frames)
	if err != nil {
		return err
	}
	s.lane = &pluginLane{lane: l, served: s}
	s.tasks.Go(s.lane.readAll)
	return nil
}

// readAll reads until another goroutine takes its place, or the lane ends.
func (l *pluginLane) readAll() {
	for first := true; ; first = false {
		if l.held >= maxHeld || !l.buffered() {
			l.held = 0
			l.served.writer.flushHeld()
		}
		data, owned, err := l.next()
		if err != nil {
			break
		}
		if first {
			l.served.writer.change(l.lane, nil) // answers go where the host sends
		}
		in := incoming{data: data, owned: owned}
		if in.parse(hostUnsupported, nil) != nil {
			break
		}
		if calls := in.body == hostDispatch || in.body == hostCallTool; calls && l.slow.Add(-1) < 0 {
			if !l.inline(in) {
				return
			}
			continue
		}
		if !owned {
			in.data, in.owned = bytes.Clone(data), true
		}
		if l.served.accept(&in) != nil {
			break
		}
	}
	_ = l.reads.Close() // the host ends the session
}

// inline runs a handler in the reader. It returns false if another goroutine has become the reader meanwhile.
func (l *pluginLane) inline(in incoming) bool {
	l.slow.Store(0)
	h := l.served.enter(in)
	h.read() // before its frame's memory is used again
	turn := l.turn.Add(1)
	if !l.watched.Load() {
		l.watch()
	}
	begin := time.Now()
	o := h.run()
	quick := time.Since(begin) < inlineMost
	reads := l.turn.CompareAndSwap(turn, turn+1)
	switch {
	case quick:
		l.late.Store(0)
	case reads:
		l.tookLong()
	}
	if o != nil && reads && quick && o.size() < batchBytes {
		l.held++
		l.served.writer.hold(o)
	} else {
		l.served.post(o)
	}
	l.served.finished(h.in.id)
	return reads
}

func (l *pluginLane) tookLong() {
	if l.late.Add(1) > 1 {
		l.slow.Store(slowCalls)
	}
}

// watch sets the timer.
func (l *pluginLane) watch() {
	if l.watched.Swap(true) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = 0
	if l.timer == nil {
		l.timer = time.AfterFunc(inlineTick, l.tick)
	} else {
		l.timer.Reset(inlineTick)
	}
}

func (l *pluginLane) tick() {
	turn := l.turn.Load()
	l.mu.Lock()
	seen := l.seen
	l.seen = turn
	l.mu.Unlock()
	switch {
	case turn%2 == 0:
		l.watched.Store(false)
		if l.turn.Load() != turn { // a handler has begun that did not set the timer
			l.watch()
		}
		return
	case turn == seen:
		l.tookLong()
		l.handOver(turn)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.timer.Reset(inlineTick)
	}
}

// handOver lets another goroutine read while a handler runs in the reader, or does nothing if none does.
func (l *pluginLane) handOver(turn uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if turn%2 == 1 && !l.over && l.turn.CompareAndSwap(turn, turn+1) {
		l.served.tasks.Go(l.readAll)
	}
}

// end makes the reader end.
func (l *pluginLane) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
	_ = l.reads.Close()
}

// yield is handOver for a handler that is about to wait for the host.
func (l *pluginLane) yield() {
	if l != nil {
		l.handOver(l.turn.Load())
	}
}

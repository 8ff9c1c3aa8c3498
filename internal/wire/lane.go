package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"syscall"

	"google.golang.org/protobuf/encoding/protowire"
)

// A lane carries a session's frames, from Configure on, over a pair of sockets of which the plugin inherits one end:
// each frame behind its length, four bytes, little endian. It exists because gRPC costs a call four times as many
// switches of threads. gRPC's stream stays the session's beginning and end.

// LaneKey is the environment variable with the number of the plugin's descriptor.
const LaneKey = "GRAPNEL_LANE"

// featureLane is in Hello when the host offers the lane.
const featureLane = "lane"

const (
	laneHead   = 4
	laneBuffer = 32 << 10 // longer frames get memory of their own
)

// lane is one end. One goroutine at a time reads, one writes. The host's side of the stdio binding is a lane whose frames
// are lines, and whose directions are sockets of their own.
type lane struct {
	reads, writes       *net.UnixConn
	rawReads, rawWrites syscall.RawConn
	limit               int     // the longest frame that is read
	frames              *frames // of the writer
	lines               *lines  // nil if frames stand behind their length

	buf  []byte // buf[r:w] was read and is not used yet
	r, w int
	long []byte // a frame that is longer than buf, of which have bytes are there
	have int
	in   transfer

	out   []byte
	rest  []byte // what the socket had no room for
	stuck atomic.Bool
	ex    transfer
}

// transfer is one read or write, with the function that does it: a closure for each would be garbage.
type transfer struct {
	data []byte
	n    int
	err  error
	do   func(fd uintptr) bool
}

func newLane(conn net.Conn, limit int, f *frames) (*lane, error) {
	l, err := newLaneOf(conn, conn, limit, f)
	if err == nil {
		l.buf = make([]byte, laneBuffer)
	}
	return l, err
}

// newLineLane returns a lane whose frames are lines.
func newLineLane(reads, writes net.Conn, limit int, f *frames) (*lane, error) {
	l, err := newLaneOf(reads, writes, limit, f)
	if err == nil {
		l.lines = newLines(l.read, limit)
	}
	return l, err
}

func newLaneOf(reads, writes net.Conn, limit int, f *frames) (*lane, error) {
	in, ok := reads.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("a lane over %T", reads)
	}
	out, ok := writes.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("a lane over %T", writes)
	}
	l := &lane{reads: in, writes: out, limit: limit, frames: f}
	var err error
	if l.rawReads, err = in.SyscallConn(); err != nil {
		return nil, err
	}
	if l.rawWrites, err = out.SyscallConn(); err != nil {
		return nil, err
	}
	l.in.do = func(fd uintptr) bool {
		l.in.n, l.in.err = receive(fd, l.in.data)
		return !wouldBlock(l.in.err)
	}
	l.ex.do = func(fd uintptr) bool {
		l.ex.n, l.ex.err = transmit(fd, l.ex.data)
		return true
	}
	return l, nil
}

// tooLong is the error of a frame above the limit. The id is 0 if it cannot be read.
type tooLong struct {
	limit int
	id    uint64
}

func (e *tooLong) Error() string {
	return fmt.Sprintf("a frame of more than %d bytes", e.limit)
}

// next returns the next frame: the caller's own, or valid until the following call. After an error that passes, such
// as the end of a deadline, it goes on where it was.
func (l *lane) next() (frame []byte, owned bool, err error) {
	if l.lines != nil {
		return l.lines.next()
	}
	poison(l.buf[:l.r])
	for {
		if l.long != nil {
			if l.have == len(l.long) {
				frame, l.long = l.long, nil
				return frame, true, nil
			}
			n, err := l.read(l.long[l.have:])
			if l.have += n; err != nil {
				return nil, false, err
			}
			continue
		}
		size, known := l.size()
		there := l.w - l.r - laneHead
		switch {
		case !known || size > l.limit && there < idBytes:
		case size > l.limit:
			return nil, false, &tooLong{l.limit, idOf(l.buf[l.r+laneHead : l.w])}
		case there >= size:
			frame = l.buf[l.r+laneHead:][:size]
			l.r += laneHead + size
			return frame, false, nil
		case size > len(l.buf)-laneHead:
			l.long = make([]byte, size)
			l.have = copy(l.long, l.buf[l.r+laneHead:l.w])
			l.r, l.w = 0, 0
			continue
		}
		if err := l.fill(size); err != nil {
			return nil, false, err
		}
	}
}

// size returns the length of the frame at hand, or more than the limit.
func (l *lane) size() (int, bool) {
	if l.w-l.r < laneHead {
		return 0, false
	}
	size := binary.LittleEndian.Uint32(l.buf[l.r:])
	return int(min(size, MaxFrame+1)), true // an int may have 32 bits
}

// buffered reports whether next has a frame without reading.
func (l *lane) buffered() bool {
	if l.lines != nil {
		return l.lines.buffered()
	}
	size, known := l.size()
	return known && l.w-l.r-laneHead >= size
}

func (l *lane) fill(size int) error {
	if l.r == l.w {
		l.r, l.w = 0, 0
	} else if l.r+laneHead+min(size, l.limit) > len(l.buf) || len(l.buf)-l.w < idBytes {
		l.r, l.w = 0, copy(l.buf, l.buf[l.r:l.w])
	}
	n, err := l.read(l.buf[l.w:])
	l.w += n
	return err
}

// idOf reads the id in the first bytes of a frame.
func idOf(data []byte) uint64 {
	if num, typ, n := protowire.ConsumeTag(data); n > 0 && num == 1 && typ == protowire.VarintType {
		if id, n := protowire.ConsumeVarint(data[n:]); n > 0 {
			return id
		}
	}
	return 0
}

// read waits for data. The error is io.EOF at the end.
func (l *lane) read(p []byte) (int, error) {
	l.in.data, l.in.n, l.in.err = p, 0, nil
	err := l.rawReads.Read(l.in.do)
	n := max(l.in.n, 0)
	switch {
	case err != nil:
		return 0, err
	case l.in.err != nil:
		return 0, l.in.err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

var _ carrier = (*lane)(nil)

func (l *lane) send(batch []*outgoing) {
	out := l.out[:0]
	for _, o := range batch {
		out = slices.Grow(out, laneHead+o.size())
		if l.lines == nil {
			out = binary.LittleEndian.AppendUint32(out, uint32(o.size())) //nolint:gosec // bounded by the frame
		}
		if out = append(out, *o.data...); l.lines != nil {
			out = append(out, '\n')
		}
		l.frames.recycle(o.data)
		o.sent.Store(true)
	}
	if l.out = out; cap(out) > largestPooled {
		l.out = nil
	}
	l.ex.data, l.ex.n, l.ex.err = out, 0, nil
	err := l.rawWrites.Write(l.ex.do)
	switch n := max(l.ex.n, 0); {
	case err != nil || l.ex.err != nil && !wouldBlock(l.ex.err):
		l.hangUp() // the reader notices
	case n < len(out):
		l.rest = out[n:]
		l.stuck.Store(true)
	}
}

func (l *lane) full() bool { return l.stuck.Load() }

func (l *lane) flush() {
	if !l.stuck.Load() {
		return
	}
	if _, err := l.writes.Write(l.rest); err != nil {
		l.hangUp()
	}
	l.rest = nil
	l.stuck.Store(false)
}

func (l *lane) most() int { return maxQueue }

// hangUp ends both directions. The reader still gets what has arrived, if the system keeps it, and then the end.
func (l *lane) hangUp() { _, _ = l.reads.CloseRead(), l.writes.CloseWrite() }

func wouldBlock(err error) bool { return errors.Is(err, syscall.EAGAIN) }

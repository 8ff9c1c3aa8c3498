package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protowire"
)

// A message above the limit ends its stream, and gRPC does not say whose answer it was. The tap does: it follows the
// HTTP/2 frames of a connection and, when a gRPC message that is too long is announced, notes the id in its first
// bytes. It changes and delays nothing.
//
// It also ends a connection whose messages come in crumbs: gRPC keeps each HTTP/2 frame of a message apart until the
// message is complete, at a hundred bytes for a frame that holds one.

// tapCredentials put a tap into each connection: gRPC lets credentials wrap a connection after all handshakes.
type tapCredentials struct {
	credentials.TransportCredentials
	frame int
}

func (c *tapCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, err
	}
	t := &tap{Conn: conn, limit: c.frame, found: make(chan uint64, 1)}
	return t, tapInfo{info, t}, nil
}

func (c *tapCredentials) Clone() credentials.TransportCredentials {
	return &tapCredentials{c.TransportCredentials.Clone(), c.frame}
}

// tapInfo carries the tap to the streams of its connection.
type tapInfo struct {
	credentials.AuthInfo
	tap *tap
}

// HTTP/2 frames and gRPC messages, as far as the tap looks.
const (
	http2Header   = 9
	http2Data     = 0
	http2Headers  = 1
	http2Reset    = 3
	flagEndStream = 1
	flagPadded    = 8
	grpcHeader    = 5
	idBytes       = 11   // how much of a message is looked at: a tag and a varint
	maxFlows      = 1024 // maxFlows bounds the streams that are followed; a host opens about three
	minCrumbs     = 64   // A message of n bytes may come in minCrumbs + n/crumb frames
	crumb         = 256
	culpritWait   = 100 * time.Millisecond // how long the first bytes of a message may take to follow its length
)

var errCrumbs = errors.New("the plugin sends messages in too many HTTP/2 frames, or on too many streams")

// tap is a connection that is listened to. Only the goroutine that reads it touches its state.
type tap struct {
	net.Conn
	limit int
	found chan uint64

	header  [http2Header]byte
	have    int // bytes of header that are there
	left    int // bytes of the frame's payload still to come
	padding int // of them, padding at the end; -1 while its length is to come
	flow    *flow
	flows   map[uint32]*flow
	crumbs  bool // the connection must end
}

// flow is one stream's sequence of gRPC messages.
type flow struct {
	header  [grpcHeader]byte
	have    int
	left    int    // bytes of the message still to come
	frames  int    // HTTP/2 frames that may still bring them
	watched []byte // watched holds the first bytes of a message that is too long
	long    bool
}

// culprit returns the id in the last message that was too long.
func (t *tap) culprit() (uint64, bool) {
	timer := time.NewTimer(culpritWait)
	defer timer.Stop()
	select {
	case id := <-t.found:
		return id, true
	case <-timer.C:
		return 0, false
	}
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if t.scan(p[:n]); t.crumbs {
		return 0, errCrumbs
	}
	return n, err
}

func (t *tap) scan(p []byte) {
	for len(p) > 0 {
		if t.left == 0 {
			n := copy(t.header[t.have:], p)
			t.have, p = t.have+n, p[n:]
			if t.have == http2Header {
				t.begin()
			}
			continue
		}
		n := min(t.left, len(p))
		if t.flow != nil {
			t.data(p[:n])
		}
		t.left, p = t.left-n, p[n:]
	}
}

// begin reads the header of a frame.
func (t *tap) begin() {
	t.have = 0
	t.left = int(t.header[0])<<16 | int(t.header[1])<<8 | int(t.header[2])
	kind, flags := t.header[3], t.header[4]
	id := binary.BigEndian.Uint32(t.header[5:]) & (1<<31 - 1)
	t.flow, t.padding = nil, 0
	if kind == http2Reset || (kind == http2Data || kind == http2Headers) && flags&flagEndStream != 0 {
		defer delete(t.flows, id)
	}
	if kind != http2Data || t.left == 0 {
		return
	}
	if t.flow = t.flows[id]; t.flow == nil {
		if t.flows == nil {
			t.flows = map[uint32]*flow{}
		}
		t.crumbs = t.crumbs || len(t.flows) >= maxFlows
		t.flow = &flow{}
		t.flows[id] = t.flow
	}
	if t.flow.left > 0 {
		t.flow.frames--
		t.crumbs = t.crumbs || t.flow.frames < 0
	}
	if flags&flagPadded != 0 {
		t.padding = -1
	}
}

func (t *tap) data(p []byte) {
	rest := t.left - len(p) // of the frame, behind p
	if t.padding < 0 {
		t.padding = int(p[0])
		p = p[1:]
	}
	if over := t.padding - rest; over > 0 {
		p = p[:max(len(p)-over, 0)]
	}
	for len(p) > 0 {
		p = t.flow.message(p, t.limit, t.found)
	}
}

// message takes a piece of a gRPC message off p.
func (m *flow) message(p []byte, limit int, found chan<- uint64) []byte {
	if m.left == 0 {
		n := copy(m.header[m.have:], p)
		if m.have += n; m.have == grpcHeader {
			m.have = 0
			m.left = int(binary.BigEndian.Uint32(m.header[1:]))
			m.frames = minCrumbs + m.left/crumb
			m.long = m.left > limit
			m.watched = m.watched[:0]
		}
		return p[n:]
	}
	n := min(m.left, len(p))
	if m.long {
		m.watch(p[:n], found)
	}
	m.left -= n
	return p[n:]
}

// watch reads the id of a message that is too long.
func (m *flow) watch(p []byte, found chan<- uint64) {
	m.watched = append(m.watched, p[:min(len(p), idBytes-len(m.watched))]...)
	num, typ, n := protowire.ConsumeTag(m.watched)
	if n < 0 && len(m.watched) < idBytes {
		return
	}
	id, size := uint64(0), -1
	if n > 0 && num == 1 && typ == protowire.VarintType {
		id, size = protowire.ConsumeVarint(m.watched[n:])
	}
	if size < 0 && len(m.watched) < idBytes {
		return
	}
	m.long = false
	if size > 0 {
		select {
		case found <- id:
		default: // one is enough: the session ends
		}
	}
}

package proc_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/proc"
)

// The frames of HTTP/2, as far as the attacks send them.
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	framePriority     = 0x2
	frameReset        = 0x3
	frameSettings     = 0x4
	framePush         = 0x5
	framePing         = 0x6
	frameGoAway       = 0x7
	frameWindowUpdate = 0x8
	frameContinuation = 0x9

	endStream  = 0x1
	endHeaders = 0x4
	ack        = 0x1
)

// The streams that a host opens, in this order.
const (
	stdioStream   = 1
	sessionStream = 3
)

// flood is how much an attack without an end sends.
func flood() int { return proc.Scaled(16 << 20) }

// http2Attacks are what a server may send once the connection is there. Most need
// a stream, which the host opens first.
func http2Attacks() map[string]func(*http2Peer) {
	repeat := func(frame []byte) func(*http2Peer) {
		return func(p *http2Peer) {
			batch := 1 + (32<<10)/len(frame)
			chunk := bytes.Repeat(frame, batch)
			for range max(1, min(flood()/len(chunk), proc.Scaled(floodFrames)/batch)) {
				p.send(chunk)
			}
		}
	}
	return map[string]func(*http2Peer){
		"SETTINGS flood":       repeat(frame(frameSettings, 0, 0, nil)),
		"PING flood":           repeat(frame(framePing, 0, 0, make([]byte, 8))),
		"WINDOW_UPDATE flood":  repeat(frame(frameWindowUpdate, 0, 0, []byte{0, 0, 0, 1})),
		"PRIORITY flood":       repeat(frame(framePriority, 0, stdioStream, make([]byte, 5))),
		"RST_STREAM flood":     repeat(frame(frameReset, 0, stdioStream, make([]byte, 4))),
		"GOAWAY flood":         repeat(frame(frameGoAway, 0, 0, append([]byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}, make([]byte, 1000)...))),
		"GOAWAY at once":       repeat(frame(frameGoAway, 0, 0, make([]byte, 8))),
		"PUSH_PROMISE":         repeat(frame(framePush, endHeaders, stdioStream, []byte{0, 0, 0, 2, 0x88})),
		"unknown frames":       repeat(frame(0x77, 0, stdioStream, make([]byte, 16<<10))),
		"data of no stream":    repeat(frame(frameData, 0, 99, make([]byte, 16<<10))),
		"headers of no stream": repeat(frame(frameHeaders, endHeaders, 99, responseHeaders("application/grpc"))),
		"empty data": func(p *http2Peer) {
			p.send(frame(frameHeaders, endHeaders, sessionStream, responseHeaders("application/grpc")))
			repeat(frame(frameData, 0, sessionStream, nil))(p)
		},
		"headers without end": func(p *http2Peer) {
			p.send(frame(frameHeaders, 0, stdioStream, responseHeaders("application/grpc")))
			repeat(frame(frameContinuation, 0, stdioStream, literal("x", string(make([]byte, 8<<10)))))(p)
		},
		"header bomb": headerBomb,
		"huge frame":  func(p *http2Peer) { p.send(frame(frameData, 0, stdioStream, make([]byte, 1<<24-1))) },
		"endless trailers": func(p *http2Peer) {
			for range proc.Scaled(floodFrames / 10) {
				p.send(frame(frameHeaders, endStream|endHeaders, sessionStream, append(responseHeaders("application/grpc"), literal("grpc-status", "12")...)))
			}
		},
		"trailers only": func(p *http2Peer) {
			for _, stream := range []uint32{stdioStream, sessionStream} {
				p.send(frame(frameHeaders, endStream|endHeaders, stream, append(responseHeaders("application/grpc"), literal("grpc-status", "12")...)))
			}
		},
		"another content type": func(p *http2Peer) {
			p.send(frame(frameHeaders, endHeaders, sessionStream, responseHeaders("text/html")))
			p.data(sessionStream, make([]byte, 64<<20), 16<<10)
		},
		"stdio of 1 GiB": func(p *http2Peer) {
			p.send(frame(frameHeaders, endHeaders, stdioStream, responseHeaders("application/grpc")))
			p.data(stdioStream, append([]byte{0, 0x40, 0, 0, 0}, make([]byte, 64<<20)...), 16<<10)
		},
		"frame in single bytes": func(p *http2Peer) {
			p.send(frame(frameHeaders, endHeaders, sessionStream, responseHeaders("application/grpc")))
			p.data(sessionStream, append([]byte{0, 0, 0x3f, 0xff, 0xff}, make([]byte, 4<<20)...), 1)
		},
		"compressed bomb": func(p *http2Peer) {
			p.send(frame(frameHeaders, endHeaders, sessionStream, append(responseHeaders("application/grpc"), literal("grpc-encoding", "gzip")...)))
			p.data(sessionStream, message(1, bytes.Repeat(zipped(1<<20), 256)), 16<<10)
		},
	}
}

// headerBomb fills the table of headers and names one of them again and again.
func headerBomb(p *http2Peer) {
	block := append(responseHeaders("application/grpc"), 0x40) // add to the table
	block = append(append(block, 1, 'x', 0x7f, 0x80|(3900-127)&0x7f, (3900-127)>>7), make([]byte, 3900)...)
	p.send(frame(frameHeaders, 0, sessionStream, block))
	for range 64 {
		p.send(frame(frameContinuation, 0, sessionStream, bytes.Repeat([]byte{0x80 | 62}, 16<<10)))
	}
	p.send(frame(frameContinuation, endHeaders, sessionStream, nil))
}

// frame is a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	f := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return append(binary.BigEndian.AppendUint32(f, stream), payload...)
}

// responseHeaders are those of an answer that follows.
func responseHeaders(contentType string) []byte {
	return append([]byte{0x88}, literal("content-type", contentType)...)
}

// literal is a header in the plainest coding that HPACK has, without an index.
func literal(name, value string) []byte {
	field := append([]byte{0, byte(len(name))}, name...)
	if len(value) < 0x7f {
		return append(append(field, byte(len(value))), value...)
	}
	return append(append(append(field, 0x7f), binary.AppendUvarint(nil, uint64(len(value)-0x7f))...), value...)
}

// message is a message of gRPC.
func message(compressed byte, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{compressed}, uint32(len(data))), data...)
}

func zipped(size int) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = io.CopyN(w, zeros{}, int64(size))
	_ = w.Close()
	return out.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// attack listens, shakes hands, and attacks whoever connects, once the streams
// that it needs are open. It says so when it is over.
func attack(name string) {
	l := listenUnix()
	fmt.Printf("1|1|unix|%s|grpc|\n", socketPath())
	conn, err := l.Accept()
	if err != nil {
		return
	}
	p := newHTTP2Peer(conn)
	p.send(frame(frameSettings, 0, 0, nil))
	go p.read()
	if name != "GOAWAY at once" {
		<-p.opened
	}
	http2Attacks()[name](p)
	fmt.Fprintln(os.Stderr, "done", name)
	block()
}

// http2Peer is a connection whose windows are kept.
type http2Peer struct {
	conn   net.Conn
	opened chan struct{} // closed when the session's stream is open

	mu      sync.Mutex
	changed *sync.Cond
	windows map[uint32]int
	closed  bool
}

func newHTTP2Peer(conn net.Conn) *http2Peer {
	p := &http2Peer{conn: conn, opened: make(chan struct{}), windows: map[uint32]int{0: 65535}}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// send writes; a host that does not read any more has withstood.
func (p *http2Peer) send(data []byte) {
	_ = p.conn.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := p.conn.Write(data); err != nil {
		fmt.Fprintln(os.Stderr, "done", err)
		block()
	}
}

// data sends the data of a stream, in frames of a size, as fast as the host
// allows.
func (p *http2Peer) data(stream uint32, data []byte, size int) {
	for len(data) > 0 {
		n := p.take(stream, min(len(data), 64<<10))
		var out []byte
		for part := data[:n]; len(part) > 0; part = part[min(size, len(part)):] {
			out = append(out, frame(frameData, 0, stream, part[:min(size, len(part))])...)
		}
		p.send(out)
		data = data[n:]
	}
}

// take waits for room in the windows.
func (p *http2Peer) take(stream uint32, want int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.closed {
			fmt.Fprintln(os.Stderr, "done: closed")
			p.mu.Unlock()
			block()
		}
		if n := min(want, p.windows[0], p.windows[stream]); n > 0 {
			p.windows[0] -= n
			p.windows[stream] -= n
			return n
		}
		p.changed.Wait()
	}
}

// read follows what the host sends.
func (p *http2Peer) read() {
	const preface = 24
	_, err := io.CopyN(io.Discard, p.conn, preface)
	initial := 65535
	for head := make([]byte, 9); err == nil; {
		if _, err = io.ReadFull(p.conn, head); err != nil {
			break
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		_, err = io.ReadFull(p.conn, payload)
		stream := binary.BigEndian.Uint32(head[5:])
		p.mu.Lock()
		switch head[3] {
		case frameSettings:
			for s := payload; len(s) >= 6; s = s[6:] {
				if binary.BigEndian.Uint16(s) == 4 {
					initial = int(binary.BigEndian.Uint32(s[2:]))
				}
			}
		case frameHeaders:
			p.windows[stream] = initial
			if stream == sessionStream {
				close(p.opened)
			}
		case frameWindowUpdate:
			p.windows[stream] += int(binary.BigEndian.Uint32(payload))
		case frameReset:
			p.closed = true
		}
		p.changed.Broadcast()
		p.mu.Unlock()
	}
	p.mu.Lock()
	p.closed = true
	p.changed.Broadcast()
	p.mu.Unlock()
}

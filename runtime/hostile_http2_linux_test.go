package runtime_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"net"
	"slices"
)

// http2Attacks speak HTTP/2 by hand, against the client of gRPC that every host links.
func http2Attacks() map[string]func(*hostile) error {
	all := map[string]func(*hostile) error{
		"http2-mute":           func(p *hostile) error { return p.accepting(func(_ net.Listener, c net.Conn) error { return drain(c) }) },
		"http2-hangs-up":       func(p *hostile) error { return p.accepting(func(net.Listener, net.Conn) error { return nil }) },
		"http2-speaks-http1":   (*hostile).speaksHTTP1,
		"http2-half-a-frame":   (*hostile).halfAFrame,
		"http2-settings-only":  func(p *hostile) error { return p.http2(func(io.Writer, uint32) error { return nil }) },
		"http2-settings-flood": func(p *hostile) error { return p.http2(flood(frameSettings, 0, nil)) },
		"http2-ping-flood":     func(p *hostile) error { return p.http2(flood(framePing, 0, make([]byte, 8))) },
		"http2-no-window": func(p *hostile) error {
			return p.http2(once(frameSettings, 0, []byte{0, 4, 0, 0, 0, 0}))
		},
		"http2-tiny-frames": func(p *hostile) error {
			return p.http2(once(frameSettings, 0, []byte{0, 5, 0, 0, 0, 1}))
		},
		"http2-window-overflow": func(p *hostile) error { return p.http2(flood(frameWindow, 0, []byte{0x7f, 0xff, 0xff, 0xff})) },
		"http2-goaway":          func(p *hostile) error { return p.http2(once(frameGoAway, 0, make([]byte, 8))) },
	}
	for name, answer := range http2Answers() {
		all["http2-"+name] = func(p *hostile) error { return p.http2(answer) }
	}
	return all
}

// http2Answers answer the stream that the host opens.
func http2Answers() map[string]func(w io.Writer, stream uint32) error {
	good := headers(":status", "200", "content-type", "application/grpc")
	return map[string]func(io.Writer, uint32) error{
		"reset":               onStream(frameReset, 0, make([]byte, 4)),
		"reset-flood":         floodStream(frameReset, []byte{0, 0, 0, 8}),
		"wrong-type":          onStream(frameHeaders, endHeaders, headers(":status", "200", "content-type", "text/html")),
		"not-found":           onStream(frameHeaders, endHeaders|endStream, headers(":status", "404")),
		"no-status":           onStream(frameHeaders, endHeaders, headers("x", "y")),
		"trailers-only":       onStream(frameHeaders, endHeaders|endStream, headers(":status", "200", "content-type", "application/grpc", "grpc-status", "0")),
		"huge-grpc-status":    onStream(frameHeaders, endHeaders|endStream, headers(":status", "200", "content-type", "application/grpc", "grpc-status", "99999999999999999999", "grpc-message", "%FF%00%")),
		"endless-headers":     endlessHeaders,
		"hpack-bomb":          onStream(frameHeaders, endHeaders, hpackBomb()),
		"hpack-garbage":       onStream(frameHeaders, endHeaders, bytes.Repeat([]byte{0xff}, 1000)),
		"length-lie":          both(onStream(frameHeaders, endHeaders, good), onStream(frameData, 0, []byte{0, 0xff, 0xff, 0xff, 0xff})),
		"length-then-trickle": both(onStream(frameHeaders, endHeaders, good), onStream(frameData, 0, []byte{0, 0, 0x3f, 0xff, 0xff, 1})),
		"compressed":          both(onStream(frameHeaders, endHeaders, good), onStream(frameData, 0, []byte{1, 0, 0, 0, 1, 0})),
		"gzip-bomb":           both(onStream(frameHeaders, endHeaders, headers(":status", "200", "content-type", "application/grpc", "grpc-encoding", "gzip")), gzipBomb),
		"empty-data-flood":    both(onStream(frameHeaders, endHeaders, good), floodStream(frameData, nil)),
		"data-beyond-window":  both(onStream(frameHeaders, endHeaders, good), floodStream(frameData, make([]byte, 16_000))),
		"push":                onStream(framePush, endHeaders, append([]byte{0, 0, 0, 2}, good...)),
		"other-streams":       func(w io.Writer, _ uint32) error { return writeFrame(w, frameHeaders, endHeaders, 9999, good) },
		"oversize-frame":      func(w io.Writer, s uint32) error { return writeFrame(w, frameData, 0, s, make([]byte, 1<<20)) },
		"unknown-frames":      floodStream(0xfa, make([]byte, 100)),
	}
}

// The frames and flags of HTTP/2 (RFC 9113).
const (
	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
	framePush     = 5
	framePing     = 6
	frameGoAway   = 7
	frameWindow   = 8
	frameContinue = 9

	endStream  = 1
	endHeaders = 4

	// floodFrames is how many frames a flood has on each connection.
	floodFrames = 10_000
)

func writeFrame(w io.Writer, kind, flags byte, stream uint32, payload []byte) error {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = binary.BigEndian.AppendUint32(append(head, flags), stream)
	_, err := w.Write(append(head, payload...))
	return err
}

// headers are a header block of literals.
func headers(pairs ...string) []byte {
	var block []byte
	for i, s := range pairs {
		if i%2 == 0 {
			block = append(block, 0) // a literal, not indexed
		}
		block = append(append(block, byte(len(s))), s...)
	}
	return block
}

// hpackBomb fills the table with one long field and refers to it thousands of times.
func hpackBomb() []byte {
	block := []byte{0x40, 1, 'x', 0x7f, 0x81, 0x1e} // length 127 + 3841
	block = append(block, bytes.Repeat([]byte{'y'}, 127+3841)...)
	return append(block, bytes.Repeat([]byte{0x80 | 62}, 12_000)...)
}

// http2 answers the first stream of each connection, and then reads on.
func (p *hostile) http2(answer func(w io.Writer, stream uint32) error) error {
	return p.accepting(func(_ net.Listener, conn net.Conn) error {
		preface := make([]byte, 24)
		if _, err := io.ReadFull(conn, preface); err != nil {
			return err
		}
		if err := writeFrame(conn, frameSettings, 0, 0, nil); err != nil {
			return err
		}
		for head := make([]byte, 9); ; {
			if _, err := io.ReadFull(conn, head); err != nil {
				return err
			}
			if err := skipPayload(conn, head); err != nil {
				return err
			}
			if head[3] != frameHeaders {
				continue
			}
			go func() { _ = answer(conn, binary.BigEndian.Uint32(head[5:])) }()
			return drain(conn)
		}
	})
}

// skipPayload reads past the payload of the frame with this header.
func skipPayload(r io.Reader, head []byte) error {
	_, err := io.CopyN(io.Discard, r, int64(head[0])<<16|int64(head[1])<<8|int64(head[2]))
	return err
}

// drain reads until the end.
func drain(conn net.Conn) error {
	_, err := io.Copy(io.Discard, conn)
	return err
}

func onStream(kind, flags byte, payload []byte) func(io.Writer, uint32) error {
	return func(w io.Writer, stream uint32) error { return writeFrame(w, kind, flags, stream, payload) }
}

func once(kind, flags byte, payload []byte) func(io.Writer, uint32) error {
	return func(w io.Writer, _ uint32) error { return writeFrame(w, kind, flags, 0, payload) }
}

func flood(kind, flags byte, payload []byte) func(io.Writer, uint32) error {
	return func(w io.Writer, _ uint32) error { return repeatFrame(w, kind, flags, 0, payload) }
}

func floodStream(kind byte, payload []byte) func(io.Writer, uint32) error {
	return func(w io.Writer, stream uint32) error { return repeatFrame(w, kind, 0, stream, payload) }
}

func repeatFrame(w io.Writer, kind, flags byte, stream uint32, payload []byte) error {
	for range floodFrames {
		if err := writeFrame(w, kind, flags, stream, payload); err != nil {
			return err
		}
	}
	return nil
}

func both(first, second func(io.Writer, uint32) error) func(io.Writer, uint32) error {
	return func(w io.Writer, stream uint32) error {
		if err := first(w, stream); err != nil {
			return err
		}
		return second(w, stream)
	}
}

// endlessHeaders goes on with one header block.
func endlessHeaders(w io.Writer, stream uint32) error {
	block := headers("name", string(bytes.Repeat([]byte{'v'}, 120)))
	if err := writeFrame(w, frameHeaders, 0, stream, block); err != nil {
		return err
	}
	return repeatFrame(w, frameContinue, 0, stream, bytes.Repeat(block, 100))
}

// gzipBomb sends 256 MiB in some hundred kilobytes.
func gzipBomb(w io.Writer, stream uint32) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 1 << 8 {
		if _, err := z.Write(make([]byte, 1<<20)); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	data := append(binary.BigEndian.AppendUint32([]byte{1}, uint32(packed.Len())), packed.Bytes()...)
	for chunk := range slices.Chunk(data, 16<<10) {
		if err := writeFrame(w, frameData, 0, stream, chunk); err != nil {
			return err
		}
	}
	return nil
}

// speaksHTTP1 answers as a web server of the last century.
func (p *hostile) speaksHTTP1() error {
	return p.accepting(func(_ net.Listener, conn net.Conn) error {
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n<html>"); err != nil {
			return err
		}
		return drain(conn)
	})
}

// halfAFrame promises a frame and sends its beginning.
func (p *hostile) halfAFrame() error {
	return p.accepting(func(_ net.Listener, conn net.Conn) error {
		if _, err := conn.Write([]byte{0, 0, 100, frameSettings, 0, 0, 0, 0, 0, 1, 2, 3}); err != nil {
			return err
		}
		return drain(conn)
	})
}

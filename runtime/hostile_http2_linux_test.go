package runtime_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"net"
	"slices"
)

// http2Attacks speak HTTP/2 by hand, against the client of gRPC that every host links: what its options bound, and what
// keeps it waiting.
func http2Attacks() map[string]func(*badProgram) error {
	all := map[string]func(*badProgram) error{
		"http2-mute":         func(p *badProgram) error { return p.accepting(drain) },
		"http2-hangs-up":     func(p *badProgram) error { return p.accepting(func(net.Conn) error { return nil }) },
		"http2-speaks-http1": (*badProgram).speaksHTTP1,
	}
	good := headers(":status", "200", "content-type", "application/grpc")
	packed := headers(":status", "200", "content-type", "application/grpc", "grpc-encoding", "gzip")
	for name, answer := range map[string]func(w io.Writer, stream uint32) error{
		"settings-only":      func(io.Writer, uint32) error { return nil },
		"settings-flood":     func(w io.Writer, _ uint32) error { return repeatFrame(w, frameSettings, 0, nil) },
		"endless-headers":    endlessHeaders,
		"length-lie":         both(onStream(frameHeaders, endHeaders, good), onStream(frameData, 0, []byte{0, 0xff, 0xff, 0xff, 0xff})),
		"gzip-bomb":          both(onStream(frameHeaders, endHeaders, packed), gzipBomb),
		"data-beyond-window": both(onStream(frameHeaders, endHeaders, good), floodData),
	} {
		all["http2-"+name] = func(p *badProgram) error { return p.http2(answer) }
	}
	return all
}

// The frames and flags of HTTP/2 (RFC 9113).
const (
	frameData     = 0
	frameHeaders  = 1
	frameSettings = 4
	frameContinue = 9

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

// http2 answers the first stream of each connection, and then reads on.
func (p *badProgram) http2(answer func(w io.Writer, stream uint32) error) error {
	return p.accepting(func(conn net.Conn) error {
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

func floodData(w io.Writer, stream uint32) error {
	return repeatFrame(w, frameData, stream, make([]byte, 16_000))
}

func repeatFrame(w io.Writer, kind byte, stream uint32, payload []byte) error {
	for range floodFrames {
		if err := writeFrame(w, kind, 0, stream, payload); err != nil {
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
	return repeatFrame(w, frameContinue, stream, bytes.Repeat(block, 100))
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
func (p *badProgram) speaksHTTP1() error {
	return p.accepting(func(conn net.Conn) error {
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n<html>"); err != nil {
			return err
		}
		return drain(conn)
	})
}

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
)

// recorded is a connection that gives prepared bytes in pieces.
type recorded struct {
	net.Conn
	rest  []byte
	piece func() int
}

func (r *recorded) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := min(r.piece(), len(p), len(r.rest))
	copy(p, r.rest[:n])
	r.rest = r.rest[n:]
	return n, nil
}

func dataFrame(flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	out := []byte{byte(n >> 16), byte(n >> 8), byte(n), http2Data, flags}
	out = binary.BigEndian.AppendUint32(out, stream)
	return append(out, payload...)
}

// message is a gRPC message that says it has size bytes, with the id first.
func grpcMessage(size int, id uint64, body []byte) []byte {
	out := binary.BigEndian.AppendUint32([]byte{0}, uint32(size))
	return append(protowire.AppendVarint(append(out, 8), id), body...)
}

func FuzzTap(f *testing.F) {
	f.Add(dataFrame(flagPadded, 1, append([]byte{3}, grpcMessage(1<<20, 5, nil)...)), uint8(3))
	f.Fuzz(func(t *testing.T, traffic []byte, cut uint8) {
		run := func(piece int) (ids []uint64, crumbs bool) {
			conn := &tap{Conn: &recorded{rest: traffic, piece: func() int { return piece }}, limit: 1000, found: make(chan uint64, 1000)}
			passed, err := io.ReadAll(conn)
			if crumbs = errors.Is(err, errCrumbs); err != nil && !crumbs || !crumbs && !bytes.Equal(traffic, passed) {
				t.Fatalf("the traffic was changed (%v)", err)
			}
			close(conn.found)
			for id := range conn.found {
				ids = append(ids, id)
			}
			return ids, crumbs
		}
		whole, crumbs := run(len(traffic) + 1)
		pieces, crumbsToo := run(1 + int(cut))
		if crumbs != crumbsToo {
			t.Errorf("refused at once: %v, in pieces: %v", crumbs, crumbsToo)
		}
		if diff := cmp.Diff(whole, pieces); diff != "" && !crumbs {
			t.Errorf("found (-at once +in pieces):\n%s", diff)
		}
	})
}

// TestMessageInCrumbs: a message may come in many frames, though not in one for
// each byte, and not on more streams than a host opens.
func TestMessageInCrumbs(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	split := func(frame int) []byte {
		var out []byte
		data := grpcMessage(size+2, 9, make([]byte, size))
		for len(data) > 0 {
			n := min(frame, len(data))
			out, data = append(out, dataFrame(0, 3, data[:n])...), data[n:]
		}
		return out
	}
	var streams []byte
	for id := range uint32(maxFlows + 1) {
		streams = append(streams, dataFrame(0, 2*id+1, make([]byte, 5))...)
	}
	tests := map[string]struct {
		traffic []byte
		want    error
	}{
		"large frames": {split(16 << 10), nil}, "small frames": {split(crumb), nil}, "crumbs": {split(crumb / 2), errCrumbs},
		"bytes": {split(1), errCrumbs}, "streams": {streams, errCrumbs},
		"padded": {dataFrame(flagPadded, 3, slices.Concat([]byte{4}, grpcMessage(size+2, 9, make([]byte, size)), make([]byte, 4))), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := &tap{Conn: &recorded{rest: tt.traffic, piece: func() int { return 1000 }}, limit: size, found: make(chan uint64, 1)}
			if _, err := io.ReadAll(conn); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if tt.want == nil && (len(conn.found) != 1 || <-conn.found != 9) {
				t.Error("the id of the long message is not found")
			}
		})
	}
}

package rpc

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// halfLimits are those of a gateway that has room for 16 long messages, 4 of which
// may be arriving.
func halfLimits(o *Options) { o.Limits.Memory, o.Limits.Body = 16<<20, 1<<20 }

// halves are messages of a length but for their last byte, in every form, behind what
// opens the connection.
var halves = map[string]func(length int) string{
	"http": func(length int) string { return postHead("", length) + strings.Repeat(" ", length-1) },
	"chunked": func(length int) string {
		return "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
			strings.Repeat("400\r\n"+strings.Repeat(" ", 1<<10)+"\r\n", length>>10-1)
	},
	"websocket": func(length int) string { return upgradeRequest + string(frame(length, strings.Repeat(" ", length-1))) },
	"fragments": func(length int) string {
		piece := func(opcode byte) string {
			return string(binary.BigEndian.AppendUint16([]byte{opcode, 0x80 | 126}, 1<<10)) + "\x00\x00\x00\x00" + strings.Repeat(" ", 1<<10)
		}
		return upgradeRequest + piece(1) + strings.Repeat(piece(0), length>>10-2)
	},
}

const upgradeRequest = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"

// sendHalf opens a connection and begins to send; the gateway may not read all of it.
func (h *harness) sendHalf(t *testing.T, wg *sync.WaitGroup, text string) net.Conn {
	t.Helper()
	conn := dialPlain(t, "tcp", h.addr)
	wg.Go(func() { _, _ = io.WriteString(conn, text) })
	return conn
}

// TestHalfSentMessagesLeaveRoom: however many long messages are on their way and never
// arrive, others have their calls answered, and do not wait for it.
func TestHalfSentMessagesLeaveRoom(t *testing.T) {
	t.Parallel()

	for name, half := range halves {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			h := start(t, halfLimits, func(o *Options) { o.Limits.Admission, o.Limits.Read = time.Hour, time.Hour }) // nobody is evicted, and nothing given up
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			inTime := func(r *http.Request) { *r = *r.WithContext(ctx) }
			var senders sync.WaitGroup
			t.Cleanup(senders.Wait)
			for range 40 {
				h.sendHalf(t, &senders, half(h.srv.limits.Body))
			}
			h.untilQuota(t, "the messages to fill their share", func(q *quota) bool { return len(q.leases) == 40 && len(q.waiting) >= 20 })
			for range 20 {
				if _, body := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"text":"`+strings.Repeat("x", smallMessage/2)+`"}}`, inTime); summaries(t, body)[0][0] != '1' {
					t.Fatalf("an honest client got %.300s", body)
				}
				ws := h.dial(t)
				say(t, ws, `{"jsonrpc":"2.0","id":1,"method":"test/who"}`)
				if got := summaries(t, hear(t, ws)); got[0] != `1 "open"` {
					t.Fatalf("an honest client got %s", got)
				}
			}
		})
	}
}

// TestSlowSendersAreEvicted: a message that does not go on arriving makes room for one
// that does, and its sender learns why, or loses the connection.
func TestSlowSendersAreEvicted(t *testing.T) {
	t.Parallel()

	for name, half := range halves {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			h := start(t, halfLimits, func(o *Options) {
				o.Limits.Admission, o.Limits.Read = 10*time.Second, time.Hour // evicted after one second
				o.Limits.Body = 4 << 20                                       // one of them is all that may be arriving
			})
			var senders sync.WaitGroup
			t.Cleanup(senders.Wait)
			conn := h.sendHalf(t, &senders, half(h.srv.limits.Body))
			h.untilQuota(t, "the message to fill its share", func(q *quota) bool { return q.process.arriving.used == int64(h.srv.limits.Body) })
			long := `{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"text":"` + strings.Repeat("x", 100_000) + `"}}`
			if _, body := h.post(t, long); len(body) < 100_000 {
				t.Errorf("an honest client got %.300s", body)
			}
			last, err := io.ReadAll(conn)
			if name != "websocket" && name != "fragments" && !strings.Contains(string(last), CodeOverloaded) {
				t.Errorf("it got %q, %v", last, err)
			}
		})
	}
}

// TestArrivalRate: each piece of a message has its time, and all of it no more than the
// limit, whatever arrives.
func TestArrivalRate(t *testing.T) {
	t.Parallel()

	q := newTestQuota(t, time.Hour)
	q.process.most, q.process.arriving.most = 1<<30, 1<<30
	l := &lease{q: q, accounts: []*account{q.process}}
	var due []time.Time
	a := arrival{
		ctx: t.Context(), lease: l, from: strings.NewReader(strings.Repeat(" ", 10*readPiece)), whole: 12 * readPiece, read: time.Hour,
		deadline: func(at time.Time) error {
			due = append(due, at)
			return nil
		},
	}
	began := time.Now()
	if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{&a}, make([]byte, 1<<10)); n != 10*readPiece || err != nil {
		t.Fatalf("%d bytes: %v", n, err)
	}
	if len(due) != 11 || due[0].Before(began.Add(time.Hour/3)) || due[10].After(time.Now().Add(time.Hour/3)) { // at the beginning, behind the wait for room, and for each piece
		t.Errorf("%d deadlines: %v behind %v", len(due), due, began)
	}
	a.by, a.next = time.Now().Add(time.Minute), 0
	_ = a.piece()
	if !due[len(due)-1].Equal(a.by) {
		t.Error("the last piece has more time than the message")
	}
	if l.held != a.whole || !l.arriving {
		t.Errorf("it holds %d", l.held)
	}
	l.release()
}

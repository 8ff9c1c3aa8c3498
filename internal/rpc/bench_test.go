package rpc

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const benchCall = `{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"text":"hello","count":1}}`

// quiet drops what the harness notes, which would fill up.
func quiet(o *Options) { o.OnCall, o.OnConn = nil, nil }

// BenchmarkAnswer is a call without its transport.
func BenchmarkAnswer(b *testing.B) {
	h := start(b, quiet)
	conn := h.srv.quota.connection()
	b.ReportAllocs()
	for b.Loop() {
		l := h.srv.quota.lease(nil, conn, nil)
		h.srv.answer(b.Context(), &Caller{Open: true}, nil, l, []byte(benchCall))
		l.release()
	}
}

// BenchmarkParse is a message with a text of 64 KiB.
func BenchmarkParse(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"content":"` + strings.Repeat("line of text\\n", 64<<10/14) + `"}}`)
	l := Limits{}.withDefaults()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, bad := parse(text, l); bad != nil {
			b.Fatal(bad)
		}
	}
}

// BenchmarkPost is a call by HTTP over a connection that stays open.
func BenchmarkPost(b *testing.B) {
	h := start(b, quiet)
	c := client(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://"+h.addr+"/rpc", strings.NewReader(benchCall))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", contentType)
		resp, err := c.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		_ = resp.Body.Close()
	}
}

// BenchmarkWebSocket is a call over a WebSocket connection.
func BenchmarkWebSocket(b *testing.B) {
	h := start(b, quiet)
	ws := h.dial(b)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := ws.Write(ctx, 1, []byte(benchCall)); err != nil {
			b.Fatal(err)
		}
		if _, _, err := ws.Read(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNotify1000 tells a thousand connections something, and waits until all
// have read it. It reports how late the slowest but one in a hundred has it, which
// should be at most 100 ms.
func BenchmarkNotify1000(b *testing.B) {
	const n = 1000
	h := start(b, quiet)
	conns := make([]*Conn, n)
	var mu sync.Mutex
	var took []time.Duration
	var began time.Time
	var round sync.WaitGroup
	length := 2 + len(`{"jsonrpc":"2.0","method":"test/said","params":{"text":"hello"}}`)
	for i := range n {
		conn := h.rawSocket(b, 0)
		watch := `{"jsonrpc":"2.0","method":"test/watch"}`
		if _, err := conn.Write(frame(len(watch), watch)); err != nil {
			b.Fatal(err)
		}
		conns[i] = await(b, h.hooks.conn, "the connection")
		go func() {
			buf := make([]byte, length)
			for {
				if _, err := io.ReadFull(conn, buf); err != nil {
					return
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
				round.Done()
			}
		}()
	}
	params := json.RawMessage(`{"text":"hello"}`)
	for b.Loop() {
		round.Add(n)
		began = time.Now()
		for _, c := range conns {
			c.Notify("", "test/said", params)
		}
		round.Wait()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
}

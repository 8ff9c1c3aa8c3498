package rpc

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

const benchCall = `{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"text":"hello","count":1}}`

// quiet drops what the harness notes, which would fill up.
func quiet(o *Options) { o.OnCall, o.OnConn = nil, nil }

// BenchmarkPost is a call by HTTP over a connection that stays open.
func BenchmarkPost(b *testing.B) {
	h := start(b, quiet)
	c := client(b)
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

package rpc

import (
	"encoding/json"
	"io"
	"runtime"
	"testing"
)

// TestGrowth measures what a watching connection takes in memory, with the socket of its client, once it was notified.
func TestGrowth(t *testing.T) { // alone: others take memory too
	const n, most = 1000, 64 << 10
	taken := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	h := start(t)
	before := taken()
	const call = `{"jsonrpc":"2.0","method":"test/watch"}`
	for range n {
		conn := h.rawSocket(t, 0)
		must(conn.Write(frame(len(call), call)))(t)
		await(t, h.hooks.conn, "the connection").Notify("", "test/said", json.RawMessage(`{"text":"hello"}`))
		must(io.ReadFull(conn, make([]byte, len(`{"jsonrpc":"2.0","method":"test/said"}`))))(t)
	}
	got := (taken() - before) / n
	t.Logf("%d bytes a watching connection", got)
	if got > most {
		t.Errorf("a watching connection takes %d bytes, more than %d", got, most)
	}
}

package rpc

import (
	"encoding/json"
	"io"
	"testing"
)

// Target for a watching connection, in KiB of the server's process.
const wantGrowth = 64

// TestGrowth opens a thousand connections to a process of its own, and has it tell
// them something.
func TestGrowth(t *testing.T) {
	if testing.Short() {
		t.Skip("it opens a thousand connections")
	}
	const n = 1000
	h := startChild(t)
	rss := func() int {
		_, body := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"child/rss"}`)
		var r struct {
			Result int `json:"result"`
		}
		if err := json.Unmarshal([]byte(body), &r); err != nil || r.Result == 0 {
			t.Fatalf("%v in %s", err, body)
		}
		return r.Result
	}
	rss() // the first call has costs of its own
	before := rss()
	said := `{"jsonrpc":"2.0","method":"test/said","params":{"text":"hello"}}`
	answer := `{"jsonrpc":"2.0","id":1,"result":1000}`
	watch := `{"jsonrpc":"2.0","id":1,"method":"child/watch"}`
	readers := make([]func(int), n)
	for i := range n {
		conn := h.rawSocket(t, 0)
		if _, err := conn.Write(frame(len(watch), watch)); err != nil {
			t.Fatal(err)
		}
		readers[i] = func(length int) {
			if _, err := io.ReadFull(conn, make([]byte, length)); err != nil {
				t.Fatal(err)
			}
		}
		readers[i](2 + len(answer) - 4 + len(itoa(i+1)))
	}
	if _, body := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"child/say","params":{"text":"hello"}}`); summaries(t, body)[0] != "1 1000" {
		t.Fatal(body)
	}
	for _, read := range readers {
		read(2 + len(said))
	}
	got := float64(rss()-before) / n
	t.Logf("%.1f KiB a watching connection, %d MiB before the first", got, before>>10)
	if got > wantGrowth && !raced {
		t.Errorf("a watching connection costs %.1f KiB, more than %d", got, wantGrowth)
	}
}

package main

import (
	"net/http"
	"strings"
	"testing"
)

// upgraded opens a WebSocket.
func (b *besieged) upgraded(t *testing.T, token string) *wire {
	t.Helper()
	w := b.connect(t, "tcp")
	w.say(upgradeOf(token))
	resp, err := http.ReadResponse(w.r, nil) //nolint:bodyclose // it has none
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the handshake: %v %v", resp, err)
	}
	return w
}

// loadRows are messages of which there are many.
func loadRows() []hostileRow {
	list, note := rpcOf("workspace/list", object{}), `{"jsonrpc":"2.0","method":"workspace/list"}`
	return []hostileRow{
		{name: "JSON-RPC: many notifications", do: func(t *testing.T, b *besieged) {
			w := b.upgraded(t, readToken)
			go w.say(strings.Repeat(textOf(strings.Repeat(" ", 100)+note), rounds(20_000, 2_000)) + textOf(list))
			if _, err := w.r.ReadByte(); err != nil {
				t.Errorf("the connection ended: %v", err)
			}
		}},
		{name: "JSON-RPC: 50 messages of 2 MB at once", do: func(t *testing.T, b *besieged) {
			for range 50 {
				text := postOf(readToken, strings.Repeat(" ", 2<<20-len(list)-10)+list)
				go b.connect(t, "tcp").say(text)
			}
			b.works(t)
		}},
		{name: "JSON-RPC: numbers that grow when decoded", do: func(t *testing.T, b *besieged) {
			call := rpcOf("phase/dispatch", object{"phase": "turn.pre_policy", "context": object{"workspace_id": "rival", "metadata": object{"x": "LONG"}}})
			text := postOf(tenantToken, strings.Replace(call, `"LONG"`, "["+strings.Repeat("0,", 900_000)+"0]", 1))
			for range 20 {
				go b.connect(t, "tcp").say(text)
			}
			b.works(t)
		}},
		{name: "JSON-RPC: large batches, unread", do: func(t *testing.T, b *besieged) {
			for range 24 {
				b.connect(t, "tcp").say(postOf(readToken, bigBatch(50)))
			}
			b.works(t)
		}, database: true},
		{name: "JSON-RPC: many saves of the same version", do: func(t *testing.T, b *besieged) {
			for range rounds(40, 4) {
				save := rpcOf("thread/agents_doc/save", object{"workspace_id": "acme", "content": "x", "expected_version": 1})
				for _, r := range b.post(t, writeToken, "["+strings.Repeat(save+",", 49)+save+"]") {
					if r.code() != "version_conflict" {
						t.Fatalf("got %s", r.code())
					}
				}
			}
		}, database: true},
	}
}

package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// sends makes a row: bytes to the port, and the statuses that may be answered; 0 is a
// connection that is closed without an answer.
func sends(name, text string, want ...int) hostileRow {
	return hostileRow{name: name, do: func(t *testing.T, b *besieged) {
		for _, network := range []string{"tcp", "unix"} {
			w := b.connect(t, network)
			w.say(text)
			if half, ok := w.Conn.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite() // nothing more comes
			}
			if status, body := w.answer(); !slices.Contains(want, status) {
				t.Errorf("over %s the status is %d, and may be %v: %.200s", network, status, want, body)
			}
			_ = w.Close()
		}
	}}
}

// httpRows are HTTP that is not.
func httpRows() []hostileRow {
	const head = "POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + readToken + "\r\nContent-Type: application/json\r\n"
	list := rpcOf("workspace/list", object{})
	smuggled := postOf(honestToken, rpcOf("workspace/create", object{"id": "smuggled", "name": "x"}))
	return []hostileRow{
		sends("chunk of 2 GB that does not come", head+"Transfer-Encoding: chunked\r\n\r\n7fffffff\r\nx", 200, 400),
		sends("chunks of one byte", head+"Transfer-Encoding: chunked\r\n\r\n"+strings.Repeat("1\r\n \r\n", 100_000)+"0\r\n\r\n", 200, 0),
		smuggles("smuggling by length and chunks", head+fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", len(smuggled))),
		smuggles("smuggling by a coding in disguise", head+"Content-Length: 4\r\nTransfer-Encoding : chunked\r\n\r\n"),
		sends("header of 1 MB", head+"X: "+strings.Repeat("x", 1<<20)+"\r\n\r\n", 431, 0),
		{name: "pipeline of 2,000 requests", do: func(t *testing.T, b *besieged) {
			w := b.connect(t, "tcp")
			go w.say(strings.Repeat(postOf(readToken, list), 2_000))
			for i := range 2_000 {
				if status, body := w.answer(); status != http.StatusOK {
					t.Fatalf("answer %d: %d %.200s", i, status, body)
				}
			}
		}},
		{name: "hangs up in the middle of answers", do: func(t *testing.T, b *besieged) {
			for range 100 {
				w := b.connect(t, "tcp")
				w.say(postOf(readToken, rpcOf("thread/agents_doc/revisions", object{"workspace_id": "acme", "include_content": true, "limit": 3})))
				_, _ = w.r.ReadByte()
				_ = w.Close()
			}
		}, database: true},
		{name: "hangs up in the middle of saves", do: func(t *testing.T, b *besieged) {
			for i := range 100 {
				w := b.connect(t, "tcp")
				text := postOf(writeToken, rpcOf("thread/agents_doc/save", object{"workspace_id": "acme", "content": strings.Repeat("x", 50_000), "expected_version": 3}))
				w.say(text[:len(text)-i])
				_ = w.Close()
			}
		}, database: true},
	}
}

// smuggles makes a row: a request that two servers could part differently, and behind
// it one that must not be done.
func smuggles(name, first string) hostileRow {
	return hostileRow{name: name, do: func(t *testing.T, b *besieged) {
		w := b.connect(t, "tcp")
		w.say(first + postOf(honestToken, rpcOf("workspace/create", object{"id": "smuggled", "name": "x"})))
		status, body := w.answer()
		if status != http.StatusBadRequest && status != http.StatusNotImplemented && status != http.StatusOK {
			t.Errorf("got %d: %.200s", status, body)
		}
		for status != 0 {
			status, _ = w.answer() // until it is closed: it must not go on
		}
		if list := b.honest.ask(t, "workspace/list", object{}); strings.Contains(string(list), "smuggled") {
			t.Error("the smuggled request was done")
		}
	}}
}

// guessRows are callers who try tokens.
func guessRows() []hostileRow {
	list := rpcOf("workspace/list", object{})
	return []hostileRow{{name: "token: 3,000 guesses", do: func(t *testing.T, b *besieged) {
		w := b.connect(t, "tcp")
		var text strings.Builder
		for i := range 3_000 {
			text.WriteString(postOf(fmt.Sprintf("guess-%d", i), list))
		}
		go w.say(text.String())
		for range 3_000 {
			if status, body := w.answer(); status != 200 || !strings.Contains(body, "unauthorized") {
				t.Fatalf("got %d %.200s", status, body)
			}
		}
	}}}
}

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

// verbRows send every verb to every path.
func verbRows() []hostileRow {
	paths := []string{"/", "/rpc", "/ws", "/metrics", "/healthz", "/readyz", "/status", "/rpc/", "//rpc", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/rpc?token=" + honestToken, "/debug/pprof/", "*"}
	var rows []hostileRow
	for _, verb := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PRI", "get", "X-" + strings.Repeat("Y", 1000)} {
		rows = append(rows, hostileRow{name: fmt.Sprintf("verb %.10s", verb), do: func(t *testing.T, b *besieged) {
			for _, path := range paths {
				w := b.connect(t, "tcp")
				w.say(verb + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
				if verb == "HEAD" {
					continue // its answer has no body, whatever it announces
				}
				status, body := w.answer()
				if status >= 500 || strings.Contains(body, "root:") {
					t.Errorf("%s got %d: %.200s", path, status, body)
				}
				if status == http.StatusOK && verb != "GET" && verb != "OPTIONS" && !strings.Contains(body, "unauthorized") && !strings.Contains(body, "parse_error") {
					t.Errorf("%s is answered: %.200s", path, body)
				}
			}
		}})
	}
	return rows
}

// httpRows are HTTP that is not.
func httpRows() []hostileRow {
	const head = "POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + readToken + "\r\nContent-Type: application/json\r\n"
	list := rpcOf("workspace/list", object{})
	length := fmt.Sprintf("Content-Length: %d\r\n", len(list))
	smuggled := postOf(honestToken, rpcOf("workspace/create", object{"id": "smuggled", "name": "x"}))
	return []hostileRow{
		sends("chunk of 2 GB that does not come", head+"Transfer-Encoding: chunked\r\n\r\n7fffffff\r\nx", 200, 400),
		sends("chunk extensions without end", head+"Transfer-Encoding: chunked\r\n\r\n1;"+strings.Repeat("x", 100_000)+"\r\n", 200, 400),
		sends("chunks of one byte", head+"Transfer-Encoding: chunked\r\n\r\n"+strings.Repeat("1\r\n \r\n", 100_000)+"0\r\n\r\n", 200, 0),
		sends("trailers without end", head+"Transfer-Encoding: chunked\r\n\r\n0\r\n"+strings.Repeat("X: y\r\n", 100_000), 200, 400, 0),
		smuggles("smuggling by length and chunks", head+fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", len(smuggled))),
		smuggles("smuggling by two lengths", head+"Content-Length: 0\r\nContent-Length: 5\r\n\r\n"),
		smuggles("smuggling by a list of lengths", head+"Content-Length: 0, 5\r\n\r\n"),
		smuggles("smuggling by a coding in disguise", head+"Content-Length: 4\r\nTransfer-Encoding : chunked\r\n\r\n"),
		smuggles("smuggling by a coding of two", head+"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
		sends("length of 1 TB", head+"Content-Length: 1099511627776\r\n\r\n{", 200, 400, 0),
		sends("header of 1 MB", head+"X: "+strings.Repeat("x", 1<<20)+"\r\n\r\n", 431, 0),
		sends("100,000 headers", head+strings.Repeat("X: y\r\n", 100_000)+"\r\n", 431, 0),
		sends("TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"+strings.Repeat("\x00", 500), 400, 0),
		sends("random bytes", strings.Repeat("\xff\x00\x80\r\n\r\n", 10_000), 400, 0),
		sends("request line of 1 MB", "GET /"+strings.Repeat("x", 1<<20)+" HTTP/1.1\r\n\r\n", 414, 431, 400, 0),
		sends("100-continue without a body", head+"Expect: 100-continue\r\n"+length+"\r\n", 100, 200, 400),
		sends("upgrade to another protocol", head+"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"+length+"\r\n"+list, 200),
		{name: "a name that points here", do: func(t *testing.T, b *besieged) { // a page's, by DNS
			w := b.connect(t, "tcp")
			w.say(strings.Replace(postOf(honestToken, list), "localhost", "evil.example", 1))
			if status, body := w.answer(); status != http.StatusForbidden {
				t.Errorf("got %d: %.200s", status, body)
			}
		}},
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
		{name: "hangs up before answers", do: func(t *testing.T, b *besieged) {
			for range 200 {
				w := b.connect(t, "tcp")
				w.say(postOf(honestToken, rpcOf("manifest/verify", object{})))
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

// authRows are callers who say that they are somebody.
func authRows() []hostileRow {
	list := rpcOf("workspace/list", object{})
	refused := func(name, headers string) hostileRow {
		return hostileRow{name: "token: " + name, do: func(t *testing.T, b *besieged) {
			for _, network := range []string{"tcp", "unix"} {
				w := b.connect(t, network)
				w.say(fmt.Sprintf("POST /rpc HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", headers, len(list), list))
				if status, body := w.answer(); status < 400 && !strings.Contains(body, `"code":"unauthorized"`) {
					t.Errorf("over %s: %d %.200s", network, status, body)
				}
			}
		}}
	}
	rows := []hostileRow{
		refused("none", ""),
		refused("with more behind", "Authorization: Bearer "+honestToken+"x\r\n"),
		refused("in capitals", "Authorization: Bearer "+strings.ToUpper(honestToken)+"\r\n"),
		refused("in a cookie", "Cookie: token="+honestToken+"; Authorization=Bearer "+honestToken+"\r\n"),
		refused("of a proxy", "Proxy-Authorization: Bearer "+honestToken+"\r\nX-Forwarded-For: 127.0.0.1\r\n"),
		refused("behind a wrong one", "Authorization: Bearer wrong\r\nAuthorization: Bearer "+honestToken+"\r\n"),
		refused("of 10 KB", "Authorization: Bearer "+strings.Repeat("x", 10_000)+"\r\n"),
		refused("as a subprotocol without its prefix", "Sec-WebSocket-Protocol: "+honestToken+"\r\n"),
		sends("token: in the address", "GET /ws?token="+honestToken+"&access_token="+honestToken+" HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", 401),
	}
	return append(rows, hostileRow{name: "token: 3,000 guesses", do: func(t *testing.T, b *besieged) {
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
	}}, hostileRow{name: "token: 500 connections of guesses", do: func(t *testing.T, b *besieged) {
		for i := range 500 {
			b.connect(t, "tcp").say(postOf(fmt.Sprintf("guess-%d", i), list))
		}
		b.works(t)
	}})
}

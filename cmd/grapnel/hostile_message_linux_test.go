package main

import (
	"encoding/binary"
	"fmt"
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

// frame reads a frame; the opcode 0 is a connection that has ended.
func (w *wire) frame() (opcode byte, payload string) {
	head := make([]byte, 2)
	if n, _ := readFull(w, head); n < 2 {
		return 0, ""
	}
	length := uint64(head[1] & 0x7f)
	switch length {
	case 126:
		more := make([]byte, 2)
		_, _ = readFull(w, more)
		length = uint64(binary.BigEndian.Uint16(more))
	case 127:
		more := make([]byte, 8)
		_, _ = readFull(w, more)
		length = binary.BigEndian.Uint64(more)
	}
	text := make([]byte, length)
	if n, _ := readFull(w, text); n < len(text) {
		return 0, ""
	}
	return head[0] & 0x0f, string(text)
}

func readFull(w *wire, into []byte) (n int, err error) {
	for n < len(into) && err == nil {
		var m int
		m, err = w.r.Read(into[n:])
		n += m
	}
	return n, err
}

// frames makes a row: frames behind a handshake, and whether the connection must end.
func frames(name string, ends bool, text string) hostileRow {
	return hostileRow{name: "WebSocket: " + name, do: func(t *testing.T, b *besieged) {
		w := b.upgraded(t, readToken)
		go w.say(text + textOf(rpcOf("workspace/list", object{})))
		for {
			opcode, payload := w.frame()
			switch {
			case opcode == 0 || opcode == wsClose:
				if !ends {
					t.Errorf("the connection ended: %q", payload)
				}
				return
			case opcode == wsText && strings.Contains(payload, `"workspaces"`):
				if ends {
					t.Error("the connection goes on")
				}
				return
			}
		}
	}}
}

// socketRows are WebSockets that are none.
func socketRows() []hostileRow {
	const last = wsLast
	list := rpcOf("workspace/list", object{})
	handshake := func(name string, change func(string) string, want ...int) hostileRow {
		return sends("WebSocket: "+name, change(upgradeOf(readToken)), want...)
	}
	without := func(header string) func(string) string {
		return func(text string) string {
			at := strings.Index(text, header)
			end := strings.Index(text[at:], "\r\n")
			return text[:at] + text[at+end+2:]
		}
	}
	rows := []hostileRow{
		frames("frame without a mask", true, "\x81\x02{}"),
		frames("continuation of nothing", true, frameOf(last, 2, "{}")),
		frames("ping in fragments", true, frameOf(wsPing, 1, "x")),
		frames("ping in the middle of a message", false, frameOf(wsText, 1, "{")+frameOf(last|wsPing, 1, "x")+frameOf(last, 1, "}")),
		frames("30,000 pings", false, strings.Repeat(frameOf(last|wsPing, 1, "x"), 30_000)),
		frames("30,000 empty fragments", false, frameOf(wsText, 2, "{}")+strings.Repeat(frameOf(0, 0, ""), 30_000)+frameOf(last, 0, "")),
		frames("fragments without end", true, frameOf(wsText, 1, "{")+strings.Repeat(frameOf(0, 1<<16, strings.Repeat(" ", 1<<16)), 40)),
		frames("frame of 2^63 bytes", true, frameOf(last|wsText, -1<<63, "")),
		frames("not UTF-8", false, frameOf(last|wsText, 4, "\"\xff\xfe\"")),
		frames("close, and goes on", true, frameOf(last|wsClose, 2, "\x03\xe8")+strings.Repeat(textOf(list), 1_000)),
		frames("a second handshake", true, upgradeOf(readToken)),
		frames("packed although nobody agreed", true, frameOf(last|wsText|0x40, 10, "\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa")),
		handshake("no upgrade", without("Upgrade: "), 426),
		handshake("of a page", func(s string) string {
			return strings.Replace(s, "\r\n\r\n", "\r\nOrigin: http://evil.example\r\n\r\n", 1)
		}, 403),
		{name: "WebSocket: bomb of deflate is not agreed to", do: func(t *testing.T, b *besieged) {
			w := b.connect(t, "tcp")
			w.say(strings.Replace(upgradeOf(readToken), "\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n", 1))
			resp, err := http.ReadResponse(w.r, nil) //nolint:bodyclose // it has none
			if err != nil || resp.Header.Get("Sec-WebSocket-Extensions") != "" {
				t.Errorf("got %v, %v", resp, err)
			}
		}},
	}
	return rows
}

// messages makes a row: a message by POST and by WebSocket, and the codes of its
// responses; none for a message that is not answered.
func messages(name, text string, want ...string) hostileRow {
	return hostileRow{name: "JSON-RPC: " + name, do: func(t *testing.T, b *besieged) {
		check := func(by string, got []reply) {
			codes := make([]string, len(got))
			for i := range got {
				codes[i] = got[i].code()
			}
			if strings.Join(codes, " ") != strings.Join(want, " ") {
				t.Errorf("by %s: got %.300v, want %v", by, codes, want)
			}
		}
		check("POST", b.post(t, readToken, text))
		w := b.upgraded(t, readToken)
		w.say(textOf(text))
		if len(want) == 0 {
			return
		}
		_, payload := w.frame()
		check("WebSocket", repliesOf(t, payload))
	}}
}

// messageRows are messages that are not JSON-RPC, or too much of it.
func messageRows() []hostileRow {
	const ok, bad, parse, invalid = "ok", "invalid_request", "parse_error", "invalid_params"
	list := rpcOf("workspace/list", object{})
	note := `{"jsonrpc":"2.0","method":"workspace/list"}`
	with := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"workspace/list"}` }
	params := func(text string) string { return strings.Replace(note, "}", `,"id":1,"params":`+text+"}", 1) }
	batch := func(n int, of string) string { return "[" + strings.Repeat(of+",", n-1) + of + "]" }
	fifty := strings.Fields(strings.Repeat(ok+" ", 50))
	var names strings.Builder
	for i := range 150_000 {
		fmt.Fprintf(&names, `"n%d":1,`, i)
	}
	rows := []hostileRow{
		messages("blanks", strings.Repeat(" ", 2<<20-1), parse),
		messages("batch of empty batches", batch(10, "[]"), strings.Fields(strings.Repeat(bad+" ", 10))...),
		messages("batch of a million", batch(1_000_000, "1"), bad),
		messages("brackets, 100,000 deep", strings.Repeat("[", 100_000), bad),
		messages("objects, 100,000 deep", strings.Repeat(`{"a":`, 100_000), bad),
		messages("id: beyond all numbers", with("1e999999"), ok),
		messages("id: 1 MB", with(`"`+strings.Repeat("x", 1<<20)+`"`), bad),
		messages("id: number of 1 MB", with(strings.Repeat("9", 1<<20)), bad),
		messages("the same id 50 times", batch(50, list), fifty...),
		messages("method: 1 MB", strings.Replace(list, "workspace/list", strings.Repeat("x", 1<<20), 1), "unknown_method"),
		messages("params: the same name in another spelling", params(`{"actor":"reader","\u0061ctor":"honest"}`), invalid),
		messages("params: 150,000 names", params("{"+names.String()+`"z":1}`), invalid),
		messages("params: number of 1 MB", params(`{"actor":`+strings.Repeat("9", 1<<20)+"}"), invalid),
	}
	return append(rows, loadRows(list, note)...)
}

// loadRows are messages of which there are many.
func loadRows(list, note string) []hostileRow {
	return []hostileRow{
		{name: "JSON-RPC: many notifications", do: func(t *testing.T, b *besieged) {
			w := b.upgraded(t, readToken)
			go w.say(strings.Repeat(textOf(strings.Repeat(" ", 100)+note), rounds(20_000, 2_000)) + textOf(list))
			if opcode, payload := w.frame(); opcode != wsText {
				t.Errorf("the connection ended: %q", payload)
			}
		}},
		{name: "JSON-RPC: 50 messages of 2 MB at once", do: func(t *testing.T, b *besieged) {
			for range 50 {
				text := postOf(readToken, strings.Repeat(" ", 2<<20-len(list)-10)+list)
				go b.connect(t, "tcp").say(text)
			}
			b.works(t)
		}},
		{name: "JSON-RPC: 50 messages of 2 MB that never end", do: func(t *testing.T, b *besieged) {
			for range 50 {
				text := postOf(readToken, strings.Repeat(" ", 2<<20-len(list)-10)+list)
				go b.connect(t, "tcp").say(text[:len(text)-1])
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
		{name: "JSON-RPC: a turn of 100 KB is not kept", do: func(t *testing.T, b *besieged) {
			where := object{"workspace_id": "rival", "thread_id": "t", "turn_id": "large", "session_id": "s", "metadata": object{"x": strings.Repeat("x", 100_000)}}
			for method, params := range map[string]object{
				"turn/begin": {"turn": where}, "turn/compile": {"turn": where}, "session/start": {"context": where}, "session/resume": {"context": where},
				"session/end": {"context": where}, "phase/dispatch": {"context": where, "phase": "turn.pre_policy"},
			} {
				if r := b.post(t, tenantToken, rpcOf(method, params))[0]; r.code() != "too_large" {
					t.Errorf("%s gets %s", method, r.code())
				}
			}
		}, database: true},
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
		{name: "JSON-RPC: 30 checks of the log at once", do: func(t *testing.T, b *besieged) {
			verify := rpcOf("manifest/verify", object{"workspace_id": "acme"})
			for range 30 {
				b.connect(t, "tcp").say(postOf(readToken, "["+strings.Repeat(verify+",", 9)+verify+"]"))
			}
			b.works(t)
		}, database: true},
	}
}

package main

import (
	"encoding/binary"
	"encoding/json"
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
		frames("reserved bits", true, frameOf(last|wsText|0x40, 2, "{}")),
		frames("unknown kind of frame", true, frameOf(last|0x3, 2, "{}")),
		frames("unknown kind of control frame", true, frameOf(last|0xB, 2, "{}")),
		frames("continuation of nothing", true, frameOf(last, 2, "{}")),
		frames("message within a message", true, frameOf(wsText, 1, "{")+frameOf(last|wsText, 1, "}")),
		frames("ping in fragments", true, frameOf(wsPing, 1, "x")),
		frames("ping of 1,000 bytes", true, frameOf(last|wsPing, 1000, strings.Repeat("x", 1000))),
		frames("ping in the middle of a message", false, frameOf(wsText, 1, "{")+frameOf(last|wsPing, 1, "x")+frameOf(last, 1, "}")),
		frames("30,000 pings", false, strings.Repeat(frameOf(last|wsPing, 1, "x"), 30_000)),
		frames("30,000 pongs that nobody asked for", false, strings.Repeat(frameOf(last|0xA, 1, "x"), 30_000)),
		frames("30,000 empty fragments", false, frameOf(wsText, 2, "{}")+strings.Repeat(frameOf(0, 0, ""), 30_000)+frameOf(last, 0, "")),
		frames("fragments without end", true, frameOf(wsText, 1, "{")+strings.Repeat(frameOf(0, 1<<16, strings.Repeat(" ", 1<<16)), 40)),
		frames("frame of 2^63 bytes", true, frameOf(last|wsText, -1<<63, "")),
		frames("message of 3 MB", true, frameOf(last|wsText, 3<<20, strings.Repeat(" ", 3<<20))),
		frames("binary", true, frameOf(last|wsBinary, 2, "{}")),
		frames("not UTF-8", false, frameOf(last|wsText, 4, "\"\xff\xfe\"")),
		frames("empty message", false, frameOf(last|wsText, 0, "")),
		frames("close with a code of one byte", true, frameOf(last|wsClose, 1, "x")),
		frames("close with a code that is none", true, frameOf(last|wsClose, 2, "\x00\x01")),
		frames("close with a reason that is no text", true, frameOf(last|wsClose, 4, "\x03\xe8\xff\xfe")),
		frames("close, and goes on", true, frameOf(last|wsClose, 2, "\x03\xe8")+strings.Repeat(textOf(list), 1_000)),
		frames("a second handshake", true, upgradeOf(readToken)),
		frames("HTTP behind the handshake", true, postOf(honestToken, list)),
		frames("packed although nobody agreed", true, frameOf(last|wsText|0x40, 10, "\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa")),
		handshake("no key", without("Sec-WebSocket-Key"), 400),
		handshake("no version", without("Sec-WebSocket-Version"), 400),
		handshake("no upgrade", without("Upgrade: "), 426),
		handshake("version of the past", func(s string) string { return strings.Replace(s, "Version: 13", "Version: 8", 1) }, 400),
		handshake("short key", func(s string) string { return strings.Replace(s, "dGhlIHNhbXBsZSBub25jZQ==", "x", 1) }, 400),
		handshake("two keys", func(s string) string { return strings.Replace(s, "\r\n\r\n", "\r\nSec-WebSocket-Key: x\r\n\r\n", 1) }, 400),
		handshake("by POST", func(s string) string { return strings.Replace(s, "GET", "POST", 1) }, 405, 400),
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
	return append(rows, watchRows()...)
}

// watchRows abuse notifications.
func watchRows() []hostileRow {
	return []hostileRow{
		{name: "WebSocket: many watches", do: func(t *testing.T, b *besieged) {
			w := b.upgraded(t, readToken)
			watch := textOf(rpcOf("workspace/watch", object{"workspace_id": "acme", "since_seq": 0}))
			n := rounds(2_000, 200)
			go w.say(strings.Repeat(watch, n))
			for range n {
				opcode, payload := w.frame()
				for strings.Contains(payload, `"method"`) {
					opcode, payload = w.frame()
				}
				if opcode != wsText {
					return // it is closed as one that reads too slowly
				}
			}
		}, database: true},
		{name: "WebSocket: watches of others' workspaces", do: func(t *testing.T, b *besieged) {
			w := b.upgraded(t, tenantToken)
			for i := range 500 {
				w.say(textOf(rpcOf("workspace/watch", object{"workspace_id": []string{"acme", "*", "", fmt.Sprint("none-", i)}[i%4]})))
				if _, payload := w.frame(); !strings.Contains(payload, `"error"`) {
					t.Fatalf("it watches: %.200s", payload)
				}
			}
		}, database: true},
		{name: "WebSocket: watchers who do not read", do: func(t *testing.T, b *besieged) {
			for range 50 {
				b.upgraded(t, readToken).say(textOf(rpcOf("workspace/watch", object{"workspace_id": "acme"})))
			}
			for i := range rounds(100, 20) {
				b.honest.ask(t, "thread/create", object{"workspace_id": "acme", "title": strings.Repeat("💣", 256), "id": fmt.Sprint("w-", i)})
			}
			for i := range rounds(100, 20) {
				b.honest.ask(t, "thread/delete", object{"workspace_id": "acme", "thread_id": fmt.Sprint("w-", i)})
			}
		}, database: true},
		{name: "WebSocket: 300 connections", do: func(t *testing.T, b *besieged) {
			for range 300 {
				b.upgraded(t, readToken)
			}
			b.works(t)
		}},
		{name: "WebSocket: hangs up 200 times in the middle of calls", do: func(t *testing.T, b *besieged) {
			for range 200 {
				w := b.upgraded(t, readToken)
				w.say(strings.Repeat(textOf(bigBatch(5)), 3))
				_ = w.Close()
			}
		}, database: true},
	}
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
		messages("nothing", "", parse),
		messages("blanks", strings.Repeat(" ", 2<<20-1), parse),
		messages("empty batch", "[]", bad),
		messages("batch of empty batches", batch(10, "[]"), strings.Fields(strings.Repeat(bad+" ", 10))...),
		messages("batch in a batch", "[["+list+"]]", bad),
		messages("batch of numbers", "[1,2,null,\"x\"]", bad, bad, bad, bad),
		messages("batch of notifications", batch(50, note)),
		messages("batch of 50", batch(50, list), fifty...),
		messages("batch of 51", batch(51, list), bad),
		messages("batch of a million", batch(1_000_000, "1"), bad),
		messages("batch without end", "["+list, parse),
		messages("brackets, 100,000 deep", strings.Repeat("[", 100_000), bad),
		messages("objects, 100,000 deep", strings.Repeat(`{"a":`, 100_000), bad),
		messages("params, 40 deep", params(strings.Repeat("[", 40)+strings.Repeat("]", 40)), bad),
		messages("id: true", with("true"), bad),
		messages("id: object", with("{}"), bad),
		messages("id: list", with("[1]"), bad),
		messages("id: null", with("null"), ok),
		messages("id: fraction", with("1.5"), ok),
		messages("id: beyond all numbers", with("1e999999"), ok),
		messages("id: 1 MB", with(`"`+strings.Repeat("x", 1<<20)+`"`), bad),
		messages("id: number of 1 MB", with(strings.Repeat("9", 1<<20)), bad),
		messages("id: control characters", with(`"\u0001\u001b"`), ok),
		messages("id: half a character", with(`"\ud800"`), bad),
		messages("id twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"workspace/list"}`, bad),
		messages("the same id 50 times", batch(50, list), fifty...),
		messages("method twice", `{"jsonrpc":"2.0","id":1,"method":"workspace/list","method":"status"}`, bad),
		messages("method: 1 MB", strings.Replace(list, "workspace/list", strings.Repeat("x", 1<<20), 1), "unknown_method"),
		messages("method: number", strings.Replace(list, `"workspace/list"`, "7", 1), bad),
		messages("method: a path", strings.Replace(list, "workspace/list", "../rpc.discover", 1), "unknown_method"),
		messages("another version", strings.Replace(list, "2.0", "1.0", 1), bad),
		messages("a member of its own", strings.Replace(list, `"id"`, `"admin":true,"id"`, 1), bad),
		messages("params: list", params("[1,2]"), invalid),
		messages("params: text", params(`"x"`), bad),
		messages("params: twice the same name", params(`{"actor":"reader","actor":"honest"}`), invalid),
		messages("params: the same name in another spelling", params(`{"actor":"reader","\u0061ctor":"honest"}`), invalid),
		messages("params: NUL", params(`{"actor":"\u0000"}`), invalid),
		messages("params: half a character", params(`{"actor":"\ud800"}`), invalid),
		messages("params: 150,000 names", params("{"+names.String()+`"z":1}`), invalid),
		messages("params: number of 1 MB", params(`{"actor":`+strings.Repeat("9", 1<<20)+"}"), invalid),
		messages("not UTF-8", params("{\"actor\":\"\xff\"}"), parse),
		messages("byte order mark", "\xef\xbb\xbf"+list, parse),
		messages("two messages", list+list, parse),
		messages("a comment", list+"//", parse),
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

// keptRows fill what the gateway keeps for clients.
func keptRows() []hostileRow {
	const why = "it sends 1.2 GB"
	return []hostileRow{
		{name: "JSON-RPC: 200 kept turns of 2 MB", do: func(t *testing.T, b *besieged) {
			where := object{"workspace_id": "rival", "thread_id": "t", "metadata": object{"x": strings.Repeat("x", 2_000_000)}}
			for i := range 200 {
				where["turn_id"] = fmt.Sprint("large-", i)
				if code := b.post(t, tenantToken, rpcOf("turn/begin", object{"turn": where}))[0].code(); code != "ok" && code != "too_large" && code != "unavailable" {
					t.Fatalf("turn %d gets %s", i, code)
				}
			}
		}, long: why},
		{name: "JSON-RPC: 200 kept turns with a text of 2 MB", do: func(t *testing.T, b *besieged) {
			where := object{"workspace_id": "rival", "thread_id": "t"}
			for i := range 200 {
				where["turn_id"] = fmt.Sprint("text-", i)
				r := b.post(t, tenantToken, rpcOf("turn/begin", object{"turn": where}))[0]
				var begun struct {
					Handle string `json:"handle"`
				}
				if r.code() == "unavailable" {
					break
				}
				if err := json.Unmarshal(r.Result, &begun); err != nil {
					t.Fatalf("turn %d: %s, %v", i, r.code(), err)
				}
				b.post(t, tenantToken, rpcOf("turn/compile", object{"handle": begun.Handle, "input": object{"user_text": strings.Repeat("x", 2_000_000)}}))
			}
		}, long: why},
		{name: "JSON-RPC: 200 sessions of 2 MB", do: func(t *testing.T, b *besieged) {
			where := object{"workspace_id": "rival", "metadata": object{"x": strings.Repeat("x", 2_000_000)}}
			for i := range 200 {
				where["session_id"] = fmt.Sprint("large-", i)
				if code := b.post(t, tenantToken, rpcOf("session/start", object{"context": where}))[0].code(); code == "internal" {
					t.Fatalf("session %d gets %s", i, code)
				}
			}
		}, long: why},
	}
}

package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzBatch sends messages through a connection, from the text to the queue of its
// writer: each request that wants a response has one, in its order and with its id,
// no answer is longer than it may be, and all memory is given back.
func FuzzBatch(f *testing.F) {
	const list = `{"jsonrpc":"2.0","id":1,"method":"test/who"}`
	big := func(n int) string {
		return `{"jsonrpc":"2.0","id":"b","method":"test/big","params":{"text":"","count":` + itoa(n) + `}}`
	}
	for _, seed := range []string{
		list, "[]", "[[]]", "[1]", "[" + list + "]", batchOf(50, list), batchOf(51, list), "[" + list, "", " ", "\xef\xbb\xbf" + list, list + list,
		"[" + strings.Join([]string{big(3000), big(3000), list, big(1)}, ",") + "]", big(5000), big(-1), batchOf(5, big(60_000)),
		`{"jsonrpc":"2.0","method":"test/who"}`, batchOf(50, `{"jsonrpc":"2.0","method":"test/who"}`),
		`[{"jsonrpc":"2.0","id":null,"method":"test/fail"},{"jsonrpc":"2.0","id":1.5,"method":"test/panic"},{"jsonrpc":"2.0","id":"x","method":"test/conflict"}]`,
		`{"jsonrpc":"2.0","id":` + strings.Repeat("9", 2000) + `,"method":"test/who"}`, `{"jsonrpc":"2.0","id":"\ud800","method":"test/who"}`,
		`{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"text":"\u0000"}}`, `{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"text":"x","text":"y"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"text":"` + strings.Repeat("é", 3000) + `","scope":{"id":"x"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"test/admin"}`, strings.Repeat("[", 100), strings.Repeat(`{"a":`, 100), "\xff",
	} {
		f.Add([]byte(seed))
	}
	limits := Limits{Answer: 4096, Body: 32 << 10, Memory: 512 << 10, Admission: time.Millisecond}
	h := &hooks{}
	methods := slices.DeleteFunc(h.methods(), func(m Method) bool {
		return slices.Contains([]string{"test/hang", "test/wait", "test/watch", "test/big"}, m.Name)
	})
	methods = append(methods, Typed("test/big", NoRight, "Returns up to 100,000 characters.", func(_ context.Context, _ *Caller, p echoed) (string, error) {
		return strings.Repeat("x", min(max(p.Count, 0), 100_000)), nil
	}))
	srv, err := New(Options{Limits: limits, Methods: methods})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { srv.stop(ErrClosed) })
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > limits.Body {
			return
		}
		c := newConn(srv, nil, nil, true)
		defer c.cancel(ErrClosed)
		l := srv.quota.lease(nil, c.memory, nil)
		a := arrival{ctx: t.Context(), lease: l, from: bytes.NewReader(text), whole: int64(limits.Body), read: time.Hour, deadline: func(time.Time) error { return nil }}
		if got, err := io.ReadAll(&a); err != nil || len(got) != len(text) {
			t.Fatalf("%d of %d bytes: %v", len(got), len(text), err)
		}
		c.slots <- struct{}{}
		c.handle(bytes.Clone(text), l)
		var got []byte
		if it, ok, _ := c.next(); ok {
			got = it.answer
			it.lease.release()
		}
		checkBatch(t, text, got, srv.limits)
		if q := srv.quota; q.process.used != 0 || q.process.arriving.used != 0 || c.memory.used != 0 || c.memory.arriving.used != 0 || len(q.leases) != 0 {
			t.Fatalf("%d bytes were not given back", q.process.used)
		}
	})
}

// checkBatch holds an answer against its message.
func checkBatch(t *testing.T, text, answer []byte, l Limits) {
	t.Helper()
	m, bad := parse(text, l)
	want := []string{"null"}
	if bad == nil {
		want = nil
		for i := range m.requests {
			if r := &m.requests[i]; !r.silent() {
				want = append(want, string(orNull(r.id)))
			}
		}
	}
	if len(want) == 0 {
		if answer != nil {
			t.Fatalf("nobody asked for %s", answer)
		}
		return
	}
	all := []response{{}}
	var err error
	if m.batch {
		err = json.Unmarshal(answer, &all)
	} else {
		err = json.Unmarshal(answer, &all[0])
	}
	if err != nil || len(all) != len(want) {
		t.Fatalf("%d responses, want %d: %v in %s", len(all), len(want), err, answer)
	}
	for i, r := range all {
		if string(orNull(r.ID)) != want[i] || (r.Result == nil) == (r.Error == nil) {
			t.Fatalf("response %d is of %s, want %s: %s", i, r.ID, want[i], answer)
		}
	}
	// Beside the results, a response has an id and perhaps an error.
	if most := 2*l.Answer + len(want)*(maxID+maxError); len(answer) > most {
		t.Fatalf("an answer of %d bytes", len(answer))
	}
}

// orNull is an id as an answer has it.
func orNull(id json.RawMessage) json.RawMessage {
	if id == nil {
		return json.RawMessage("null")
	}
	return id
}

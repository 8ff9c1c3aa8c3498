package rpc

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/coder/websocket"
	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/google/go-cmp/cmp"
)

// wsChannel carries the messages of a client that somebody else wrote.
type wsChannel struct{ ws *websocket.Conn }

var _ channel.Channel = wsChannel{}

func (c wsChannel) Send(text []byte) error {
	return c.ws.Write(context.Background(), websocket.MessageText, text)
}

func (c wsChannel) Recv() ([]byte, error) {
	_, text, err := c.ws.Read(context.Background())
	return text, err
}

func (c wsChannel) Close() error { return c.ws.CloseNow() }

// A client of jrpc2 and this server understand each other.
func TestJrpc2Client(t *testing.T) {
	t.Parallel()

	h := start(t)
	notes := make(chan string, 10)
	c := jrpc2.NewClient(wsChannel{h.dial(t)}, &jrpc2.ClientOptions{OnNotify: func(r *jrpc2.Request) { notes <- r.Method() + r.ParamString() }})
	defer c.Close() //nolint:errcheck // the test is over
	ctx := t.Context()

	var got echoed
	if err := c.CallResult(ctx, "test/echo", echoed{Text: "é"}, &got); err != nil || got.Text != "é" {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err := c.Call(ctx, "test/conflict", nil)
	want := &jrpc2.Error{Code: -32001, Message: "another version", Data: json.RawMessage(`{"actual_version":7,"code":"version_conflict"}`)}
	if diff := cmp.Diff(err, error(want)); diff != "" {
		t.Errorf("error (-got +want):\n%s", diff)
	}
	list, err := c.Batch(ctx, []jrpc2.Spec{{Method: "test/who"}, {Method: "test/who", Notify: true}, {Method: "test/eco"}})
	if err != nil || len(list) != 2 {
		t.Fatalf("got %v, %v", list, err)
	}
	if list[0].ResultString() != `"open"` || list[1].Error().Code != jrpc2.MethodNotFound {
		t.Errorf("got %v and %v", list[0], list[1].Error())
	}
	if err := c.Notify(ctx, "test/watch", nil); err != nil {
		t.Fatal(err)
	}
	await(t, h.hooks.conn, "the connection").Notify("", "test/said", echoed{Text: "x"})
	if got := await(t, notes, "the notification"); got != `test/said{"text":"x"}` {
		t.Errorf("got %s", got)
	}
}

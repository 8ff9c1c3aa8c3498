package oracle

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/rpc"
)

// said is the params of the notification, and of the method test/watch.
type said struct {
	Text string `json:"text"`
}

// newServer returns a server whose methods m and n return their params.
func newServer(t *testing.T, conns chan *rpc.Conn) *rpc.Server {
	t.Helper()
	echo := func(_ context.Context, _ *rpc.Caller, p json.RawMessage) (json.RawMessage, error) {
		if len(p) == 0 {
			return json.RawMessage("null"), nil
		}
		return p, nil
	}
	srv, err := rpc.New(rpc.Options{
		Methods: []rpc.Method{
			rpc.Typed("m", rpc.NoRight, "Returns its params.", echo),
			rpc.Typed("n", rpc.NoRight, "Returns its params.", echo),
			rpc.Typed("test/conflict", rpc.NoRight, "Fails with data.", func(context.Context, *rpc.Caller, struct{}) (bool, error) {
				return false, &rpc.Error{Code: rpc.CodeConflict, Message: "another version", Data: map[string]any{"actual_version": 7}}
			}),
			rpc.Typed("test/watch", rpc.NoRight, "Hands its connection to the test.", func(_ context.Context, c *rpc.Caller, _ struct{}) (bool, error) {
				conns <- c.Conn
				return true, nil
			}),
		},
		Notifications: []rpc.Notification{rpc.TypedNotification[said]("test/said", "Something was said.")},
		Limits:        rpc.Limits{Rate: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

// wsChannel carries the messages of jrpc2's client over a WebSocket.
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

// A client of jrpc2 and the gateway's server understand each other.
func TestJrpc2Client(t *testing.T) {
	t.Parallel()

	conns, notes := make(chan *rpc.Conn, 1), make(chan string, 10)
	srv := httptest.NewServer(newServer(t, conns).Handler())
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(srv.URL, "http")+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := jrpc2.NewClient(wsChannel{ws}, &jrpc2.ClientOptions{OnNotify: func(r *jrpc2.Request) { notes <- r.Method() + r.ParamString() }})
	defer c.Close() //nolint:errcheck // the test is over

	var got said
	if err := c.CallResult(ctx, "m", said{Text: "é"}, &got); err != nil || got.Text != "é" {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = c.Call(ctx, "test/conflict", nil)
	want := &jrpc2.Error{Code: -32001, Message: "another version", Data: json.RawMessage(`{"actual_version":7,"code":"version_conflict"}`)}
	if diff := cmp.Diff(err, error(want)); diff != "" {
		t.Errorf("error (-got +want):\n%s", diff)
	}
	list, err := c.Batch(ctx, []jrpc2.Spec{{Method: "n"}, {Method: "n", Notify: true}, {Method: "test/eco"}})
	if err != nil || len(list) != 2 {
		t.Fatalf("got %v, %v", list, err)
	}
	if list[0].ResultString() != `null` || list[1].Error().Code != jrpc2.MethodNotFound {
		t.Errorf("got %v and %v", list[0], list[1].Error())
	}
	if err := c.Notify(ctx, "test/watch", nil); err != nil {
		t.Fatal(err)
	}
	(<-conns).Notify("", "test/said", said{Text: "x"})
	if got := <-notes; got != `test/said{"text":"x"}` {
		t.Errorf("got %s", got)
	}
}

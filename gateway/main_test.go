package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/internal/cli/client"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// TestMain finds goroutines that are left; those of net/http linger for half a second.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// patience is how long a test waits for something that must happen.
const patience = time.Minute

// served is a gateway that listens on a TCP port and on a unix socket.
type served struct {
	g          *Gateway
	addr, unix string
}

// serve starts a gateway and stops it behind the test.
func serve(tb testing.TB, o Options) *served {
	tb.Helper()
	if o.Tree == nil {
		o.Tree = storetest.Tree(tb, nil)
	}
	g := must(New(o))(tb)
	tcp := must((&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0"))(tb)
	dir := must(os.MkdirTemp("", "gw"))(tb) //nolint:usetesting // names of sockets are short, and those of test folders long
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &served{g, tcp.Addr().String(), filepath.Join(dir, "s")}
	unix := must((&net.ListenConfig{}).Listen(tb.Context(), "unix", s.unix))(tb)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, tcp, unix) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("Serve: %v", err)
		}
	})
	return s
}

func (s *served) client(tb testing.TB) *http.Client {
	tb.Helper()
	transport := &http.Transport{}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// wireErr is an error as clients see it.
type wireErr struct {
	Code    int            `json:"code"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data"`
}

// code is the error's word; empty for none.
func (e *wireErr) code() string {
	if e == nil {
		return ""
	}
	word, _ := e.Data["code"].(string)
	return word
}

// message is a notification.
type message struct {
	Method string
	Params json.RawMessage
}

// caller is a client of a gateway.
type caller struct {
	*client.Client

	url, token string
	http       *http.Client // for what is not a call
	notes      chan message // closed when the connection has ended
}

func (s *served) connect(tb testing.TB, target, token string) *caller {
	tb.Helper()
	c := &caller{url: "http://" + s.addr, token: token, http: s.client(tb), notes: make(chan message, 1<<14)}
	o := client.Options{Token: token}
	if !strings.HasPrefix(target, "http") {
		o.OnNotification = func(method string, params json.RawMessage) { c.notes <- message{method, params} }
	}
	var err error
	if c.Client, err = client.Dial(tb.Context(), target, o); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-c.Done()
		_ = c.Close() // why it ended is known
		close(c.notes)
	}()
	tb.Cleanup(func() {
		_ = c.Close() // the gateway may be gone
		<-ended
	})
	return c
}

// post returns a client that calls by HTTP POST, dial one with a WebSocket connection.
func (s *served) post(tb testing.TB, token string) *caller {
	tb.Helper()
	return s.connect(tb, "http://"+s.addr, token)
}

func (s *served) dial(tb testing.TB, token string) *caller {
	tb.Helper()
	return s.connect(tb, "ws://"+s.addr, token)
}

func (c *caller) call(tb testing.TB, method string, params any) (result json.RawMessage, bad *wireErr) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	err := c.Call(ctx, method, params, &result)
	if e, ok := errors.AsType[*client.Error](err); ok {
		bad = &wireErr{Code: e.Number, Message: e.Message}
		err = json.Unmarshal(e.Data, &bad.Data)
	}
	if err != nil {
		tb.Fatalf("%s: %v", method, err)
	}
	return result, bad
}

// note waits for the next notification but those of documents for trees, which come
// with their other ones.
func (c *caller) note(tb testing.TB) message {
	tb.Helper()
	for {
		m := c.anyNote(tb)
		if m.Method != notifyTree || decoded[TreeChanged](tb, m.Params).AgentsDoc == nil {
			return m
		}
	}
}

// anyNote waits for the next notification.
func (c *caller) anyNote(tb testing.TB) message {
	tb.Helper()
	select {
	case m, ok := <-c.notes:
		if !ok {
			tb.Fatal("the connection has ended")
		}
		return m
	case <-time.After(patience):
		tb.Fatal("no notification")
		return message{}
	}
}

// do calls and decodes the result.
func do[R any](tb testing.TB, c *caller, method string, params any) R {
	tb.Helper()
	raw, bad := c.call(tb, method, params)
	if bad != nil {
		tb.Fatalf("%s: %+v", method, bad)
	}
	return decoded[R](tb, raw)
}

// decoded is a value out of JSON.
func decoded[R any](tb testing.TB, raw json.RawMessage) R {
	tb.Helper()
	var r R
	if err := json.Unmarshal(raw, &r); err != nil {
		tb.Fatalf("%s: %v", raw, err)
	}
	return r
}

// token makes a token out of its own name.
func token(name string, workspaces []string, rights ...rpc.Right) rpc.Token {
	sum := sha256.Sum256([]byte(name))
	return rpc.Token{Name: name, SHA256: hex.EncodeToString(sum[:]), Workspaces: workspaces, Rights: rights}
}

// with returns options with tokens.
func (o Options) with(tokens ...rpc.Token) Options {
	o.Tokens = tokens
	return o
}

// object is params.
type object = map[string]any

// must returns the value of a call. Its error ends the test.
func must[R any](r R, err error) func(testing.TB) R {
	return func(tb testing.TB) R {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return r
	}
}

// workspace makes a workspace in a tree.
func workspace(tb testing.TB, t tree.Store, id string) {
	tb.Helper()
	must(t.CreateWorkspace(tb.Context(), tree.CreateWorkspace{ID: id, Name: id}))(tb)
}

// treeOf is a tree with workspaces.
func treeOf(tb testing.TB, ids ...string) tree.Store {
	tb.Helper()
	model := storetest.Tree(tb, nil)
	for _, id := range ids {
		workspace(tb, model, id)
	}
	return model
}

// described are the schemas of the document that Schema returns.
type described struct {
	Methods map[string]struct {
		Right          rpc.Right
		Params, Result *jsonschema.Schema
	}
	Notifications map[string]struct{ Params *jsonschema.Schema }
}

// schemas are what Schema returns.
var schemas = sync.OnceValues(Schema)

// description returns them.
func description(tb testing.TB) described {
	tb.Helper()
	return decoded[described](tb, must(schemas())(tb))
}

// fits checks JSON against a schema.
func fits(s *jsonschema.Schema, raw json.RawMessage) error {
	if s == nil {
		return errors.New("there is no schema")
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	return resolved.Validate(value)
}

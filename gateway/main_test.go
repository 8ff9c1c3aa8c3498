package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/treetest"
	"github.com/grapnelhq/grapnel/tree"
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
		o.Tree = treetest.NewModel(nil)
	}
	g, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tcp, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "gw") //nolint:usetesting // names of sockets are short, and those of test folders long
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &served{g, tcp.Addr().String(), filepath.Join(dir, "s")}
	unix, err := (&net.ListenConfig{}).Listen(tb.Context(), "unix", s.unix)
	if err != nil {
		tb.Fatal(err)
	}
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

// client returns a client for HTTP over TCP or the unix socket.
func (s *served) client(tb testing.TB, unix bool) *http.Client {
	tb.Helper()
	transport := &http.Transport{}
	if unix {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", s.unix)
		}
	}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// caller calls methods, over whatever there is between.
type caller interface {
	call(tb testing.TB, method string, params any) (json.RawMessage, *wireErr)
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

// message is any message of JSON-RPC.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *wireErr        `json:"error"`
}

// request encodes a call.
func request(tb testing.TB, id int, method string, params any) []byte {
	tb.Helper()
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// poster calls by HTTP POST.
type poster struct {
	url, token string
	client     *http.Client
}

func (s *served) post(tb testing.TB, token string) *poster {
	tb.Helper()
	return &poster{"http://" + s.addr + "/rpc", token, s.client(tb, false)}
}

func (s *served) postUnix(tb testing.TB) *poster {
	tb.Helper()
	return &poster{"http://socket/rpc", "", s.client(tb, true)}
}

func (p *poster) call(tb testing.TB, method string, params any) (json.RawMessage, *wireErr) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, p.url, bytes.NewReader(request(tb, 1, method, params)))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	var m message
	if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
		tb.Fatalf("status %d: %v", resp.StatusCode, err)
	}
	return m.Result, m.Error
}

// socket is a WebSocket connection: answers by id, and what comes by itself.
type socket struct {
	ws    *websocket.Conn
	notes chan message

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
}

// dial connects and reads until the end of the test.
func (s *served) dial(tb testing.TB, token string) *socket {
	tb.Helper()
	o := &websocket.DialOptions{HTTPClient: s.client(tb, false)}
	if token != "" {
		o.Subprotocols = []string{"grapnel.bearer." + token}
	}
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	ws, resp, err := websocket.Dial(ctx, "ws://"+s.addr+"/ws", o)
	if err != nil {
		tb.Fatal(err)
	}
	if resp.Body != nil {
		_ = resp.Body.Close()
	}
	ws.SetReadLimit(64 << 20)
	c := &socket{ws: ws, notes: make(chan message, 1<<14), waiting: map[int]chan message{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.read()
	}()
	tb.Cleanup(func() {
		_ = ws.CloseNow()
		<-ended
	})
	return c
}

// read hands out what comes, until the connection ends.
func (c *socket) read() {
	defer close(c.notes)
	for {
		_, text, err := c.ws.Read(context.Background())
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			panic(err) // the gateway writes JSON
		}
		if m.Method != "" {
			c.notes <- m
			continue
		}
		c.mu.Lock()
		answer := c.waiting[m.ID]
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		answer <- m
	}
}

func (c *socket) call(tb testing.TB, method string, params any) (json.RawMessage, *wireErr) {
	tb.Helper()
	answer := make(chan message, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = answer
	c.mu.Unlock()
	if err := c.ws.Write(tb.Context(), websocket.MessageText, request(tb, id, method, params)); err != nil {
		tb.Fatal(err)
	}
	select {
	case m := <-answer:
		return m.Result, m.Error
	case <-time.After(patience):
		tb.Fatalf("%s: no answer", method)
		return nil, nil
	}
}

// note waits for the next notification but those of documents for trees, which come
// with their other ones.
func (c *socket) note(tb testing.TB) message {
	tb.Helper()
	for {
		m := c.anyNote(tb)
		if m.Method != NotifyTree || decoded[TreeChanged](tb, m.Params).AgentsDoc == nil {
			return m
		}
	}
}

// anyNote waits for the next notification.
func (c *socket) anyNote(tb testing.TB) message {
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
func do[R any](tb testing.TB, c caller, method string, params any) R {
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

// must returns the value of a call that cannot fail.
func must[R any](tb testing.TB) func(R, error) R {
	return func(r R, err error) R {
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
	must[tree.Workspace](tb)(t.CreateWorkspace(tb.Context(), tree.CreateWorkspace{ID: id, Name: id}))
}

// treeOf is a tree with workspaces.
func treeOf(tb testing.TB, ids ...string) *treetest.Model {
	tb.Helper()
	model := treetest.NewModel(nil)
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

// description returns them.
func description(tb testing.TB) described {
	tb.Helper()
	return decoded[described](tb, must[json.RawMessage](tb)(Schema()))
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

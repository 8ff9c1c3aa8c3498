package rpc

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")) // which lasts half a second
}

// patience is how long a test waits for something that must happen.
const patience = time.Minute

// long says that floods run at full length.
func long() bool { return os.Getenv("GRAPNEL_LONG") == "1" }

// harness is a server on real sockets.
type harness struct {
	srv   *Server
	addr  string // of TCP
	unix  string
	conns chan int // what OnConn said
	calls chan called
	hooks *hooks
	stop  context.CancelFunc
	done  chan error // what Serve returned
}

// called is what OnCall said.
type called struct{ method, code string }

// hooks are what the test's methods wait for and tell.
type hooks struct {
	began   chan struct{} // a call of "hang" or "wait" has begun
	release chan struct{} // lets calls of "wait" end
	ended   chan error    // why the context of "hang" ended
	conn    chan *Conn    // the connection that called "watch"
}

// echoed is the params and the result of the method echo.
type echoed struct {
	Text  string `json:"text"`
	Count int    `json:"count,omitempty"`
	Scope *struct {
		ID string `json:"id"`
	} `json:"scope,omitempty"`
}

type none struct{}

// methods are those of all tests.
func (h *hooks) methods() []Method {
	return []Method{
		Typed("test/echo", ReadRight, "Returns its params.", func(_ context.Context, _ *Caller, p echoed) (echoed, error) { return p, nil }),
		Typed("test/who", NoRight, "Returns the caller's name.", func(_ context.Context, c *Caller, _ none) (string, error) {
			if c.Open {
				return "open", nil
			}
			return c.Name, nil
		}),
		Typed("test/conflict", NoRight, "Fails with data.", func(context.Context, *Caller, none) (none, error) {
			return none{}, &Error{Code: CodeConflict, Message: "another version", Data: map[string]any{"actual_version": 7}}
		}),
		Typed("test/fail", NoRight, "Fails with what clients must not see.", func(context.Context, *Caller, none) (none, error) {
			return none{}, errors.New("password=hunter2")
		}),
		Typed("test/panic", NoRight, "Panics.", func(context.Context, *Caller, none) (none, error) { panic("hunter2") }),
		Typed("test/hang", NoRight, "Waits for the end of its context.", func(ctx context.Context, _ *Caller, _ none) (none, error) {
			h.began <- struct{}{}
			<-ctx.Done()
			h.ended <- context.Cause(ctx)
			return none{}, ctx.Err()
		}),
		Typed("test/wait", NoRight, "Waits for the test, whatever its context says.", func(context.Context, *Caller, none) (string, error) {
			h.began <- struct{}{}
			<-h.release
			return "waited", nil
		}),
		Typed("test/watch", NoRight, "Hands its connection to the test.", func(_ context.Context, c *Caller, _ none) (bool, error) {
			h.conn <- c.Conn
			return c.Conn != nil, nil
		}),
		Typed("test/big", NoRight, "Returns so many characters.", func(_ context.Context, _ *Caller, p echoed) (string, error) {
			return strings.Repeat("x", p.Count), nil
		}),
		Typed("test/admin", AdminRight, "Needs a right.", func(context.Context, *Caller, none) (string, error) { return "done", nil }),
	}
}

// start serves on loopback and on a unix socket until the test ends.
func start(t testing.TB, change ...func(*Options)) *harness {
	t.Helper()
	h := &harness{
		conns: make(chan int, 10_000), calls: make(chan called, 100_000), done: make(chan error, 1),
		hooks: &hooks{began: make(chan struct{}, 100), release: make(chan struct{}), ended: make(chan error, 100), conn: make(chan *Conn, 2000)},
	}
	o := Options{
		Methods:       h.hooks.methods(),
		Notifications: []Notification{TypedNotification[echoed]("test/said", "Something was said.")},
		OnConn:        func(open int) { h.conns <- open },
		OnCall:        func(method, code string, _ time.Duration) { h.calls <- called{method, code} },
	}
	for _, f := range change {
		f(&o)
	}
	var err error
	if h.srv, err = New(o); err != nil {
		t.Fatal(err)
	}
	dir := must(os.MkdirTemp("", "rpc"))(t) //nolint:usetesting // the path of a unix socket must be short
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h.unix = filepath.Join(dir, "s")
	tcp, unix := listen(t, "tcp", "127.0.0.1:0"), listen(t, "unix", h.unix)
	h.addr = tcp.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	go func() { h.done <- h.srv.Serve(ctx, h.srv.Handler(), tcp, unix) }()
	t.Cleanup(func() {
		cancel()
		_ = await(t, h.done, "the end of Serve") // tests that care look before
	})
	return h
}

func listen(t testing.TB, network, addr string) net.Listener {
	t.Helper()
	return must((&net.ListenConfig{}).Listen(t.Context(), network, addr))(t)
}

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

// await receives from a channel, or fails the test.
func await[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// awaitOpen waits until so many connections are open.
func (h *harness) awaitOpen(t testing.TB, n int) {
	t.Helper()
	for await(t, h.conns, "connections to open or close") != n {
	}
}

// ended waits for what Serve returns, and leaves it for the cleanup.
func (h *harness) ended(t testing.TB) error {
	t.Helper()
	err := await(t, h.done, "the end of Serve")
	h.done <- err
	return err
}

// client makes an HTTP client of its own, which the test's end closes.
func client(t testing.TB) *http.Client {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// post sends a POST and returns status and body. Change may change the request.
func (h *harness) post(t testing.TB, body string, change ...func(*http.Request)) (int, string) {
	t.Helper()
	req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+h.addr+"/rpc", strings.NewReader(body)))(t)
	req.Header.Set("Content-Type", "application/json")
	for _, f := range change {
		f(req)
	}
	resp, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text := must(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, string(text)
}

// dial opens a WebSocket connection.
func (h *harness) dial(t testing.TB, change ...func(*websocket.DialOptions)) *websocket.Conn {
	t.Helper()
	ws, _, err := h.tryDial(t, change...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

// tryDial is dial with the answer; its body is the error object of a refusal.
func (h *harness) tryDial(t testing.TB, change ...func(*websocket.DialOptions)) (*websocket.Conn, string, error) {
	t.Helper()
	o := &websocket.DialOptions{HTTPClient: client(t), HTTPHeader: http.Header{}}
	for _, f := range change {
		f(o)
	}
	//nolint:bodyclose // Dial has closed it
	ws, resp, err := websocket.Dial(t.Context(), "ws://"+h.addr+"/ws", o)
	text := ""
	if resp != nil && resp.Body != nil {
		body, _ := io.ReadAll(resp.Body)
		text = http.StatusText(resp.StatusCode) + " " + string(body)
	}
	if err == nil {
		ws.SetReadLimit(64 << 20)
	}
	return ws, text, err
}

// say sends a text frame.
func say(t testing.TB, ws *websocket.Conn, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := ws.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// hear receives a text frame.
func hear(t testing.TB, ws *websocket.Conn) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, text, err := ws.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// hearClose reads until the connection is closed, and returns how.
func hearClose(t testing.TB, ws *websocket.Conn) websocket.CloseError {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		_, _, err := ws.Read(ctx)
		if ce, ok := errors.AsType[websocket.CloseError](err); ok {
			return ce
		}
		if err != nil {
			t.Fatalf("the connection ended without a close frame: %v", err)
		}
	}
}

// rawSocket opens a WebSocket connection whose other end is only a socket: nobody
// reads it, and nobody answers pings.
func (h *harness) rawSocket(t testing.TB, readBuffer int) net.Conn {
	t.Helper()
	conn := must((&net.Dialer{}).DialContext(t.Context(), "tcp", h.addr))(t)
	t.Cleanup(func() { _ = conn.Close() })
	if tcp, ok := conn.(*net.TCPConn); ok && readBuffer > 0 {
		if err := tcp.SetReadBuffer(readBuffer); err != nil {
			t.Fatal(err)
		}
	}
	must(io.WriteString(conn, upgradeRequest))(t)
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	packed := resp.Header.Get("Sec-WebSocket-Extensions")
	if resp.StatusCode != http.StatusSwitchingProtocols || packed != "" { // which would let bombs in
		t.Fatalf("got the status %s, and the extensions %q", resp.Status, packed)
	}
	return conn
}

// frame is a masked text frame (with a mask of zeros) of which only so many bytes
// of the payload are there.
func frame(length int, payload string) []byte {
	var b bytes.Buffer
	b.Write([]byte{0x81, 0x80 | 127})
	for shift := 56; shift >= 0; shift -= 8 {
		b.WriteByte(byte(length >> shift))
	}
	b.Write([]byte{0, 0, 0, 0})
	b.WriteString(payload)
	return b.Bytes()
}

// sum is the hash of a secret, as tokens have it.
func sum(secret string) string {
	s := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(s[:])
}

// response is a decoded response.
type response struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
}

// summary says what a response is: "ID result" or "ID number code".
func (r response) summary() string {
	if r.Error == nil {
		return string(r.ID) + " " + string(r.Result)
	}
	code, _ := r.Error.Data["code"].(string)
	return string(r.ID) + " " + itoa(r.Error.Code) + " " + code
}

// summaries are those of a message's responses, in order.
func summaries(t testing.TB, text string) []string {
	t.Helper()
	if text == "" {
		return nil
	}
	var list []response
	if !strings.HasPrefix(text, "[") {
		text = "[" + text + "]"
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = r.summary()
	}
	return out
}

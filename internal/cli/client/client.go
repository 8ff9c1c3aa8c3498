// Package client calls a Grapnel gateway: methods over HTTP POST, WebSocket or a unix socket, and notifications over
// the latter two.
//
// Start at [Dial] and [Client.Call]. [NewTree] makes a client a [tree.Store]. The gateway's schema (grapnel schema
// rpc) has the methods, params and results.
//
// It does not reconnect: a lost WebSocket connection ends its [Client]; a client that watches a workspace dials again
// and sends since_seq.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/proc/peer"
)

// ErrLost is wrapped by errors of calls without an answer: whether they took effect is unknown.
var ErrLost = errors.New("client: no answer from the gateway")

// Error is the gateway's refusal of a call.
type Error struct {
	Number int
	// Code is data.code (not_found, version_conflict, …), if any.
	Code    string
	Message string
	// Data is the whole of data, if any.
	Data json.RawMessage
}

// Error implements error.
func (e *Error) Error() string {
	if e.Code == "" {
		return e.Message
	}
	return e.Message + " (" + e.Code + ")"
}

// HasCode reports whether err wraps an *Error with that code.
func HasCode(err error, code string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}

// UnmarshalJSON reads the error object of JSON-RPC.
func (e *Error) UnmarshalJSON(text []byte) error {
	var object struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	*e = Error{Number: object.Code, Message: object.Message, Data: object.Data}
	var data struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(object.Data, &data) == nil { // data may be anything
		e.Code = data.Code
	}
	return nil
}

// Caller is implemented by [Client], and may be by clients that reconnect.
type Caller interface {
	Call(ctx context.Context, method string, params, result any) error
}

var _ Caller = (*Client)(nil)

// Client calls one gateway. It is safe for concurrent use.
type Client struct {
	way    way
	lastID atomic.Uint64
}

type way interface {
	roundTrip(ctx context.Context, id uint64, request []byte) (*answer, error)
	// done is closed when no call can succeed any more; err says why.
	done() <-chan struct{}
	err() error
	close() error
}

// answer is any message from the gateway.
type answer struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`

	// For notifications:
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Call calls a method. Params are encoded as a JSON object, nil for none; the result is decoded into result, unless
// that is nil.
//
// An *[Error] is the gateway's. [ErrLost] is no answer. A context that ends gives its error; over HTTP the gateway
// then cancels the call, over WebSocket the call goes on.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	id := c.lastID.Add(1)
	request, err := encode(struct {
		Version string `json:"jsonrpc"`
		ID      uint64 `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{"2.0", id, method, params})
	if err != nil {
		return fmt.Errorf("client: %s: params: %w", method, err)
	}
	if err := checkText(params); err != nil { // after encoding, which refuses cycles
		return err
	}
	a, err := c.way.roundTrip(ctx, id, request)
	switch {
	case err != nil:
		return fmt.Errorf("client: %s: %w", method, err)
	case a.Error != nil:
		return a.Error
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return fmt.Errorf("client: %s: result: %w", method, err)
	}
	return nil
}

// Done is closed when the client can no longer call.
func (c *Client) Done() <-chan struct{} { return c.way.done() }

// Err says why Done is closed; nil before, and after Close.
func (c *Client) Err() error { return c.way.err() }

// Close ends the connection. Waiting calls get [ErrLost]. It returns when all goroutines of the client have ended; do
// not call it from OnNotification. It is safe to call twice.
func (c *Client) Close() error { return c.way.close() }

func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

func (a *answer) forID(id uint64) bool { return string(a.ID) == strconv.FormatUint(id, 10) }

func (a *answer) noID() bool { return len(a.ID) == 0 || string(a.ID) == "null" }

// checkText refuses params with invalid UTF-8, which encoding/json would repair.
func checkText(params any) error {
	if params == nil || validText(reflect.ValueOf(params)) {
		return nil
	}
	return &Error{
		Number: -32602, Code: "invalid_params", Message: "params: a string is not valid UTF-8",
		Data: json.RawMessage(`{"code":"invalid_params"}`),
	}
}

func validText(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || validText(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			if !validText(field) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return true // base64, or JSON that the gateway checks
		}
		for i := range v.Len() {
			if !validText(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if !validText(it.Key()) || !validText(it.Value()) {
				return false
			}
		}
	default:
	}
	return true
}

// Options configure a connection. The zero value is for a gateway without tokens.
type Options struct {
	// Token is the caller's secret; empty for none.
	Token string
	// OnNotification is called for each notification, in order, on a goroutine of its own. It may call the client,
	// but not close it. Falling behind by 256 ends the connection. Nil drops them. HTTP has none.
	OnNotification func(method string, params json.RawMessage)
	// Prove, if set, is called with each new connection before anything is sent, and may exchange a request of its
	// own. Its error closes the connection, so that a program that is not the gateway gets neither the token nor a
	// call. It is for http, ws and unix, and disables proxies; a certificate proves the other schemes.
	Prove func(ctx context.Context, conn net.Conn) error

	_ struct{}
}

// Dial connects to a gateway:
//
//   - http://HOST:PORT, https://: each call is a POST to /rpc. Dial does not connect yet.
//   - ws://HOST:PORT, wss://: a WebSocket connection to /ws.
//   - unix:PATH: the same over a unix socket. Nothing is sent if the listening program belongs
//     to another user than this one or root.
//
// A path in the URL replaces /rpc or /ws. Redirects are not followed. A refusal of the gateway is an *[Error]. Ctx is
// for dialling only; Close ends the client.
func Dial(ctx context.Context, target string, o Options) (*Client, error) {
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		check := func(ctx context.Context, conn net.Conn) error {
			if err := peer.Check(conn); err != nil || o.Prove == nil {
				return err
			}
			return o.Prove(ctx, conn)
		}
		return newSocket(ctx, "ws://localhost/ws", proven("unix", path, check), o)
	}
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("client: %q: it has no host", target)
	}
	path := "/ws"
	if strings.HasPrefix(u.Scheme, "http") {
		path = "/rpc"
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = path
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if o.Prove != nil {
		if u.Scheme == "https" || u.Scheme == "wss" {
			return nil, fmt.Errorf("client: %q: its certificate proves the gateway, and Prove is for http, ws and unix", target)
		}
		transport = proven("tcp", "", o.Prove)
	}
	switch u.Scheme {
	case "http", "https":
		if o.OnNotification != nil {
			return nil, errors.New("client: there are no notifications over HTTP: a target of ws://HOST:PORT or unix:PATH has them")
		}
		return &Client{way: newPoster(u.String(), o.Token, transport)}, nil
	case "ws", "wss":
		return newSocket(ctx, u.String(), transport, o)
	default:
		return nil, fmt.Errorf("client: %q: a target is http://, https://, ws://, wss:// or unix:PATH", target)
	}
}

// proven makes a transport whose connections are proven before use. They all lead to address, unless that is empty.
func proven(network, address string, prove func(context.Context, net.Conn) error) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, host string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, cmp.Or(address, host))
		if err != nil {
			return nil, err
		}
		if err := prove(ctx, conn); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}}
}

// stay keeps a token from following a redirect: gateways send none.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

const longest = 32 << 20 // bounds an answer in bytes: more than the gateway's bound of 16 MiB

type poster struct {
	url, token string
	http       *http.Client
	ended      chan struct{}
	end        func()
}

var _ way = (*poster)(nil)

func newPoster(url, token string, transport *http.Transport) *poster {
	transport.MaxIdleConnsPerHost = 8
	p := &poster{url: url, token: token, http: &http.Client{Transport: transport, CheckRedirect: stay}, ended: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.ended) })
	return p
}

func (p *poster) done() <-chan struct{} { return p.ended }

func (p *poster) err() error { return nil }

func (p *poster) close() error {
	p.end()
	p.http.CloseIdleConnections()
	return nil
}

func (p *poster) roundTrip(ctx context.Context, id uint64, request []byte) (*answer, error) {
	select {
	case <-p.ended:
		return nil, fmt.Errorf("%w: the client is closed", ErrLost)
	default:
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(request))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return nil, lost(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read, or is not needed
	text, err := io.ReadAll(io.LimitReader(resp.Body, longest+1))
	switch {
	case err != nil:
		return nil, lost(ctx, err)
	case len(text) > longest:
		return nil, lost(ctx, fmt.Errorf("an answer of more than %d bytes", longest))
	}
	a, err := decodeAnswer(text)
	if err != nil || !a.forID(id) && (a.Error == nil || !a.noID()) {
		return nil, lost(ctx, fmt.Errorf("%s, and not the answer of a gateway", resp.Status))
	}
	return a, nil
}

func decodeAnswer(text []byte) (*answer, error) {
	a := &answer{}
	return a, json.Unmarshal(text, a)
}

// lost is the context's error, if that ended.
func lost(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	if errors.Is(err, ErrLost) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

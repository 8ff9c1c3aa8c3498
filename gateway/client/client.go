package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
)

// ErrLost is what calls return, wrapped, when there was no answer: whether they
// have happened, is not known.
var ErrLost = errors.New("client: no answer from the gateway")

// Error is what the gateway answers to a call that it refuses.
type Error struct {
	// Number is JSON-RPC's.
	Number int
	// Code is data.code: not_found, version_conflict, …; empty if there is none.
	Code    string
	Message string
	// Data is the whole of data; nil if there is none.
	Data json.RawMessage
}

// Error implements error.
func (e *Error) Error() string {
	if e.Code == "" {
		return e.Message
	}
	return e.Message + " (" + e.Code + ")"
}

// HasCode reports whether err is, or wraps, an *Error with that code.
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

// Caller is what a [Client] does, so that something else may stand in for it: a
// client that connects again, say.
type Caller interface {
	Call(ctx context.Context, method string, params, result any) error
}

var _ Caller = (*Client)(nil)

// Client calls one gateway. It is safe for concurrent use.
type Client struct {
	way    way
	lastID atomic.Uint64
}

// way is how calls reach the gateway.
type way interface {
	// roundTrip sends a request and returns its answer.
	roundTrip(ctx context.Context, id uint64, request []byte) (*answer, error)
	// done is closed when no call can succeed any more; err says why.
	done() <-chan struct{}
	err() error
	close() error
}

// answer is any message that comes from the gateway.
type answer struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`

	// Of notifications:
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Call calls a method. Params are encoded as JSON and must be an object, or nil
// for none; the result is decoded into what result points at, unless that is nil.
//
// An *[Error] is the gateway's. [ErrLost] is no answer. A context that ends gives
// its error; over HTTP the gateway then gives the call up too, over WebSocket it
// goes on without anybody to hear its answer.
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
	if err := checkText(params); err != nil { // behind the encoding, which ends with what points at itself
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

// Done is closed when the client cannot call any more: its connection is lost, or
// it was closed.
func (c *Client) Done() <-chan struct{} { return c.way.done() }

// Err says why Done is closed; nil before, and behind Close.
func (c *Client) Err() error { return c.way.err() }

// Close ends the connection. Calls that wait get [ErrLost]. It returns when all
// goroutines of the client have ended; it must not be called from OnNotification.
// Closing again does nothing.
func (c *Client) Close() error { return c.way.close() }

// encode writes JSON without the escapes for HTML.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// forID reports whether the answer is that of a request.
func (a *answer) forID(id uint64) bool { return string(a.ID) == strconv.FormatUint(id, 10) }

// noID reports whether the gateway could not tell whose answer it is.
func (a *answer) noID() bool { return len(a.ID) == 0 || string(a.ID) == "null" }

package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"golang.org/x/time/rate"

	"github.com/grapnelhq/grapnel/phases"
)

// answer does what a message asks for and returns the answer; nil where none is
// due. The requests of a batch are done in their order, one after the other, so
// that one may build on those before it. The lease, which holds the text, holds the
// answer instead.
func (s *Server) answer(ctx context.Context, caller *Caller, limit *rate.Limiter, l *lease, text []byte) []byte {
	bad := l.decode(ctx, len(text))
	var m message
	if bad == nil {
		m, bad = parse(text, s.limits)
	}
	if bad != nil {
		s.observe("", bad, s.now())
		return refusal(bad)
	}
	refuse := s.begin() // why nothing further is done
	if refuse == nil {
		defer s.inFlight.Done()
	}
	w := work{Server: s, ctx: context.WithValue(ctx, leaseKey{}, l), caller: caller, limit: limit, lease: l, batch: m.batch, base: l.fixed, refuse: refuse}
	for i := range m.requests {
		w.do(&m.requests[i])
	}
	if w.out.Len() == 0 {
		return nil
	}
	if m.batch {
		w.out.WriteByte(']')
	}
	l.settle(int64(w.out.Len()))
	return w.out.Bytes()
}

// work is a message of which the requests are done.
type work struct {
	*Server

	ctx    context.Context //nolint:containedctx // a work lives as long as the call that made it
	caller *Caller
	limit  *rate.Limiter
	lease  *lease
	batch  bool
	base   int64  // what the message takes, without answers
	refuse *Error // why nothing further is done
	out    bytes.Buffer
}

// do does a request and appends its response.
func (w *work) do(r *request) {
	before := w.out.Len()
	if w.refuse == nil && before > w.limits.Answer {
		w.refuse = Errorf(CodeTooLarge, "the answers before this one fill the batch's: call it by itself")
	}
	separate(&w.out, w.batch)
	begin(&w.out, r.id)
	start := w.out.Len()
	bad := w.call(r)
	if bad != nil {
		w.out.Truncate(start)
		appendError(&w.out, bad)
		if bad.Code == CodeOverloaded {
			w.refuse = bad // the next one would wait in vain as well
		}
	}
	w.out.WriteByte('}')
	if r.silent() {
		w.out.Truncate(before)
	}
	w.lease.settle(w.base + int64(w.out.Len()))
}

// call does one request. It appends the result, or returns an error.
func (w *work) call(r *request) (bad *Error) {
	began := w.now()
	method := w.methods[r.method]
	defer func() {
		name := ""
		if method != nil {
			name = method.Name
		}
		w.observe(name, bad, began)
	}()
	switch {
	case r.bad != nil && r.bad.Code == CodeRequest:
		return r.bad
	case w.refuse != nil:
		return w.refuse
	case w.limit != nil && !w.limit.AllowN(began, 1):
		return tooOften(w.limit)
	case method == nil:
		return Errorf(CodeMethod, "there is no method %q%s", clip(r.method), phases.DidYouMean(clip(r.method), w.names))
	case !w.caller.May(method.Right):
		return Errorf(CodeUnauthorized, "%s needs the right %q, which the token %q does not have", method.Name, method.Right, w.caller.Name)
	case r.bad != nil:
		return r.bad
	}
	if bad := w.lease.expect(w.ctx, callBytes); bad != nil {
		return bad
	}
	if err := w.ctx.Err(); err != nil { // in the middle of a batch, or while it waited
		return cutShort(w.ctx, err)
	}
	return w.invoke(method, r.params)
}

// tooOften is the error for a token that calls too often.
func tooOften(limit *rate.Limiter) *Error {
	e := Errorf(CodeUnavailable, "too many calls: a token may make %d a second", limit.Burst())
	e.Data = map[string]any{"reason": "rate_limit", "retry_after_ms": (time.Second / time.Duration(limit.Burst())).Milliseconds() + 1}
	return e
}

// invoke runs a method and appends its result. What goes wrong in it is logged
// here unless it is the client's to know.
func (w *work) invoke(method *Method, params json.RawMessage) (bad *Error) {
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("a method panicked", slog.String("method", method.Name), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			bad = asError(fmt.Errorf("panic: %v", p))
		}
	}()
	value, err := method.Call(w.ctx, w.caller, params)
	if err == nil {
		err = w.result(value)
	}
	if err == nil {
		return nil
	}
	if w.ctx.Err() != nil {
		return cutShort(w.ctx, err)
	}
	bad = asError(err)
	if bad.Code == CodeInternal || bad.Code == CodeUnavailable {
		w.log.Error("a call failed", slog.String("method", method.Name), slog.String("code", bad.Code), slog.Any("error", err))
	}
	return bad
}

// result appends the result of a call. One that is larger than was expected must
// find memory as well.
func (w *work) result(value any) error {
	w.out.WriteString(`,"result":`)
	start := w.out.Len()
	if err := appendJSON(&w.out, value); err != nil {
		return err
	}
	if n := w.out.Len() - start; n > w.limits.Answer {
		return Errorf(CodeTooLarge, "the answer has %d bytes, and may have %d: ask for less at once", n, w.limits.Answer)
	}
	if need := w.base + int64(w.out.Len()); need > w.lease.held {
		if bad := w.lease.set(w.ctx, need); bad != nil {
			return bad
		}
	}
	return nil
}

// cutShort is the error of a call whose context has ended: the cause, where it is
// meant for the client.
func cutShort(ctx context.Context, err error) *Error {
	if bad, ok := errors.AsType[*Error](context.Cause(ctx)); ok {
		return bad
	}
	return &Error{Code: CodeUnavailable, Message: "the call was cut short", Err: err}
}

// observe tells the observer of a call.
func (s *Server) observe(method string, bad *Error, began time.Time) {
	if s.onCall == nil {
		return
	}
	code := ""
	if bad != nil {
		code = bad.Code
	}
	s.onCall(method, code, s.now().Sub(began))
}

// separate begins or continues a batch's answer.
func separate(out *bytes.Buffer, batch bool) {
	switch {
	case !batch:
	case out.Len() == 0:
		out.WriteByte('[')
	default:
		out.WriteByte(',')
	}
}

// begin begins the response to one request; a nil id is null.
func begin(out *bytes.Buffer, id json.RawMessage) {
	if id == nil {
		id = json.RawMessage("null")
	}
	out.WriteString(`{"jsonrpc":"2.0","id":`)
	out.Write(id)
}

// maxError is how long an error may be: its message may hold what the client sent.
const maxError = 64 << 10

// appendError appends an error.
func appendError(out *bytes.Buffer, bad *Error) {
	out.WriteString(`,"error":`)
	start := out.Len()
	if err := appendJSON(out, bad); err != nil || out.Len()-start > maxError {
		// The data of a method's error does not encode, or is too long: the code is
		// worth more.
		out.Truncate(start)
		_ = appendJSON(out, Errorf(bad.Code, "%s", clip(bad.Message))) // strings always encode
	}
}

// appendJSON appends a value, without the escapes for HTML, which only cost bytes
// here.
func appendJSON(out *bytes.Buffer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the line's end
	return nil
}

// refusal is the answer to a message of which nothing was done.
func refusal(bad *Error) []byte {
	var out bytes.Buffer
	begin(&out, nil)
	appendError(&out, bad)
	out.WriteByte('}')
	return out.Bytes()
}

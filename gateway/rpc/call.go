package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"golang.org/x/time/rate"

	"github.com/grapnelhq/grapnel/phases"
)

// answer does what a message asks for and returns the answer; nil where none is
// due. The requests of a batch are done in their order, one after the other, so
// that one may build on those before it.
func (s *Server) answer(ctx context.Context, caller *Caller, limit *rate.Limiter, text []byte) []byte {
	m, bad := parse(text, s.limits)
	if bad != nil {
		s.observe("", bad, s.now())
		return refusal(bad)
	}
	refuse := s.begin() // why nothing further is done
	if refuse == nil {
		defer s.inFlight.Done()
	}
	var out bytes.Buffer
	for i := range m.requests {
		r := &m.requests[i]
		if out.Len() > s.limits.Answer {
			refuse = Errorf(CodeTooLarge, "the answers before this one fill the batch's: call it by itself")
		}
		result, err := s.call(ctx, caller, limit, r, refuse)
		if r.silent() {
			continue
		}
		separate(&out, m.batch)
		respond(&out, r.id, result, err)
	}
	if out.Len() == 0 {
		return nil
	}
	if m.batch {
		out.WriteByte(']')
	}
	return out.Bytes()
}

// call does one request. It returns the encoded result or an error.
func (s *Server) call(ctx context.Context, caller *Caller, limit *rate.Limiter, r *request, refuse *Error) (result json.RawMessage, bad *Error) {
	began := s.now()
	method := s.methods[r.method]
	defer func() {
		name := ""
		if method != nil {
			name = method.Name
		}
		s.observe(name, bad, began)
	}()
	switch {
	case r.bad != nil && r.bad.Code == CodeRequest:
		return nil, r.bad
	case refuse != nil:
		return nil, refuse
	case ctx.Err() != nil: // in the middle of a batch
		return nil, cutShort(ctx.Err())
	case limit != nil && !limit.AllowN(began, 1):
		return nil, tooOften(limit)
	case method == nil:
		return nil, Errorf(CodeMethod, "there is no method %q%s", clip(r.method), phases.DidYouMean(clip(r.method), s.names))
	case !caller.May(method.Right):
		return nil, Errorf(CodeUnauthorized, "%s needs the right %q, which the token %q does not have", method.Name, method.Right, caller.Name)
	case r.bad != nil:
		return nil, r.bad
	}
	return s.invoke(ctx, caller, method, r.params)
}

// tooOften is the error for a token that calls too often.
func tooOften(limit *rate.Limiter) *Error {
	e := Errorf(CodeUnavailable, "too many calls: a token may make %d a second", limit.Burst())
	e.Data = map[string]any{"reason": "rate_limit", "retry_after_ms": (time.Second / time.Duration(limit.Burst())).Milliseconds() + 1}
	return e
}

// invoke runs a method and encodes its result. What goes wrong in it is logged
// here unless it is the client's to know.
func (s *Server) invoke(ctx context.Context, caller *Caller, method *Method, params json.RawMessage) (result json.RawMessage, bad *Error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a method panicked", slog.String("method", method.Name), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			result, bad = nil, asError(fmt.Errorf("panic: %v", p))
		}
	}()
	value, err := method.Call(ctx, caller, params)
	if err == nil {
		result, err = encode(value)
	}
	if err == nil && len(result) > s.limits.Answer {
		err = Errorf(CodeTooLarge, "the answer has %d bytes, and may have %d: ask for less at once", len(result), s.limits.Answer)
	}
	if err == nil {
		return result, nil
	}
	if ctx.Err() != nil {
		return nil, cutShort(err)
	}
	bad = asError(err)
	if bad.Code == CodeInternal || bad.Code == CodeUnavailable {
		s.log.Error("a call failed", slog.String("method", method.Name), slog.String("code", bad.Code), slog.Any("error", err))
	}
	return nil, bad
}

// cutShort is the error of a call whose context has ended, should anybody hear it.
func cutShort(err error) *Error {
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

// respond writes the response to one request; a nil id is null.
func respond(out *bytes.Buffer, id, result json.RawMessage, bad *Error) {
	if id == nil {
		id = json.RawMessage("null")
	}
	name, body := "result", result
	if bad != nil {
		name = "error"
		var err error
		if body, err = encode(bad); err != nil {
			// The data of a method's error does not encode: the code is worth more.
			body, _ = encode(Errorf(bad.Code, "%s", bad.Message))
		}
	}
	out.Grow(len(`{"jsonrpc":"2.0","id":,"result":}`) + len(id) + len(body))
	out.WriteString(`{"jsonrpc":"2.0","id":`)
	out.Write(id)
	out.WriteString(`,"` + name + `":`)
	out.Write(body)
	out.WriteByte('}')
}

// refusal is the answer to a message of which nothing was done.
func refusal(bad *Error) []byte {
	var out bytes.Buffer
	respond(&out, nil, nil, bad)
	return out.Bytes()
}

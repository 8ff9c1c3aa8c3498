package rpc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
)

// answer runs a message's requests in order and returns the answer, nil if none is due. The lease holds the text, and
// then the answer.
func (s *Server) answer(ctx context.Context, caller *Caller, limit *rate.Limiter, l *lease, text []byte) []byte {
	bad := l.decode(ctx, len(text))
	var m message
	if bad == nil {
		m, bad = parse(text, s.limits)
	}
	if bad != nil {
		s.observe("", bad, s.opts.Now())
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

// work is a message whose requests run.
type work struct {
	*Server

	ctx    context.Context //nolint:containedctx // a work lives as long as the call that made it
	caller *Caller
	limit  *rate.Limiter
	lease  *lease
	batch  bool
	base   int64  // the message's memory, without answers
	refuse *Error // why nothing further is done
	out    bytes.Buffer
}

func (w *work) do(r *request) {
	before := w.out.Len()
	if w.refuse == nil && before > w.limits.Answer {
		w.refuse = Errorf(CodeTooLarge, "the earlier answers of the batch are too large: call it by itself")
	}
	switch {
	case w.batch && before == 0:
		w.out.WriteByte('[')
	case w.batch:
		w.out.WriteByte(',')
	}
	begin(&w.out, r.id)
	start := w.out.Len()
	bad := w.call(r)
	if bad != nil {
		w.out.Truncate(start)
		appendError(&w.out, bad)
		if bad.Code == CodeOverloaded {
			w.refuse = bad // the next one would wait in vain too
		}
	}
	w.out.WriteByte('}')
	if r.silent() {
		w.out.Truncate(before)
	}
	w.lease.settle(w.base + int64(w.out.Len()))
}

func (w *work) call(r *request) (bad *Error) {
	began := w.opts.Now()
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
		return Errorf(CodeMethod, "there is no method %q%s", clip(r.method), suggest.DidYouMean(clip(r.method), w.names))
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

func tooOften(limit *rate.Limiter) *Error {
	e := Errorf(CodeUnavailable, "too many calls: a token may make %d a second", limit.Burst())
	e.Data = map[string]any{"reason": "rate_limit", "retry_after_ms": (time.Second / time.Duration(limit.Burst())).Milliseconds() + 1}
	return e
}

// invoke runs a method and appends its result. Errors that are not the client's are logged here.
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

// cutShort is the error of a call whose context has ended: its cause, if that is for clients.
func cutShort(ctx context.Context, err error) *Error {
	if bad, ok := errors.AsType[*Error](context.Cause(ctx)); ok {
		return bad
	}
	return &Error{Code: CodeUnavailable, Message: "the call was cut short", Err: err}
}

func (s *Server) observe(method string, bad *Error, began time.Time) {
	code := ""
	if bad != nil {
		code = bad.Code
	}
	s.opts.OnCall(method, code, s.opts.Now().Sub(began))
}

func begin(out *bytes.Buffer, id json.RawMessage) {
	if id == nil {
		id = json.RawMessage("null")
	}
	out.WriteString(`{"jsonrpc":"2.0","id":`)
	out.Write(id)
}

const maxError = 64 << 10 // bounds an error's JSON: its message may quote the client

func appendError(out *bytes.Buffer, bad *Error) {
	out.WriteString(`,"error":`)
	start := out.Len()
	if err := appendJSON(out, bad); err != nil || out.Len()-start > maxError {
		// Without the data, which does not encode or is too long.
		out.Truncate(start)
		_ = appendJSON(out, Errorf(bad.Code, "%s", clip(bad.Message))) // strings always encode
	}
}

func appendJSON(out *bytes.Buffer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1)
	return nil
}

func refusal(bad *Error) []byte {
	var out bytes.Buffer
	begin(&out, nil)
	appendError(&out, bad)
	out.WriteByte('}')
	return out.Bytes()
}

const contentType = "application/json"

// servePost answers one message. JSON-RPC errors have the status 200, a message of notifications only 204.
func (s *Server) servePost(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		deny(w, http.StatusMethodNotAllowed, Errorf(CodeRequest, "calls are made with POST"))
		return
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != contentType || r.Header.Get("Content-Encoding") != "" {
		deny(w, http.StatusUnsupportedMediaType, Errorf(CodeRequest, "the Content-Type must be %s, without a Content-Encoding", contentType))
		return
	}
	k, bad := s.authenticate(r)
	ctl := http.NewResponseController(w)
	_ = ctl.SetReadDeadline(time.Now().Add(s.limits.Read)) // a server without deadlines has its own
	var answer []byte
	if bad == nil {
		p := &post{key: k, ctl: ctl}
		p.ctx, p.cancel = context.WithCancelCause(r.Context())
		bad = s.enter(p)
		defer s.exit(p)
		l := s.leaseOf(r, k)
		defer l.release()
		l.drop = p.cut
		var text []byte
		if bad == nil {
			text, bad = s.readBody(p, l, w, r)
		}
		if bad == nil {
			_ = ctl.SetReadDeadline(time.Time{})                                     // it would end the call
			answer = s.answer(p.ctx, callerOf(k), limiterOf(k, isLocal(r)), l, text) //nolint:contextcheck // the post's, made of the request's
		}
		if p.ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
	}
	if bad != nil {
		s.observe("", bad, s.opts.Now())
		answer = refusal(bad)
	}
	_ = ctl.SetWriteDeadline(s.limits.writeBy(len(answer)))
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = w.Write(answer) //nolint:gosec // JSON, and says so; the client is gone, or reads it
}

func (s *Server) leaseOf(r *http.Request, k *key) *lease {
	socket := socketOf(r)
	if socket == nil {
		return s.quota.lease(k, s.quota.connection(), nil)
	}
	return s.quota.lease(k, socket.memory, socket)
}

type post struct {
	key    *key
	ctx    context.Context //nolint:containedctx // it is as long as the request
	cancel context.CancelCauseFunc
	ctl    *http.ResponseController
}

// cut ends a post early: requests that have not begun are refused with the error.
func (p *post) cut(bad *Error) {
	p.cancel(bad)
	_ = p.ctl.SetReadDeadline(time.Unix(1, 0)) // the rest is not read
}

// enter registers a post for SetTokens, unless its token has just changed.
func (s *Server) enter(p *post) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tokens.Load().has(p.key) {
		return revoked()
	}
	s.posts[p] = struct{}{}
	return nil
}

func (s *Server) exit(p *post) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.posts, p)
	p.cancel(nil)
}

type bodyKey struct{}

// WithBody returns a context for a request to [Server.Handler] whose message may have n bytes instead of [Limits.Body].
func WithBody(ctx context.Context, n int64) context.Context {
	return context.WithValue(ctx, bodyKey{}, n)
}

// readBody reserves memory for what arrives, not for the announced length.
func (s *Server) readBody(p *post, l *lease, w http.ResponseWriter, r *http.Request) ([]byte, *Error) {
	whole := int64(s.limits.Body)
	if longer, ok := p.ctx.Value(bodyKey{}).(int64); ok {
		whole = longer
	}
	a := arrival{ctx: p.ctx, lease: l, from: http.MaxBytesReader(w, r.Body, whole), whole: whole, read: s.limits.Read, deadline: p.ctl.SetReadDeadline}
	if r.ContentLength >= 0 {
		a.whole = min(whole, r.ContentLength)
	}
	text, err := io.ReadAll(&a)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, Errorf(CodeTooLarge, "a message may have at most %d bytes", whole)
	}
	if bad, ok := errors.AsType[*Error](cmp.Or(context.Cause(p.ctx), err)); ok {
		return nil, bad
	}
	if err != nil {
		return nil, &Error{Code: CodeParse, Message: "the message did not arrive as a whole", Err: err}
	}
	return text, nil
}

package rpc

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"
)

// contentType is what messages are.
const contentType = "application/json"

// servePost answers one message. Errors of JSON-RPC have the status 200, one that
// is made of notifications only 204.
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
	_ = ctl.SetReadDeadline(time.Now().Add(s.limits.Read)) // a server that cannot has its own
	var answer []byte
	if bad == nil {
		v := newVisit(r.Context(), k, ctl)
		bad = s.enter(v)
		defer s.exit(v)
		l := s.leaseOf(r, k)
		defer l.release()
		l.drop = v.cut
		var text []byte
		if bad == nil {
			text, bad = s.readBody(v, l, w, r)
		}
		if bad == nil {
			_ = ctl.SetReadDeadline(time.Time{})                                     // or the call would end with it
			answer = s.answer(v.ctx, callerOf(k), limiterOf(k, isLocal(r)), l, text) //nolint:contextcheck // that of the visit, made of the request's
		}
		if v.ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
	}
	if bad != nil {
		s.observe("", bad, s.now())
		answer = refusal(bad)
	}
	_ = ctl.SetWriteDeadline(s.limits.writeBy(len(answer)))
	post(w, answer)
}

// leaseOf begins the lease of a request.
func (s *Server) leaseOf(r *http.Request, k *key) *lease {
	socket := socketOf(r)
	if socket == nil {
		return s.quota.lease(k, s.quota.connection(), nil)
	}
	return s.quota.lease(k, socket.memory, socket)
}

// visit is a POST that is under way.
type visit struct {
	key    *key
	ctx    context.Context //nolint:containedctx // a visit is as long as the request
	cancel context.CancelCauseFunc
	ctl    *http.ResponseController
}

func newVisit(ctx context.Context, k *key, ctl *http.ResponseController) *visit {
	v := &visit{key: k, ctl: ctl}
	v.ctx, v.cancel = context.WithCancelCause(ctx)
	return v
}

// cut ends a visit early: what has not begun is refused with the error.
func (v *visit) cut(bad *Error) {
	v.cancel(bad)
	_ = v.ctl.SetReadDeadline(time.Unix(1, 0)) // what has not arrived is not waited for
}

// enter lets SetTokens know of a visit, unless it has just changed the visit's token.
func (s *Server) enter(v *visit) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tokens.Load().has(v.key) {
		return revoked()
	}
	s.visits[v] = struct{}{}
	return nil
}

// exit is the end of a visit.
func (s *Server) exit(v *visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.visits, v)
	v.cancel(nil)
}

// readBody reads a request's body. It grows with what arrives, whatever length the
// client has announced.
func (s *Server) readBody(v *visit, l *lease, w http.ResponseWriter, r *http.Request) ([]byte, *Error) {
	whole := int64(s.limits.Body)
	a := arrival{ctx: v.ctx, lease: l, from: http.MaxBytesReader(w, r.Body, whole), whole: whole, read: s.limits.Read, deadline: v.ctl.SetReadDeadline}
	if r.ContentLength >= 0 {
		a.whole = min(whole, r.ContentLength)
	}
	text, err := io.ReadAll(&a)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, Errorf(CodeTooLarge, "a message may have at most %d bytes", s.limits.Body)
	}
	if bad, ok := errors.AsType[*Error](cmp.Or(context.Cause(v.ctx), err)); ok {
		return nil, bad
	}
	if err != nil {
		return nil, &Error{Code: CodeParse, Message: "the message did not arrive as a whole", Err: err}
	}
	return text, nil
}

// post writes an answer.
func post(w http.ResponseWriter, answer []byte) {
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = w.Write(answer) //nolint:gosec // JSON, and says so; the client is gone, or reads it
}

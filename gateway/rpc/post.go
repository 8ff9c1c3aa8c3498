package rpc

import (
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
		l := s.leaseOf(r, k)
		defer l.release()
		var text []byte
		if text, bad = s.readBody(l.from(r.Context(), http.MaxBytesReader(w, r.Body, int64(s.limits.Body)))); bad == nil {
			_ = ctl.SetReadDeadline(time.Time{}) // or the call would end with it
			answer = s.answer(r.Context(), callerOf(k), limiterOf(k, isLocal(r)), l, text)
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

// readBody reads a request's body. It grows with what arrives, whatever length the
// client has announced.
func (s *Server) readBody(body io.Reader) ([]byte, *Error) {
	text, err := io.ReadAll(body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, Errorf(CodeTooLarge, "a message may have at most %d bytes", s.limits.Body)
	}
	if bad, ok := errors.AsType[*Error](err); ok {
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

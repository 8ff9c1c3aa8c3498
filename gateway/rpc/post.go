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
	ctl := http.NewResponseController(w)
	_ = ctl.SetReadDeadline(time.Now().Add(s.limits.Read)) // a server that cannot has its own
	k, bad := s.authenticate(r)
	var answer []byte
	if bad == nil {
		body := s.hold(http.MaxBytesReader(w, r.Body, int64(s.limits.Body)))
		defer body.release()
		var text []byte
		if text, bad = s.readBody(body); bad == nil {
			_ = ctl.SetReadDeadline(time.Time{}) // or the call would end with it
			answer = s.answer(r.Context(), callerOf(k), limiterOf(k, isLocal(r)), text)
		}
	}
	if bad != nil {
		s.observe("", bad, s.now())
		answer = refusal(bad)
	}
	_ = ctl.SetWriteDeadline(s.limits.writeBy(len(answer)))
	post(w, answer)
}

// readBody reads a request's body. It grows with what arrives, whatever length the
// client has announced.
func (s *Server) readBody(body io.Reader) ([]byte, *Error) {
	text, err := io.ReadAll(body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, Errorf(CodeTooLarge, "a message may have at most %d bytes", s.limits.Body)
	}
	if errors.Is(err, errBusy) {
		return nil, Errorf(CodeUnavailable, "the gateway is busy: try again")
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
	_, _ = w.Write(answer) // the client is gone, or reads it
}

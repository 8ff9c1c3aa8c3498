package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// request is one request of a message.
type request struct {
	// id is the client's, as it was written; nil for a notification, which is not
	// answered. It may be null: that is answered.
	id     json.RawMessage
	method string
	params json.RawMessage // an object or array; nil for none
	// bad says why the request is refused; nil for good ones. One that is no request
	// at all is answered even without an id.
	bad *Error
}

// silent reports whether the request gets no answer.
func (r *request) silent() bool {
	return r.id == nil && (r.bad == nil || r.bad.Code != CodeRequest)
}

// message is what a client sent: one request, or a batch.
type message struct {
	batch    bool
	requests []request
}

// parse reads a message. An error is about the message as a whole, of which then
// nothing is done.
//
// What is refused here, and encoding/json would let pass: invalid UTF-8, duplicate
// names, strings with half characters and NULs, and what is nested too deeply.
func parse(text []byte, l Limits) (message, *Error) {
	if !utf8.Valid(text) {
		return message{}, Errorf(CodeParse, "the message is not valid UTF-8")
	}
	s := scanner{text: text, max: l.Depth}
	m := message{batch: s.space() == '['}
	var err error
	if m.batch {
		err = s.elements(0, func() error {
			if len(m.requests) == l.Batch {
				return Errorf(CodeRequest, "the batch has more than %d requests", l.Batch)
			}
			r, err := parseRequest(&s, 1)
			m.requests = append(m.requests, r)
			return err
		})
	} else {
		m.requests = make([]request, 1)
		m.requests[0], err = parseRequest(&s, 0)
	}
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return message{}, messageError(err, l)
	}
	if len(m.requests) == 0 {
		return message{}, Errorf(CodeRequest, "the batch is empty")
	}
	return m, nil
}

// messageError is the client's error for a message that cannot be read.
func messageError(err error, l Limits) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, errDeep) {
		return Errorf(CodeRequest, "the message is nested more than %d deep", l.Depth)
	}
	return &Error{Code: CodeParse, Message: "the message is not JSON: " + err.Error(), Err: err}
}

// parseRequest reads what should be a request. Its error is one of syntax.
func parseRequest(s *scanner, depth int) (request, error) {
	var r request
	if s.space() != '{' {
		r.refuse(CodeRequest, "a request is an object")
		return r, s.value(depth)
	}
	version := false
	err := s.members(depth, func(m member) error {
		if m.twice {
			r.refuse(CodeRequest, "the member "+clip(m.name)+" is there twice")
		}
		switch m.name {
		case "jsonrpc":
			version = unquoteIf(m.value) == "2.0"
		case "id":
			r.takeID(m)
		case "method":
			if r.method = unquoteIf(m.value); r.method == "" || m.flaw != nil {
				r.refuse(CodeRequest, "method: it is no text, or empty")
			}
		case "params":
			r.takeParams(m)
		default:
			r.refuse(CodeRequest, "a request has no member "+clip(m.name))
		}
		return nil
	})
	switch {
	case !version:
		r.refuse(CodeRequest, `jsonrpc: it must be "2.0"`)
	case r.method == "":
		r.refuse(CodeRequest, "method: it is missing")
	}
	return r, err
}

// maxID is how many bytes an id may have as it is written: answers repeat it.
const maxID = 1024

// takeID keeps an id that is a string, a number or null.
func (r *request) takeID(m member) {
	switch m.value[0] {
	case '{', '[', 't', 'f':
		r.refuse(CodeRequest, "id: it must be a string, a number or null")
		return
	}
	switch {
	case m.flaw != nil:
		r.refuse(CodeRequest, "id: "+m.flaw.Error())
		return
	case len(m.value) > maxID:
		r.refuse(CodeRequest, fmt.Sprintf("id: it may have at most %d bytes", maxID))
		return
	}
	r.id = m.value
}

// takeParams keeps params. Null counts as none.
func (r *request) takeParams(m member) {
	switch m.value[0] {
	case 'n':
	case '{', '[':
		if m.flaw != nil {
			r.refuse(CodeInvalid, "params: "+m.flaw.Error())
			return
		}
		r.params = m.value
	default:
		r.refuse(CodeRequest, "params: they must be an object")
	}
}

// refuse keeps the first reason, but that it is no request before others.
func (r *request) refuse(code, message string) {
	if r.bad == nil || r.bad.Code != CodeRequest && code == CodeRequest {
		r.bad = &Error{Code: code, Message: message}
	}
}

// unquoteIf is the text of a string; empty for another value.
func unquoteIf(value json.RawMessage) string {
	if value[0] != '"' {
		return ""
	}
	return unquote(value)
}

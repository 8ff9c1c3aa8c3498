package rpc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

type request struct {
	// id is as the client wrote it; nil for a notification, which is not answered. A null is answered.
	id     json.RawMessage
	method string
	params json.RawMessage // an object or array; nil for none
	bad    *Error          // why the request is refused. An invalid request is answered even without an id
}

func (r *request) silent() bool {
	return r.id == nil && (r.bad == nil || r.bad.Code != CodeRequest)
}

type message struct {
	batch    bool
	requests []request
}

// parse reads a message; its error refuses the whole message.
//
// Unlike encoding/json it refuses invalid UTF-8, duplicate names, lone surrogates and NULs in strings, and deep
// nesting; but for what a method checks itself ([Method.Foreign]), in a message that is not a batch.
func parse(text []byte, l Limits) (message, *Error) {
	valid, depth := utf8.Valid(text), jsonscan.Depth(text)
	bad := depth > l.Depth || !valid
	if bad && (len(l.foreign) == 0 || depth > max(l.Depth, foreignDepth)) {
		return message{}, refusalOf(valid, l)
	}
	m, err := parseRequests(jsontext.NewDecoder(bytes.NewBuffer(text)), l, true)
	if err != nil || jsonscan.HasEscape(text, jsonscan.NUL) { // once more, for where it is
		m, err = parseRequests(jsonscan.Reader(text), l, false)
	}
	switch {
	case err != nil:
		return message{}, messageError(err)
	case bad && (m.batch || l.foreign[m.requests[0].method] == ""): // nobody checks it
		return message{}, refusalOf(valid, l)
	case len(m.requests) == 0:
		return message{}, Errorf(CodeRequest, "the batch is empty")
	}
	return m, nil
}

// refusalOf is the error of a message that is not UTF-8 or too deep.
func refusalOf(valid bool, l Limits) *Error {
	if !valid {
		return Errorf(CodeParse, "the message is not valid UTF-8")
	}
	return Errorf(CodeRequest, "the message is nested more than %d deep", l.Depth)
}

// parseRequests reads all requests. Strict says that the decoder itself refuses what a member could be refused for.
func parseRequests(d *jsontext.Decoder, l Limits, strict bool) (m message, err error) {
	one := func() error {
		if len(m.requests) == l.Batch && m.batch {
			return Errorf(CodeRequest, "the batch has more than %d requests", l.Batch)
		}
		r, err := parseRequest(d, l, strict)
		m.requests = append(m.requests, r)
		return err
	}
	if m.batch = d.PeekKind() == '['; m.batch {
		err = jsonscan.Each(d, one)
	} else {
		err = one()
	}
	if err == nil {
		err = jsonscan.End(d)
	}
	return m, err
}

func messageError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: CodeParse, Message: "the message is not JSON: " + strings.TrimPrefix(err.Error(), "jsontext: "), Err: err}
}

// parseRequest reads the request that is next. Its error is one of syntax.
func parseRequest(d *jsontext.Decoder, l Limits, strict bool) (r request, err error) {
	if d.PeekKind() != '{' {
		r.refuse(CodeRequest, "a request is an object")
		return r, d.SkipValue()
	}
	version := false
	err = eachMember(d, strict, func(m member) error {
		if m.duplicate {
			r.refuse(CodeRequest, "the member "+clip(m.name)+" is a duplicate")
		}
		switch m.name {
		case "jsonrpc":
			version = unquoteIf(m.value) == "2.0"
		case "id":
			r.takeID(m)
		case "method":
			if r.method = unquoteIf(m.value); r.method == "" || m.flaw() != nil {
				r.refuse(CodeRequest, "method: it is not a text, or empty")
			}
		case "params":
			r.takeParams(m)
		default:
			r.refuse(CodeRequest, "a request has no member "+clip(m.name))
		}
		return nil
	})
	var flaw error
	if foreign := l.foreign[r.method]; !strict && foreign != "" && len(r.params) > 0 && r.params[0] == '{' {
		flaw = flawBeside(r.params, foreign)
	} else if !strict && len(r.params) > 0 {
		flaw = jsonscan.Flaw(r.params)
	}
	if flaw != nil {
		r.refuse(CodeInvalid, "params: "+strings.TrimPrefix(flaw.Error(), "jsontext: "))
	}
	switch {
	case !version:
		r.refuse(CodeRequest, `jsonrpc: it must be "2.0"`)
	case r.method == "":
		r.refuse(CodeRequest, "method: it is missing")
	}
	return r, err
}

// foreignDepth bounds the depth of a message with a member that a method checks itself.
const foreignDepth = 1000

// flawBeside returns the first flaw of params outside a member.
func flawBeside(params json.RawMessage, foreign string) error {
	return eachMember(jsonscan.Reader(params), false, func(m member) error {
		switch {
		case m.duplicate:
			return fmt.Errorf("the name %s is there twice", clip(m.name))
		case m.name == foreign:
			return nil
		}
		return m.flaw()
	})
}

type member struct {
	name      string
	value     json.RawMessage
	duplicate bool
	quoted    []byte // the name
	flawless  bool   // known to be
}

// flaw returns the first flaw in the name or value.
func (m *member) flaw() error {
	if m.flawless {
		return nil
	}
	return cmp.Or(jsonscan.Flaw(m.quoted), jsonscan.Flaw(m.value))
}

func eachMember(d *jsontext.Decoder, flawless bool, each func(member) error) error {
	seen := map[string]bool{}
	return jsonscan.Members(d, func(quoted, value []byte) error {
		m := member{name: jsonscan.Unquote(quoted), value: value, quoted: quoted, flawless: flawless}
		m.duplicate, seen[m.name] = seen[m.name], true
		return each(m)
	})
}

const maxID = 1024 // bounds an id in bytes: answers repeat it

func (r *request) takeID(m member) {
	switch m.value[0] {
	case '{', '[', 't', 'f':
		r.refuse(CodeRequest, "id: it must be a string, a number or null")
		return
	}
	switch {
	case m.flaw() != nil:
		r.refuse(CodeRequest, "id: it contains a lone surrogate or a NUL")
		return
	case len(m.value) > maxID:
		r.refuse(CodeRequest, fmt.Sprintf("id: it may have at most %d bytes", maxID))
		return
	}
	r.id = m.value
}

func (r *request) takeParams(m member) {
	switch m.value[0] {
	case 'n':
	case '{', '[':
		r.params = m.value
	default:
		r.refuse(CodeRequest, "params: they must be an object")
	}
}

// refuse keeps the first reason; CodeRequest replaces others.
func (r *request) refuse(code, message string) {
	if r.bad == nil || r.bad.Code != CodeRequest && code == CodeRequest {
		r.bad = &Error{Code: code, Message: message}
	}
}

func unquoteIf(value json.RawMessage) string {
	if value[0] != '"' {
		return ""
	}
	return jsonscan.Unquote(value)
}

// The codes in the data of errors. The table below has their meanings and numbers.
const (
	CodeParse        = "parse_error"
	CodeRequest      = "invalid_request"
	CodeMethod       = "unknown_method"
	CodeInvalid      = "invalid_params"
	CodeTooLarge     = "too_large"
	CodeCycle        = "cycle"
	CodeTurnNeeded   = "turn_needed"
	CodeInternal     = "internal"
	CodeConflict     = "version_conflict"
	CodeNotFound     = "not_found"
	CodeTurnUnknown  = "turn_unknown"
	CodeUnauthorized = "unauthorized"
	CodeUnavailable  = "unavailable"
	CodeOverloaded   = "overloaded"
)

// codes lists the codes for the schema, JSON-RPC's own first.
func codes() []codeDoc {
	return []codeDoc{
		{-32700, CodeParse, "the text is not JSON, or not UTF-8"},
		{-32600, CodeRequest, "JSON that is not a request, or nested too deeply, or too many requests in a batch"},
		{-32601, CodeMethod, "a method that does not exist; the message names the nearest one"},
		{-32602, CodeInvalid, "params that make no sense; the message names the one"},
		{-32602, CodeTooLarge, "a text or message that is too long"},
		{-32602, CodeCycle, "a folder that would be below itself"},
		{-32602, CodeTurnNeeded, "a phase with a hook that needs a turn, dispatched without one, or in a turn that has not been through `turn.pre_policy`; the message names the hook"},
		{-32603, CodeInternal, "a failure of the gateway; its log says more"},
		{-32001, CodeConflict, "a text based on another version than the newest; data says the newest one"},
		{-32002, CodeNotFound, "something that does not exist, or belongs to another workspace"},
		{-32002, CodeTurnUnknown, "a turn that this gateway does not keep, or not any more; reason is unknown, ended, idle or stopping"},
		{-32003, CodeUnauthorized, "no token, an unknown token, or one without the right"},
		{-32004, CodeUnavailable, "something that may succeed later: try again"},
		{-32004, CodeOverloaded, "the gateway holds too much already for the connection, the token or the process, or runs too many calls of this kind (share: connection, token, process, calls): read answers that are due, and try again after retry_after_ms with less at once"},
	}
}

type codeDoc struct {
	Number int    `json:"number"`
	Code   string `json:"code"`
	Doc    string `json:"description"`
}

// Error is returned by methods to choose the client's error. Any other error becomes CodeInternal, and its text is
// only logged.
type Error struct {
	// Number is JSON-RPC's; 0 is the code's.
	Number int
	// Code is one of the codes; clients get it as data.code.
	Code string
	// Message tells people what is wrong and what to do.
	Message string
	// Data has further members of the client's data. May be nil.
	Data map[string]any
	// Err is the cause, for the log only. May be nil.
	Err error
}

// Errorf makes an Error without data and cause.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// MarshalJSON writes the error object of JSON-RPC.
func (e *Error) MarshalJSON() ([]byte, error) {
	data := map[string]any{}
	maps.Copy(data, e.Data)
	data["code"] = e.Code
	number := e.Number
	if at := slices.IndexFunc(codes(), func(row codeDoc) bool { return row.Code == e.Code }); number == 0 && at >= 0 {
		number = codes()[at].Number
	}
	return json.Marshal(struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	}{cmp.Or(number, -32603), e.Message, data})
}

func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: CodeInternal, Message: "internal error; the gateway's log says more", Err: err}
}

package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// The codes that clients see in an error's data. Each has one number; those of
// JSON-RPC itself come first.
const (
	// CodeParse is a text that is not JSON. Number -32700.
	CodeParse = "parse_error"
	// CodeRequest is JSON that is no request, or more than one message may hold.
	// Number -32600.
	CodeRequest = "invalid_request"
	// CodeMethod is a method that does not exist. Number -32601.
	CodeMethod = "unknown_method"
	// CodeInvalid is a request that makes no sense. Number -32602.
	CodeInvalid = "invalid_params"
	// CodeTooLarge is a text or message that is too long. Number -32602.
	CodeTooLarge = "too_large"
	// CodeCycle is a folder that would be below itself. Number -32602.
	CodeCycle = "cycle"
	// CodeTurnNeeded is a phase that cannot be dispatched without a turn. Number -32602.
	CodeTurnNeeded = "turn_needed"
	// CodeInternal is a failure that is not the client's; its text stays in the
	// log. Number -32603.
	CodeInternal = "internal"
	// CodeConflict is a text based on another version than the newest. Number
	// -32001.
	CodeConflict = "version_conflict"
	// CodeNotFound is something that is not there, or is another workspace's.
	// Number -32002.
	CodeNotFound = "not_found"
	// CodeTurnUnknown is a turn that this gateway does not keep, or not any more. Number
	// -32002.
	CodeTurnUnknown = "turn_unknown"
	// CodeUnauthorized is a caller without a token, or without the right. Number
	// -32003.
	CodeUnauthorized = "unauthorized"
	// CodeUnavailable is something that may go well later: the database is out of
	// reach, the gateway stops, the caller calls too often. Number -32004.
	CodeUnavailable = "unavailable"
	// CodeOverloaded is a call for which the gateway has no memory now, because of
	// what it holds already for its connection, its token or everybody: data.share
	// says which. Number -32004.
	CodeOverloaded = "overloaded"
)

// codes lists the codes in the order of their numbers, with what they mean. It is
// part of the schema.
func codes() []codeDoc {
	return []codeDoc{
		{-32700, CodeParse, "the text is not JSON, or not UTF-8"},
		{-32600, CodeRequest, "JSON that is no request, or nested too deeply, or too many requests in a batch"},
		{-32601, CodeMethod, "a method that does not exist; the message names the nearest one"},
		{-32602, CodeInvalid, "params that make no sense; the message names the one"},
		{-32602, CodeTooLarge, "a text or message that is too long"},
		{-32602, CodeCycle, "a folder that would be below itself"},
		{-32602, CodeTurnNeeded, "a phase with a hook that needs a turn, dispatched without one, or in a turn that has not been through `turn.pre_policy`; the message names the hook"},
		{-32603, CodeInternal, "a failure of the gateway; its log says more"},
		{-32001, CodeConflict, "a text based on another version than the newest; data says which there is"},
		{-32002, CodeNotFound, "something that is not there, or belongs to another workspace"},
		{-32002, CodeTurnUnknown, "a turn that this gateway does not keep, or not any more; reason is unknown, ended, idle or stopping"},
		{-32003, CodeUnauthorized, "no token, a token that is not known, or one without the right"},
		{-32004, CodeUnavailable, "something that may go well later: try again"},
		{-32004, CodeOverloaded, "the gateway holds too much already for the connection, the token or the process, or runs too many calls of this kind (share: connection, token, process, calls): read answers that are due, and try again after retry_after_ms with less at once"},
	}
}

// codeDoc is a row of codes.
type codeDoc struct {
	Number int    `json:"number"`
	Code   string `json:"code"`
	Doc    string `json:"description"`
}

// Error is what a method returns to choose the error that the client gets. Any
// other error becomes CodeInternal, and its text goes to the log only.
type Error struct {
	// Number is JSON-RPC's; 0 takes the one that belongs to the code.
	Number int
	// Code is one of the codes; the client gets it as data.code.
	Code string
	// Message says what is wrong and what to do, for people.
	Message string
	// Data are further members of the client's data; may be nil. A member "code"
	// is overwritten.
	Data map[string]any
	// Err is the cause, for the log; the client does not see it. May be nil.
	Err error
}

// Errorf makes an Error without data and cause: the format takes no %w.
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
	data := maps.Clone(e.Data)
	if data == nil {
		data = make(map[string]any, 1)
	}
	data["code"] = e.Code
	return json.Marshal(struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	}{e.number(), e.Message, data})
}

// number is what the client gets as the error's number.
func (e *Error) number() int {
	if e.Number != 0 {
		return e.Number
	}
	for _, row := range codes() {
		if row.Code == e.Code {
			return row.Number
		}
	}
	return -32603
}

// asError turns what a method returned into the client's error.
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: CodeInternal, Message: "internal error; the gateway's log says more", Err: err}
}

package tree

import (
	"errors"
	"fmt"
	"time"
)

// Code says what kind of failure an [Error] is. The gateway's clients see it.
type Code string

// The codes.
const (
	// CodeInvalid is a request that makes no sense.
	CodeInvalid Code = "invalid_params"
	// CodeTooLarge is a text that is too long.
	CodeTooLarge Code = "too_large"
	// CodeCycle is a folder that would be below itself, or is so in a damaged tree.
	CodeCycle Code = "cycle"
	// CodeConflict is a text based on another version than the newest.
	CodeConflict Code = "version_conflict"
	// CodeNotFound is something that is not in this workspace.
	CodeNotFound Code = "not_found"
	// CodeUnavailable is a database that is out of reach now.
	CodeUnavailable Code = "unavailable"
)

// Error is a request that was refused.
type Error struct {
	Code Code
	// Message says what is wrong and what to do, for people.
	Message string
	// Conflict is set where the code is CodeConflict.
	Conflict *Conflict
	// Err is the cause; may be nil.
	Err error
}

// Conflict tells what there is instead of what was expected.
type Conflict struct {
	// ExpectedVersion is what the caller gave; nil for none.
	ExpectedVersion *int64 `json:"expected_version"`
	// The others are of the live document; nil where there is none.
	ActualVersion       *int64     `json:"actual_version"`
	ActualDocID         *string    `json:"actual_doc_id"`
	ActualContentSHA256 *string    `json:"actual_content_sha256"`
	UpdatedBy           *string    `json:"updated_by"`
	UpdatedAt           *time.Time `json:"updated_at"`
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

// Errorf makes an Error without a cause: the format takes no %w.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// HasCode reports whether err is, or wraps, an *Error with that code.
func HasCode(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}

// ConflictWith is the error for a caller who expected another document than the
// live one, which is nil where there is none.
func ConflictWith(expected *int64, live *Doc) *Error {
	c := &Conflict{ExpectedVersion: expected}
	e := &Error{Code: CodeConflict, Conflict: c}
	if live == nil {
		e.Message = "the document is not there any more; read the scope again"
		return e
	}
	d := *live // the caller's may go on changing
	c.ActualVersion, c.ActualDocID, c.ActualContentSHA256 = &d.Version, &d.ID, &d.ContentSHA256
	c.UpdatedBy, c.UpdatedAt = &d.UpdatedBy, &d.UpdatedAt
	e.Message = fmt.Sprintf("the document is at version %d, saved by %q; read it, merge, and save with that version", d.Version, d.UpdatedBy)
	return e
}

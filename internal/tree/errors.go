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
	CodeInvalid     Code = "invalid_params"   // an invalid request
	CodeTooLarge    Code = "too_large"        // a text that is too long
	CodeCycle       Code = "cycle"            // a folder that would be, or in a damaged tree is, below itself
	CodeConflict    Code = "version_conflict" // a text that is not based on the newest version
	CodeNotFound    Code = "not_found"        // something that is not in this workspace
	CodeUnavailable Code = "unavailable"      // a database that cannot be reached now
)

// Error is a request that was refused.
type Error struct {
	Code Code
	// Message says what is wrong and what to do.
	Message string
	// Conflict is set for CodeConflict.
	Conflict *Conflict
	// Err is the cause; may be nil.
	Err error
}

// Conflict is the difference from what was expected.
type Conflict struct {
	// ExpectedVersion is what the caller gave; nil for none.
	ExpectedVersion *int64 `json:"expected_version"`
	// The live document's; nil if there is none.
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

// Errorf makes an Error without a cause.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// HasCode reports whether err wraps an *Error with that code.
func HasCode(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}

// ConflictWith is the error for a caller who did not expect the live document, nil for none.
func ConflictWith(expected *int64, live *Doc) *Error {
	c := &Conflict{ExpectedVersion: expected}
	e := &Error{Code: CodeConflict, Conflict: c}
	if live == nil {
		e.Message = "the document does not exist any more; read the scope again"
		return e
	}
	d := *live // the caller may go on changing it
	c.ActualVersion, c.ActualDocID, c.ActualContentSHA256 = &d.Version, &d.ID, &d.ContentSHA256
	c.UpdatedBy, c.UpdatedAt = &d.UpdatedBy, &d.UpdatedAt
	e.Message = fmt.Sprintf("the document is at version %d, saved by %q; read it, merge, and save with that version", d.Version, d.UpdatedBy)
	return e
}

package sqldb

import (
	"context"
	"errors"
	"fmt"
)

// Code says what kind of failure an [Error] is. Packages above have further ones.
type Code string

// The codes.
const (
	// CodeInternal is everything that has no code of its own.
	CodeInternal Code = "internal"
	// CodeDSN is a data source name that says nothing usable.
	CodeDSN Code = "dsn"
	// CodeNotFound is a database, or something in it, that is not there.
	CodeNotFound Code = "not_found"
	// CodeSchema is a database that a newer Grapnel wrote, or one of another program.
	CodeSchema Code = "schema"
	// CodeDamaged is a file that is no database, or not any more.
	CodeDamaged Code = "damaged"
	// CodeLocked is a database that others kept locked for too long.
	CodeLocked Code = "locked"
	// CodeFull is a disk, or quota, without room.
	CodeFull Code = "full"
	// CodePermission is a database that this user may not read or write.
	CodePermission Code = "permission"
	// CodeUnreachable is a server that does not answer.
	CodeUnreachable Code = "unreachable"
)

// Error is a failure of a database. Its text says what to do next.
type Error struct {
	// Code is what callers branch on.
	Code Code
	// Message says what happened, without passwords.
	Message string
	// Remedy says what can be done about it; may be empty.
	Remedy string
	// Err is the cause; may be nil.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	s := "store: " + e.Message
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Remedy != "" {
		s += " (" + e.Remedy + ")"
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// HasCode reports whether err is, or wraps, an [*Error] with that code.
func HasCode(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}

// Failf makes an [*Error] without a cause: the format takes no %w.
func Failf(code Code, remedy, format string, args ...any) error {
	return &Error{Code: code, Remedy: remedy, Message: fmt.Sprintf(format, args...)}
}

// Fail gives a failure of the database a code. What has one already, or is the
// caller's context, is returned with what was being done in front; nil stays nil.
func (d *DB) Fail(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("store: %s: %w", doing, context.Cause(ctx))
	}
	e := d.dialect.classify(err)
	if e.Code == CodeInternal && errors.Is(err, context.DeadlineExceeded) {
		e.Code, e.Message = CodeLocked, fmt.Sprintf("did not finish within %s", d.opts.LockTimeout)
		e.Remedy = "another program holds it, or it is overloaded: look who uses it, and try again"
	}
	if e.Message == "" {
		e.Message = doing
	} else {
		e.Message = doing + ": " + d.name + " " + e.Message
	}
	e.Err = err
	return e
}

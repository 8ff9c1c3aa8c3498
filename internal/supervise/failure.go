package supervise

import (
	"context"
	"errors"
	"strings"
)

// Class says whose fault a failure is and what follows from it. It is all that
// [Policy] needs to know of a failure.
type Class int

// The classes of failures.
const (
	// ClassUndefined is the zero value. It is treated as ClassOrdinary.
	ClassUndefined Class = iota
	// ClassOrdinary is a failure that a new start may cure: a crash, a start
	// that took too long, a service that stopped answering.
	ClassOrdinary
	// ClassPermanent is a failure that no new start can cure: a file that is
	// not executable, a wrong version. It leads to quarantine at once.
	ClassPermanent
	// ClassResource is the host's fault: it has no descriptors, processes or
	// start slots left. It is waited out and never counted against the service.
	ClassResource
	// ClassMemory says that the service was ended for using too much memory. It
	// counts like an ordinary failure and is waited for longer.
	ClassMemory
)

// classNames holds the words of the classes, by their number.
//
//nolint:gochecknoglobals // an immutable table
var classNames = [...]string{"undefined", "ordinary", "permanent", "resource", "memory"}

// String returns the word of the class, for example "permanent".
func (c Class) String() string { return word(classNames[:], "Class", int(c)) }

// ParseClass is the inverse of [Class.String]. It refuses unknown words and
// "undefined".
func ParseClass(text string) (Class, error) {
	n, err := parseWord(classNames[:], "failure class", text)
	return Class(n), err
}

// The codes that the supervisor itself gives to failures which arrive without
// one. A [Failure] that comes from the service keeps its own code.
const (
	// CodeCrash: the service ended although nobody had asked it to.
	CodeCrash = "crash"
	// CodeStartTimeout: the start did not end within Options.StartTimeout.
	CodeStartTimeout = "start_timeout"
	// CodeTimeout: too many health checks in a row were missed.
	CodeTimeout = "timeout"
	// CodeUnavailable: the host had no room for the start.
	CodeUnavailable = "unavailable"
	// CodeInternal: an error that says nothing about itself.
	CodeInternal = "internal"
)

// Failure is the one error by which a service tells the supervisor why it did
// not start or why it ended. It may be wrapped: it is found with errors.AsType.
//
// A Failure is read by several goroutines at once it was handed over, and
// must not be changed from then on.
type Failure struct {
	// Class decides what happens next. Zero means ClassOrdinary.
	Class Class
	// Code is a stable word for machines. Empty means that the supervisor
	// chooses one of its own codes.
	Code string
	// Detail is one line for the operator. It may be empty.
	Detail string
	// Err is the cause, if there is one.
	Err error
}

var _ error = (*Failure)(nil)

// Error returns code, detail and cause in one line.
func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(f.Code)
	for _, part := range []string{f.Detail, errorText(f.Err)} {
		if part == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(part)
	}
	return b.String()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// summary is what a person reads in a status line: the detail, or else the
// cause. The code stands beside it and is not repeated.
func (f *Failure) summary() string {
	if f.Detail != "" {
		return f.Detail
	}
	return errorText(f.Err)
}

// errorText is Error for an error that may be nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// failureOf turns any error into a complete Failure. What the error does not
// say of itself is taken from code and detail.
func failureOf(err error, code, detail string) *Failure {
	found, ok := errors.AsType[*Failure](err)
	if !ok || found == nil {
		return &Failure{Class: ClassOrdinary, Code: code, Detail: detail, Err: err}
	}
	// A copy, because the one that was found belongs to the service.
	f := *found
	if f.Class == ClassUndefined {
		f.Class = ClassOrdinary
	}
	if f.Code == "" {
		f.Code = code
	}
	return &f
}

// startFailure explains a start that returned err while ctx, which carried the
// start's deadline, may have ended.
func startFailure(ctx context.Context, err error) *Failure {
	if errors.Is(context.Cause(ctx), errStartTimeout) {
		return failureOf(err, CodeStartTimeout, errStartTimeout.Error())
	}
	return failureOf(err, CodeInternal, "")
}

package supervise

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
)

// Class says whose fault a failure is. It is all that restarts depend on.
type Class string

// The classes of failures. The zero value is treated as ClassOrdinary.
const (
	ClassOrdinary Class = "ordinary" // a failure that a new start may cure, such as a crash
	// ClassPermanent is a failure that no new start can cure, such as a wrong version. It leads to quarantine at
	// once.
	ClassPermanent Class = "permanent"
	// ClassResource is the host's fault, such as a lack of descriptors. It is waited out and never counted against
	// the service.
	ClassResource Class = "resource"
	// ClassMemory says that the service was ended for using too much memory. It counts like an ordinary failure and
	// is followed by a longer wait.
	ClassMemory Class = "memory"
)

// The codes that the supervisor gives to failures which arrive without one.
const (
	CodeCrash        = "crash"         // the service ended without being asked to
	CodeStartTimeout = "start_timeout" // the start did not end within Options.StartTimeout
	CodeTimeout      = "timeout"       // too many health checks in a row were missed
	CodeUnavailable  = "unavailable"   // the host had no room for the start
	CodeInternal     = "internal"      // an error that says nothing about itself
)

// Failure is the error by which a service reports why it did not start or why it ended. It may be wrapped, and must
// not be changed once it was handed over.
type Failure struct {
	Class  Class  // Class decides what happens next; zero means ClassOrdinary
	Code   string // a stable word for machines; the supervisor chooses one if it is empty
	Detail string // one line for the operator. It may be empty.
	Err    error  // the cause, if there is one
}

var _ error = (*Failure)(nil)

// Error returns code, detail and cause in one line.
func (f *Failure) Error() string {
	parts := []string{f.Code, f.Detail, errorText(f.Err)}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

func (f *Failure) summary() string {
	if f.Detail != "" {
		return f.Detail
	}
	return errorText(f.Err)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// failureOf turns any error into a complete Failure; code and detail fill what the error does not say.
func failureOf(err error, code, detail string) *Failure {
	found, ok := errors.AsType[*Failure](err)
	if !ok || found == nil {
		return &Failure{Class: ClassOrdinary, Code: code, Detail: detail, Err: err}
	}
	f := *found
	f.Class = cmp.Or(f.Class, ClassOrdinary)
	f.Code = cmp.Or(f.Code, code)
	return &f
}

// startFailure explains a start that returned err; ctx carried its deadline.
func startFailure(ctx context.Context, err error) *Failure {
	if errors.Is(context.Cause(ctx), errStartTimeout) {
		return failureOf(err, CodeStartTimeout, errStartTimeout.Error())
	}
	return failureOf(err, CodeInternal, "")
}

package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// Dropped says why something that a plugin sent was not applied.
type Dropped string

// The reasons.
const (
	DroppedLate         Dropped = "late"         // the answer to an abandoned call
	DroppedDouble       Dropped = "double"       // a second answer to a call
	DroppedStale        Dropped = "stale"        // a frame of another incarnation
	DroppedUnknown      Dropped = "unknown_id"   // an answer to nothing that was asked
	DroppedUnsupported  Dropped = "unsupported"  // a frame without a body that this host knows
	DroppedUnreadable   Dropped = "unreadable"   // a frame that is not a protobuf message
	DroppedInvalidation Dropped = "invalidation" // an invalidation without an id while too many host calls were in flight
)

// errAbandoned is the error of a call whose context ended before who answered.
func errAbandoned(ctx context.Context, who string) *phases.Error {
	cause := context.Cause(ctx)
	err := ctx.Err()
	code := phases.CauseCancelled
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(cause, context.DeadlineExceeded) {
		code = phases.CauseTimeout
	}
	// The caller may have said more precisely why.
	if coded, ok := errors.AsType[*phases.Error](cause); ok {
		code = coded.Code
	}
	if cause != nil && !errors.Is(cause, err) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	message := who + " did not answer in time"
	if code != phases.CauseTimeout {
		message = "the call was given up: " + err.Error()
	}
	return &phases.Error{Code: code, Message: message, Err: err}
}

// fromPlugin converts a plugin's error. A plugin may report only its own faults: it cannot claim a cancellation or a
// denial, to which no failure policy applies. Its text becomes the error's detail, and so does a malformed code.
func fromPlugin(e *phases.Error) *phases.Error {
	out := &phases.Error{
		Code: e.Code, PluginCode: e.PluginCode, Detail: e.Message, Retryable: e.Retryable, SafeForUser: e.SafeForUser, Err: e.Err,
	}
	message, own := ownCauses()[e.Code]
	if !own {
		out.Code, message = phases.CausePluginError, ownCauses()[phases.CausePluginError]
		out.PluginCode = cmp.Or(out.PluginCode, string(e.Code))
	}
	out.Message = message
	if out.PluginCode != "" && !phases.ValidCode(out.PluginCode) {
		out.Detail, out.SafeForUser = out.PluginCode+"; "+out.Detail, false
		out.PluginCode = phases.CodeInvalidCode
	}
	return out
}

// ownCauses are the causes that a plugin may claim, with the host's message.
func ownCauses() map[phases.Cause]string {
	return map[phases.Cause]string{
		phases.CausePluginError:   "the plugin answered with an error",
		phases.CauseOversizeReply: "the plugin's answer was too large to be sent",
		phases.CauseOverloaded:    "the plugin has too much to do",
		phases.CauseTimeout:       "the plugin ran out of time",
	}
}

func asError(err error) *phases.Error {
	if coded, ok := errors.AsType[*phases.Error](err); ok {
		return coded
	}
	return &phases.Error{Code: phases.CausePluginError, PluginCode: "error", Message: err.Error(), Err: err}
}

func panicked(r any) *phases.Error {
	return &phases.Error{Code: phases.CausePluginError, PluginCode: "panic", Message: fmt.Sprintf("panic: %v\n%s", r, debug.Stack())}
}

func checkFeatures(instance string, d *phases.Description, features []string) error {
	if n := len(d.Requires); n > phases.MaxListed {
		return phases.Errorf(phases.CauseVersionMismatch, "plugin %q requires %d features; at most %d can be", instance, n, phases.MaxListed)
	}
	lack := slices.DeleteFunc(slices.Clone(d.Requires), func(s string) bool { return slices.Contains(features, s) })
	if len(lack) == 0 {
		return nil
	}
	known := slices.DeleteFunc(slices.Clone(lack), func(s string) bool { return !phases.ValidCode(s) })
	err := phases.Errorf(phases.CauseVersionMismatch, "plugin %q requires features that this host lacks (%s); this host has %s",
		instance, cmp.Or(strings.Join(known, ", "), "unknown"), strings.Join(features, ", "))
	err.Detail = fmt.Sprintf("%q %q requires %q", d.Name, d.Version, d.Requires)
	return err
}

// FromPlugin converts the error of an in-process plugin as if it had crossed the wire; nil stays nil.
func FromPlugin(err error) error {
	if err == nil {
		return nil
	}
	return fromPlugin(asError(err))
}

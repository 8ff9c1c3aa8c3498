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
type Dropped int

// The reasons.
const (
	// DroppedLate is the answer to a call whose caller has left. It frees the
	// call's slot.
	DroppedLate Dropped = iota + 1
	// DroppedDouble is a further answer to a call.
	DroppedDouble
	// DroppedStale is a frame of another incarnation.
	DroppedStale
	// DroppedUnknown is an answer to nothing that was asked.
	DroppedUnknown
	// DroppedUnsupported is a frame without a body that this host knows.
	DroppedUnsupported
	// DroppedUnreadable is a frame that is no protobuf message.
	DroppedUnreadable
	// DroppedInvalidation is an invalidation without an id that came while too
	// many host calls were in flight.
	DroppedInvalidation
)

// String returns the reason as a stable word.
func (d Dropped) String() string {
	switch d {
	case DroppedLate:
		return "late"
	case DroppedDouble:
		return "double"
	case DroppedStale:
		return "stale"
	case DroppedUnknown:
		return "unknown_id"
	case DroppedUnsupported:
		return "unsupported"
	case DroppedUnreadable:
		return "unreadable"
	case DroppedInvalidation:
		return "invalidation"
	default:
		return fmt.Sprintf("Dropped(%d)", int(d))
	}
}

// left is the error of a caller whose context ended before who answered.
func left(ctx context.Context, who string) *phases.Error {
	cause := context.Cause(ctx)
	err := ctx.Err()
	code := phases.CauseCancelled
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(cause, context.DeadlineExceeded) {
		code = phases.CauseTimeout
	}
	// The caller may have said more exactly why.
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

// fromPlugin makes the error that a plugin sent one of the host's. A plugin may
// say only of itself what is wrong: it cannot claim a cancellation or a denial,
// which no failure policy would apply to. Its words become the error's detail, and
// so does a code that is not a word.
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

// ownCauses are the causes that a plugin may claim, and what the host says of them.
func ownCauses() map[phases.Cause]string {
	return map[phases.Cause]string{
		phases.CausePluginError:   "the plugin answered with an error",
		phases.CauseOversizeReply: "the plugin's answer was too large to be sent",
		phases.CauseOverloaded:    "the plugin has too much to do",
		phases.CauseTimeout:       "the plugin ran out of time",
	}
}

// refusesVersion is the error of a plugin that speaks another version of the protocol.
func refusesVersion(instance string, e *phases.Error) *phases.Error {
	return &phases.Error{
		Code: phases.CauseVersionMismatch, Detail: e.Message,
		Message: fmt.Sprintf("plugin %q does not speak version %d of the protocol", instance, ProtocolVersion),
	}
}

// asError makes any error one that can cross the wire.
func asError(err error) *phases.Error {
	if coded, ok := errors.AsType[*phases.Error](err); ok {
		return coded
	}
	return &phases.Error{Code: phases.CausePluginError, PluginCode: "error", Message: err.Error(), Err: err}
}

// panicked makes a recovered panic an error with the stack.
func panicked(r any) *phases.Error {
	return &phases.Error{Code: phases.CausePluginError, PluginCode: "panic", Message: fmt.Sprintf("panic: %v\n%s", r, debug.Stack())}
}

// missing returns the features that are required and not there.
func missing(required, have []string) []string {
	var out []string
	for _, r := range required {
		if !slices.Contains(have, r) {
			out = append(out, r)
		}
	}
	return out
}

// checkFeatures compares what a plugin requires with what the host has.
func checkFeatures(instance string, d *phases.Description, features []string) error {
	if n := len(d.Requires); n > phases.MaxListed {
		return phases.Errorf(phases.CauseVersionMismatch, "plugin %q requires %d features; at most %d can be", instance, n, phases.MaxListed)
	}
	lack := missing(d.Requires, features)
	if len(lack) == 0 {
		return nil
	}
	known := slices.DeleteFunc(slices.Clone(lack), func(s string) bool { return !phases.ValidCode(s) })
	err := phases.Errorf(phases.CauseVersionMismatch, "plugin %q requires features that this host lacks (%s); this host has %s",
		instance, cmp.Or(strings.Join(known, ", "), "unknown"), strings.Join(features, ", "))
	err.Detail = fmt.Sprintf("%q %q requires %q", d.Name, d.Version, d.Requires)
	return err
}

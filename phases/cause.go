package phases

import (
	"errors"
	"fmt"
	"slices"
)

// Cause is the stable word for why something did not come about: on the wire,
// in the ledger and in metrics.
type Cause string

// The causes. CauseDenied is a decision and CauseCancelled is the caller's
// wish; neither is a failure. CauseInterrupted is said of background work alone,
// which nobody could tell to have ended and which must not be repeated.
// CauseTurnNeeded is the host's mistake: it dispatched a phase without a turn that
// one of its hooks needs.
const (
	CauseDenied             Cause = "denied"
	CauseCancelled          Cause = "cancelled"
	CauseTimeout            Cause = "timeout"
	CauseCrash              Cause = "crash"
	CauseOOM                Cause = "oom"
	CauseUnavailable        Cause = "unavailable"
	CauseQuarantined        Cause = "quarantined"
	CauseBreakerOpen        Cause = "breaker_open"
	CauseBudgetExhausted    Cause = "budget_exhausted"
	CauseOverloaded         Cause = "overloaded"
	CauseOversizeRequest    Cause = "oversize_request"
	CauseOversizeReply      Cause = "oversize_reply"
	CauseSessionReset       Cause = "session_reset"
	CauseInvalidReply       Cause = "invalid_reply"
	CauseForbidden          Cause = "forbidden"
	CauseConflict           Cause = "conflict"
	CauseCondition          Cause = "condition"
	CausePluginError        Cause = "plugin_error"
	CauseVersionMismatch    Cause = "version_mismatch"
	CauseChecksumMismatch   Cause = "checksum_mismatch"
	CauseUnsafePath         Cause = "unsafe_path"
	CauseDescriptionChanged Cause = "description_changed"
	CauseStartTimeout       Cause = "start_timeout"
	CauseStartNoise         Cause = "start_noise"
	CauseExecFailed         Cause = "exec_failed"
	CauseRequiredMissing    Cause = "required_missing"
	CauseInterrupted        Cause = "interrupted"
	CauseTurnNeeded         Cause = "turn_needed"
	CauseInternal           Cause = "internal"
)

// FailureCauses returns the causes that are failures: those that a failure
// policy may name.
func FailureCauses() []Cause {
	return []Cause{
		CauseTimeout, CauseCrash, CauseOOM, CauseUnavailable, CauseQuarantined, CauseBreakerOpen, CauseBudgetExhausted, CauseOverloaded,
		CauseOversizeRequest, CauseOversizeReply, CauseSessionReset, CauseInvalidReply, CauseForbidden, CauseConflict, CauseCondition,
		CausePluginError, CauseVersionMismatch, CauseChecksumMismatch, CauseUnsafePath, CauseDescriptionChanged, CauseStartTimeout,
		CauseStartNoise, CauseExecFailed, CauseRequiredMissing, CauseInternal,
	}
}

// Failure reports whether c is a failure.
func (c Cause) Failure() bool { return slices.Contains(FailureCauses(), c) }

// Codes of diagnostics that are not causes.
const (
	CodeNotAllowed     = "contribution_not_allowed"
	CodeFailOpen       = "fail_open"
	CodeNotGranted     = "not_granted"
	CodeInvalid        = "contribution_invalid"
	CodeTimeoutLowered = "timeout_lowered"
	CodeLeftOut        = "left_out"
	CodeUnpinned       = "unpinned"
	CodeSoftMissing    = "dependency_absent"
	CodeToolError      = "tool_error"
	// CodeNeedsNotGranted is said of a hook that is not shown what it needs, and is
	// the reason why one that decides is off.
	CodeNeedsNotGranted = "needs_not_granted"
	// CodeJudgedEarlier is said of hooks of which one may rewrite what another one
	// has judged.
	CodeJudgedEarlier = "judged_earlier"
	// CodePhaseSkipped is said of a phase that a host has left out although hooks
	// are subscribed to it.
	CodePhaseSkipped = "phase_skipped"
	// CodeDenyIgnored is said of a host that went on after a deny or an ask.
	CodeDenyIgnored = "deny_ignored"
	// CodeHeadingEscaped is said of a section in whose text a heading of the
	// compiler's own was escaped.
	CodeHeadingEscaped = "heading_escaped"
	// CodeJobRefused is said of a background_job that the queue did not take; the
	// diagnostic's Cause says why.
	CodeJobRefused = "job_refused"
)

// Error is the one error type of Grapnel's boundaries. Compare codes with
// [CodeOf], causes with errors.Is.
type Error struct {
	Code Cause `json:"code"`
	// Phase and Subscription say where, if known.
	Phase        Phase  `json:"phase"`
	Subscription string `json:"subscription"`
	// Message is one sentence for people. On the host's side it is always safe to
	// show: the engine's own words, or words of a plugin that [Error.For] has opened.
	// A plugin writes its own words here.
	Message string `json:"message"`
	// Detail holds, on the host's side, the words of a plugin that belong to the
	// message: what it said, its panic, the end of its standard error, a value that
	// it sent. It is for the operator's log (see [DetailOf]) and never encoded.
	Detail string `json:"-"`
	// PluginCode is the plugin's own word where Code is CausePluginError.
	PluginCode string `json:"-"`
	// Retryable says that the same call may succeed later.
	Retryable bool `json:"-"`
	// SafeForUser is what a plugin says of its words: they may be shown outside the
	// operator's log, to whom Visibility opens them.
	SafeForUser bool       `json:"-"`
	Visibility  Visibility `json:"-"`
	// Err is the wrapped cause; it never crosses the wire.
	Err error `json:"-"`
}

// Errorf returns an Error with a formatted message; %w wraps a cause, or more
// than one.
func Errorf(code Cause, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	wrapped := errors.Unwrap(err)
	if _, several := err.(interface{ Unwrap() []error }); several {
		wrapped = err
	}
	return &Error{Code: code, Message: err.Error(), Err: wrapped}
}

// Error implements error: where, what and the code, without Detail.
func (e *Error) Error() string {
	where := ""
	if e.Phase != "" {
		where = string(e.Phase) + ": "
	}
	if e.Subscription != "" {
		where += e.Subscription + ": "
	}
	if e.Message == "" {
		return where + string(e.Code)
	}
	return where + e.Message + " (" + string(e.Code) + ")"
}

// Unwrap returns the wrapped cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first [Error] in err's chain: "" for nil,
// CauseInternal for an error that carries none.
func CodeOf(err error) Cause {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CauseInternal
}

// PluginCodePanic is the plugin's code of a [CausePluginError] that its sdk has made
// of a panic: unlike any other, it says nothing about what came of the call.
const PluginCodePanic = "panic"

// ConfigError refuses a plugin's configuration and says where the mistake is. Its
// words answer the operator, who wrote the configuration, and nobody else: New and
// "grapnel config check" show them with their place in the file.
type ConfigError struct {
	// Pointer is a JSON pointer (RFC 6901) into the configuration; "" is the
	// whole. The host turns it into a file and a line.
	Pointer string
	// Message is one sentence for the operator.
	Message string
}

// Error implements error.
func (e *ConfigError) Error() string {
	if e.Pointer == "" {
		return e.Message
	}
	return e.Pointer + ": " + e.Message
}

// Diagnostic is one remark about a dispatch, for people and programs.
type Diagnostic struct {
	// Code is a Cause, one of the Code constants, or a plugin's own word.
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Message is one sentence for people. On the host's side it is always safe to
	// show, like that of an [Error]; a plugin writes its own words here.
	Message string `json:"message"`
	// Detail holds, on the host's side, the words of a plugin that belong to the
	// message. It is for the operator's log and never encoded.
	Detail string `json:"-"`
	// Cause is why the hook failed, or its job was not queued, in a diagnostic that a
	// failure has left behind ([CodeFailOpen], [CodeJobRefused]); empty in others.
	Cause Cause `json:"cause,omitempty"`
	// Plugin and Subscription say whose it is; OtherSubscription and Slot are
	// the other party and the place of a conflict.
	Plugin            string `json:"plugin"`
	Subscription      string `json:"subscription"`
	OtherSubscription string `json:"other_subscription"`
	Slot              string `json:"slot"`
	// SafeForUser is what a plugin says of its words: they may be shown outside the
	// operator's log, to whom Visibility opens them. Messages of the engine's own
	// need neither.
	SafeForUser bool `json:"-"`
	// Visibility is that of the subscription; empty counts as VisibilityInternal.
	Visibility Visibility `json:"-"`
}

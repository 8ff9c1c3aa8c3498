package phases

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Cause is the stable word, on the wire, in the ledger and in metrics, for why something failed or was refused.
type Cause string

// The causes. CauseDenied, CauseCancelled, CauseInterrupted and CauseTurnNeeded are not
// failures of a hook: see [Cause.Failure].
const (
	// CauseDenied: a hook denied the turn or the call: a decision, not a failure.
	CauseDenied          Cause = "denied"
	CauseCancelled       Cause = "cancelled"        // the caller went away: its wish, not a failure
	CauseTimeout         Cause = "timeout"          // no answer within its time
	CauseCrash           Cause = "crash"            // the process ended
	CauseOOM             Cause = "oom"              // the process was killed for its memory
	CauseUnavailable     Cause = "unavailable"      // the plugin starts, or waits for its next start
	CauseQuarantined     Cause = "quarantined"      // the plugin failed too often, or no restart helps
	CauseBreakerOpen     Cause = "breaker_open"     // five timeouts, crashes or invalid answers in a row; tried again after 10 s
	CauseBudgetExhausted Cause = "budget_exhausted" // no time was left before it began
	CauseOverloaded      Cause = "overloaded"       // too many calls wait for the plugin
	CauseOversizeRequest Cause = "oversize_request" // the message to the plugin exceeds `limits.frame`
	CauseOversizeReply   Cause = "oversize_reply"   // the answer exceeds `limits.frame`
	CauseSessionReset    Cause = "session_reset"    // the session ended during the call
	CauseInvalidReply    Cause = "invalid_reply"    // the answer was malformed; nothing of it is used
	CauseForbidden       Cause = "forbidden"        // something was not granted
	CauseConflict        Cause = "conflict"         // another subscription holds the section, policy, tool or path
	CauseCondition       Cause = "condition"        // its condition failed, which is not false
	CausePluginError     Cause = "plugin_error"     // an error of the plugin's own: `plugin_code`
	// CauseVersionMismatch: another version of the protocol, or a feature that the host lacks.
	CauseVersionMismatch    Cause = "version_mismatch"
	CauseChecksumMismatch   Cause = "checksum_mismatch"   // the program is not the pinned one
	CauseUnsafePath         Cause = "unsafe_path"         // others may replace the program, or another process answers
	CauseDescriptionChanged Cause = "description_changed" // the plugin described itself differently before
	CauseStartTimeout       Cause = "start_timeout"       // the start took longer than `limits.start`
	CauseStartNoise         Cause = "start_noise"         // other output before the program's first line
	CauseInvalidFrame       Cause = "invalid_frame"       // output that is not a frame, with `transport: stdio`
	CauseExecFailed         Cause = "exec_failed"         // the program could not be run
	CauseRequiredMissing    Cause = "required_missing"    // a required subscription did not complete
	// CauseInterrupted: background work that may or may not have ended and must not be retried.
	CauseInterrupted Cause = "interrupted"
	// CauseTurnNeeded: the host dispatched a phase without the turn that one of its hooks needs.
	CauseTurnNeeded Cause = "turn_needed"
	CauseInternal   Cause = "internal" // a mistake in Grapnel
)

// FailureCauses returns the causes that a failure policy may name.
func FailureCauses() []Cause {
	return []Cause{
		CauseTimeout, CauseCrash, CauseOOM, CauseUnavailable, CauseQuarantined, CauseBreakerOpen, CauseBudgetExhausted, CauseOverloaded,
		CauseOversizeRequest, CauseOversizeReply, CauseSessionReset, CauseInvalidReply, CauseForbidden, CauseConflict, CauseCondition,
		CausePluginError, CauseVersionMismatch, CauseChecksumMismatch, CauseUnsafePath, CauseDescriptionChanged, CauseStartTimeout,
		CauseStartNoise, CauseInvalidFrame, CauseExecFailed, CauseRequiredMissing, CauseInternal,
	}
}

// Failure reports whether c is a failure.
func (c Cause) Failure() bool { return slices.Contains(FailureCauses(), c) }

// Codes of diagnostics that are not causes.
const (
	// CodeNotAllowed: the phase does not take this kind, the hook did not declare it, the hook ran in the
	// background and contributed in vain, or providers refuse the tool's input schema.
	CodeNotAllowed = "contribution_not_allowed"
	// CodeFailOpen: a hook failed and did not stop its phase. The diagnostic's cause says why.
	CodeFailOpen = "fail_open"
	// CodeNotGranted: a hook is off because it declares a kind that its plugin may not contribute.
	CodeNotGranted   = "not_granted"
	CodeOmitted      = "omitted"       // a limit left no room for a text
	CodeNotDelivered = "not_delivered" // what a plugin recalled, or a section of the prompt, did not reach the model
	CodeToolError    = "tool_error"    // a tool reported a failure to the model (a run's code)
	// CodeNeedsNotGranted: a hook may not see what it needs, or decides without saying what
	// it needs. It is also the code of a run that is off for this reason.
	CodeNeedsNotGranted = "needs_not_granted"
	// CodeJudgedEarlier: a hook decides before another one may rewrite what it judges, or
	// the host went on with other arguments or another text than were judged.
	CodeJudgedEarlier = "judged_earlier"
	// CodeForcedEnough: a hook denied the end of a turn that was made to go on 8 times; the turn may end.
	CodeForcedEnough = "forced_enough"
	// CodeJobRefused: the queue did not take a background_job. The diagnostic's cause says why.
	CodeJobRefused = "job_refused"
)

// Error is the one error type of Grapnel's boundaries. Compare codes with [CodeOf], causes with errors.Is.
type Error struct {
	Code Cause `json:"code"`
	// Phase and Subscription say where, if known.
	Phase        Phase  `json:"phase"`
	Subscription string `json:"subscription"`
	// Message is one sentence for people. On the host's side it is safe to show: the engine's own words, or a
	// plugin's that [Error.For] opened. A plugin writes its own words here.
	Message string `json:"message"`
	// Detail holds, on the host's side, a plugin's words, panic, output or value that
	// belong to the message. It is for the operator's log (see [DetailOf]).
	Detail string `json:"-"`
	// PluginCode is the plugin's own word where Code is CausePluginError.
	PluginCode string `json:"-"`
	// DecisionRef is that of the decision that the error is about, on the host's side.
	DecisionRef *DecisionRef `json:"decision_ref,omitempty"`
	// Retryable says that the same call may succeed later.
	Retryable bool `json:"-"`
	// SafeForUser is a plugin's permission to show its words to those to whom Visibility opens them.
	SafeForUser bool       `json:"-"`
	Visibility  Visibility `json:"-"`
	// Err is the wrapped cause; it never crosses the wire.
	Err error `json:"-"`
}

// Errorf returns an Error with a formatted message; %w wraps causes.
func Errorf(code Cause, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	wrapped := errors.Unwrap(err)
	if _, several := err.(interface{ Unwrap() []error }); several {
		wrapped = err
	}
	return &Error{Code: code, Message: without(err.Error(), code), Err: wrapped}
}

// without is a message that does not name the code: whoever shows the code beside it names it once.
func without(message string, code Cause) string {
	return strings.ReplaceAll(message, " ("+string(code)+")", "")
}

// Words are what an error says beside its code ([CodeOf]).
func Words(err error) string { return without(err.Error(), CodeOf(err)) }

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
	return where + without(e.Message, e.Code) + " (" + string(e.Code) + ")"
}

// Unwrap returns the wrapped cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first [Error] in err's chain: "" for nil, CauseInternal if there is none.
func CodeOf(err error) Cause {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CauseInternal
}

// PluginCodePanic is the PluginCode of a [CausePluginError] that an sdk made of a panic;
// the call may or may not have taken effect.
const PluginCodePanic = "panic"

// ConfigError refuses a plugin's configuration. Its words answer the operator, who
// wrote it: New and "grapnel config check" show them with their place in the file.
type ConfigError struct {
	// Pointer is a JSON pointer (RFC 6901) into the configuration; "" is the whole.
	Pointer string
	Message string
	// AtKey says that the mistake is the key at Pointer, not its value. The wire does not carry it.
	AtKey bool
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
	// Message is one sentence for people, safe to show as in [Error].
	Message string `json:"message"`
	// Detail is as in [Error].
	Detail string `json:"-"`
	// Cause says why the hook failed or its job was not queued ([CodeFailOpen], [CodeJobRefused]).
	Cause Cause `json:"cause,omitempty"`
	// Plugin and Subscription own the diagnostic; OtherSubscription and Slot are the
	// other party and the place of a conflict.
	Plugin            string `json:"plugin"`
	Subscription      string `json:"subscription"`
	OtherSubscription string `json:"other_subscription"`
	Slot              string `json:"slot"`
	// SafeForUser and Visibility are as in [Error].
	SafeForUser bool       `json:"-"`
	Visibility  Visibility `json:"-"`
}

package runtime

import (
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// EventKind says what an Event is about.
type EventKind string

// The kinds of events.
const (
	// EventPlugin is a change of a plugin's state.
	EventPlugin EventKind = "plugin"
	// EventRun is a finished run of a hook, a finished call of a tool, or a finished
	// call that a plugin made of the host's model; it carries the run. Message is why
	// it failed.
	EventRun EventKind = "run"
	// EventFailOpen is a failure that did not stop its phase.
	EventFailOpen EventKind = "fail_open"
	// EventDropped is an answer that was late, double, stale or unknown.
	EventDropped EventKind = "dropped"
	// EventLog is a line that a plugin wrote to its standard error. Count is how many
	// lines before it were dropped because of their rate, if it is about those.
	EventLog EventKind = "log"
	// EventAudit is an audit contribution: Code is its kind, Detail its JSON where the
	// plugin called that safe for users, else how long it is and its fingerprint.
	EventAudit EventKind = "audit"
	// EventDiagnostic is a remark that has no outcome to stand in, of background work or
	// of Options.OnExchange: State is its severity, Code its code.
	EventDiagnostic EventKind = "diagnostic"
	// EventJob is a change of a background job.
	EventJob EventKind = "job"
	// EventReload is a new generation in force, or one that was refused.
	EventReload EventKind = "reload"
	// EventDispatch is a finished dispatch of a phase; Took is its wall time. State is
	// that of a run: "succeeded", "failed" with its code, or "cancelled".
	EventDispatch EventKind = "dispatch"
	// EventBreaker is a change of a subscription's breaker; State is "closed",
	// "open" or "half_open".
	EventBreaker EventKind = "breaker"
	// EventAbandoned is a call that its caller has left and whose plugin has not
	// answered; of a tool it has no subscription.
	EventAbandoned EventKind = "abandoned"
	// EventManifest is trouble with the sink; Detail begins with the manifest's id.
	// State is "not_kept" for a manifest that was not taken, "kept_late" for one
	// that was taken after all, "usage_not_kept" for a provider's report,
	// "audits_not_kept" for audits that are in no manifest, and
	// "previous_unavailable" for a thread whose last manifest could not be read.
	EventManifest EventKind = "manifest"
)

// Event is one thing that happened in the engine. Logging, metrics and tracing
// are consumers of events; nothing else in the engine knows them.
type Event struct {
	Kind         EventKind
	Time         time.Time
	Plugin       string
	Subscription string
	Phase        phases.Phase
	// State is a plugin's or a job's state, the level of a log line, or the severity
	// of a diagnostic.
	State string
	// Code is the cause.
	Code string
	// Message is a sentence of the engine's, or of a plugin where the operator may
	// read it anyway (see phases.Visibility).
	Message string
	// Detail is for the operator alone: words of plugins, of a sink or of the system.
	// It is never encoded.
	Detail string `json:"-"`
	// Run is set for EventRun.
	Run *phases.Run
	// Took is set for EventDispatch, Count for some of EventLog.
	Took  time.Duration
	Count int
}

// emit counts an event, stamps it and tells it, if there is somebody to tell.
func (e *Engine) emit(ev Event) {
	e.tally.take(&ev, e.opts.Now)
	if e.opts.OnEvent == nil {
		return
	}
	ev.Time = e.opts.Now()
	e.opts.OnEvent(ev)
}

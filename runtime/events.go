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
	// EventRun is a finished run of a hook, call of a tool, or call of the host's model by a plugin; it carries the
	// run. Message is why it failed.
	EventRun EventKind = "run"
	// EventFailOpen is a failure that did not stop its phase.
	EventFailOpen EventKind = "fail_open"
	// EventDropped is an answer that was late, duplicate, stale or unknown.
	EventDropped EventKind = "dropped"
	// EventLog is a line that a plugin wrote to its standard error. Count is how many lines before it were dropped
	// because of their rate.
	EventLog EventKind = "log"
	// EventAudit is an audit contribution: Code is its kind, Detail its JSON if the plugin called that safe for
	// users, else its length and fingerprint.
	EventAudit EventKind = "audit"
	// EventDiagnostic is a diagnostic without an outcome: of background work or of Options.OnExchange. State is its
	// severity, Code its code.
	EventDiagnostic EventKind = "diagnostic"
	// EventJob is a change of a background job.
	EventJob EventKind = "job"
	// EventReload is a new generation in force, or one that was refused.
	EventReload EventKind = "reload"
	// EventDispatch is a finished dispatch of a phase; Took is its wall time. State is "succeeded", "failed" with its
	// code, or "cancelled".
	EventDispatch EventKind = "dispatch"
	// EventBreaker is a change of a subscription's breaker; State is "closed", "open" or "half_open".
	EventBreaker EventKind = "breaker"
	// EventAbandoned is an abandoned call whose plugin has not answered; for a tool it has no subscription.
	EventAbandoned EventKind = "abandoned"
	// EventManifest is a failure of the sink; Detail begins with the manifest's id. State is "not_kept" or
	// "kept_late" for a manifest, "usage_not_kept" for a provider's report, and "previous_unavailable" for a thread
	// whose last manifest could not be read.
	EventManifest EventKind = "manifest"
)

// Event is one thing that happened in the engine, for logging, metrics and tracing.
type Event struct {
	Kind         EventKind
	Time         time.Time
	Plugin       string
	Subscription string
	Phase        phases.Phase
	// State is the state of a plugin or job, the level of a log line, or the severity of a diagnostic.
	State string
	// Code is the cause.
	Code string
	// Message is the engine's sentence, or a plugin's if the operator may read it anyway (see phases.Visibility).
	Message string
	// Detail is for the operator alone: words of plugins, of a sink or of the system. It is never encoded.
	Detail string `json:"-"`
	// Run is set for EventRun.
	Run *phases.Run
	// Took is set for EventDispatch, Count for some of EventLog.
	Took  time.Duration
	Count int
}

func (e *Engine) emit(ev Event) {
	e.count(&ev)
	if e.opts.OnEvent == nil {
		return
	}
	ev.Time = e.opts.Now()
	e.opts.OnEvent(ev)
}

func (e *Engine) count(ev *Event) {
	c := e.stats
	switch ev.Kind {
	case EventRun:
		c.Run(ev.Run, ev.Message)
	case EventDispatch:
		c.Dispatch(ev.Phase, phases.RunState(ev.State), ev.Took)
	case EventReload:
		if ev.State == reloadInForce {
			c.Reload()
		} else {
			c.ReloadRefused()
		}
	case EventFailOpen:
		c.FailOpen(ev.Subscription)
	case EventAbandoned:
		c.Abandoned(ev.Plugin, ev.Subscription)
	case EventLog:
		c.LogDropped(ev.Plugin, ev.Count)
	case EventDropped:
		c.AnswerDropped(ev.Plugin)
	case EventJob:
		c.Job(ev.Plugin, ev.State)
	case EventPlugin:
		if s := phases.PluginState(ev.State); s == phases.PluginDegraded || s == phases.PluginBackoff || s == phases.PluginQuarantined {
			c.PluginFailed(ev.Plugin, ev.Code, ev.Message)
		}
	default: // nothing to count
	}
}

const reloadInForce = "in_force"

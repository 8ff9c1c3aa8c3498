package runtime

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/background"
	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/engine/stats"
	"github.com/grapnelhq/grapnel/internal/engine/supervise"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/phases"
)

// core is what the layers of an engine share: what the host has wired in, and what is reported to it.
type core struct {
	opts  Options
	stats *stats.Counters
	// exchangeFailed is set by the first failure of Options.OnExchange, the only one that is reported.
	exchangeFailed atomic.Bool
}

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
	// users, else its length and hash.
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

// Event is one thing that happened in the engine, for logging, metrics and tracing. A logger may be given it as a value.
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

// Level is how much an operator should care: errors are what needs somebody, warnings what went on without something,
// debug what happens all the time.
func (ev Event) Level() slog.Level {
	switch ev.Kind {
	case EventPlugin:
		return pluginLevel(phases.PluginState(ev.State))
	case EventFailOpen, EventAbandoned:
		return slog.LevelWarn
	case EventDiagnostic:
		return turnstate.LogLevel(phases.Severity(ev.State))
	case EventLog:
		level := slog.LevelInfo
		_ = level.UnmarshalText([]byte(ev.State)) // a word of ours
		return level
	case EventJob:
		return levelIf(slices.Contains([]string{background.StateLost, background.StateRefused, string(jobs.Discard)}, ev.State), slog.LevelWarn, slog.LevelDebug)
	case EventReload:
		return levelIf(ev.State == reloadInForce, slog.LevelInfo, slog.LevelError)
	case EventBreaker:
		return levelIf(ev.State == string(supervise.BreakerOpen), slog.LevelWarn, slog.LevelInfo)
	case EventManifest:
		return levelIf(ev.State == stateKeptLate, slog.LevelWarn, slog.LevelError)
	case EventAudit:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

func levelIf(condition bool, yes, no slog.Level) slog.Level {
	if condition {
		return yes
	}
	return no
}

func pluginLevel(s phases.PluginState) slog.Level {
	switch s {
	case phases.PluginQuarantined:
		return slog.LevelError
	case phases.PluginDegraded, phases.PluginBackoff:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// LogValue implements slog.LogValuer: the fields that are set, as a group. Detail is among them, since the log is the
// operator's.
func (ev Event) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("kind", string(ev.Kind))}
	for _, a := range []slog.Attr{
		slog.String("plugin", ev.Plugin), slog.String("subscription", ev.Subscription), slog.String("phase", string(ev.Phase)),
		slog.String("state", ev.State), slog.String("code", ev.Code), slog.String("message", ev.Message), slog.String("detail", ev.Detail),
	} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	if ev.Took > 0 {
		attrs = append(attrs, slog.Duration("took", ev.Took))
	}
	if ev.Count > 0 {
		attrs = append(attrs, slog.Int("count", ev.Count))
	}
	return slog.GroupValue(attrs...)
}

func (e *core) emit(ev Event) {
	e.count(&ev)
	if e.opts.OnEvent == nil {
		return
	}
	ev.Time = e.opts.Now()
	e.opts.OnEvent(ev)
}

func (e *core) count(ev *Event) {
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

// States of an EventReload and of an EventManifest.
const (
	reloadInForce = "in_force"
	stateNotKept  = "not_kept"
	stateKeptLate = "kept_late"
)

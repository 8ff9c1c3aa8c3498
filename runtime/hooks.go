package runtime

import (
	"time"

	"github.com/grapnelhq/grapnel/internal/latency"
	"github.com/grapnelhq/grapnel/phases"
)

// Overview is how an engine is: what is in force, and what has become of it so
// far. Figures of a subscription go on over reloads as long as it stays, and so do
// those of a plugin; nothing is kept of what has left the configuration. Its JSON is
// part of the output of "grapnel status". Lists are empty, not nil.
type Overview struct {
	// Plugins has a row for each declared plugin, in the order of the file.
	Plugins []PluginHealth `json:"plugins"`
	// Hooks has a row for each expected subscription, phase by phase in plan order;
	// then one for the tools of each plugin that were called, and one for what each
	// has asked of the host's model.
	Hooks []HookRow `json:"hooks"`
	// Phases has a row for each phase that was dispatched, in the order of the table.
	Phases []PhaseRow `json:"phases"`
	// Reloads are the configurations that came into force after the first one, and
	// those that were refused.
	Reloads        uint64 `json:"reloads"`
	ReloadsRefused uint64 `json:"reloads_refused"`
}

// Figures are what became of the runs of one subscription, of all calls of one
// plugin's tools, or of all calls that it made of the host's model.
type Figures struct {
	// Runs is how often it had to run: all of States but filtered, disabled, cached
	// and queued. Of a queued hook each attempt counts.
	Runs uint64 `json:"runs"`
	// Cached is how often its answer came from memory.
	Cached uint64 `json:"cached"`
	// States are all rows of the ledger by their state; those that never occurred are
	// absent.
	States map[phases.RunState]uint64 `json:"states"`
	// Failed is how many runs failed, Failures the same by cause. A denial is no
	// failure, nor is a tool that tells the model of one.
	Failed   uint64                  `json:"failed"`
	Failures map[phases.Cause]uint64 `json:"failures"`
	// FailedInARow is how many failed since one last succeeded: 0 for what is well.
	FailedInARow uint64 `json:"failed_in_a_row"`
	// FailOpen is how many failures did not stop their phase.
	FailOpen uint64 `json:"fail_open"`
	// Abandoned is how many calls were left and are still not answered;
	// AbandonedTotal counts those that were since.
	Abandoned      int    `json:"abandoned"`
	AbandonedTotal uint64 `json:"abandoned_total"`
	// LastError is the latest failure; null if there was none.
	LastError *LastError `json:"last_error"`
	// Took is how long the plugin took where it was asked, all attempts of a run
	// together, without the wait for a slot.
	Took Latency `json:"took"`
}

// HookRow is one subscription in force, or the tools or model calls of one plugin
// together.
type HookRow struct {
	// Subscription is the full id and Hook the plugin's own name for it; both are
	// empty for tools and model calls, whose names models and plugins make up.
	Subscription string `json:"subscription"`
	Hook         string `json:"hook"`
	Plugin       string `json:"plugin"`
	// Phase is the subscription's, phases.PhaseToolCall or phases.PhaseHostCall;
	// Role its stage in the plan, or phases.StageTool or phases.StageHost.
	Phase phases.Phase `json:"phase"`
	Role  phases.Role  `json:"role"`
	// Off says why it never runs, in the word that the ledger has; empty for one that
	// does.
	Off string `json:"off"`
	// Breaker is "closed", "open" or "half_open"; empty where there is none.
	Breaker string `json:"breaker"`
	Figures
}

// PluginHealth is one declared plugin as it is now.
type PluginHealth struct {
	phases.PluginRow

	// Since is when it came into its state. StartedAt is when what takes calls now
	// was started, absent where nothing does; NextStart when it is started again,
	// while it backs off.
	Since     time.Time `json:"since"`
	StartedAt time.Time `json:"started_at,omitzero"`
	NextStart time.Time `json:"next_start,omitzero"`
	// MemoryBytes is what its process and the descendants of that hold in memory; 0
	// inside the host and where it cannot be measured.
	MemoryBytes int64 `json:"memory_bytes"`
	// LastError is the latest trouble of the process, also after it came up again;
	// null if there was none.
	LastError *LastError `json:"last_error"`
	// Working calls hold one of the plugin's slots, of which there are Concurrency;
	// Waiting ones want one. Abandoned are those that were left and still hold one.
	Working     int `json:"working"`
	Waiting     int `json:"waiting"`
	Concurrency int `json:"concurrency"`
	Abandoned   int `json:"abandoned"`
	// AbandonedTotal, LogLinesDropped (by their rate), AnswersDropped (late, double,
	// stale …) and Truncations (texts that were cut, by the limit that did it) count
	// from the beginning.
	AbandonedTotal  uint64                  `json:"abandoned_total"`
	LogLinesDropped uint64                  `json:"log_lines_dropped"`
	AnswersDropped  uint64                  `json:"answers_dropped"`
	Truncations     map[phases.Limit]uint64 `json:"truncations"`
	// Jobs are the changes of its background work by their word.
	Jobs map[string]uint64 `json:"jobs"`
	// Took is how long its hooks and tools took, together. Queued is how long calls
	// waited that found no slot free.
	Took   Latency `json:"took"`
	Queued Latency `json:"queued"`
	// Replies are the sizes of its answers; none inside the host.
	Replies Sizes `json:"replies"`
}

// PhaseRow is what became of the dispatches of one phase.
type PhaseRow struct {
	Phase      phases.Phase `json:"phase"`
	Dispatches uint64       `json:"dispatches"`
	// Failed are those that failed closed, Cancelled those whose caller has gone.
	Failed    uint64 `json:"failed"`
	Cancelled uint64 `json:"cancelled"`
	// Took is the wall time from the host's call to the outcome.
	Took Latency `json:"took"`
}

// LastError is the latest failure of a hook or a process.
type LastError struct {
	Code string `json:"code"`
	// PluginCode is the plugin's own word in a plugin_error.
	PluginCode string `json:"plugin_code"`
	// Message is for operators. What a plugin said of its own failure is left out
	// unless it called that safe: it may hold what users wrote. The last lines that a
	// process wrote before it crashed are in it, as in the plugin's detail.
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// Latency is the distribution of durations, from the beginning. Quantiles are within
// 3 % of the exact ones; all are 0 where nothing was counted.
type Latency struct {
	Count uint64  `json:"count"`
	P50MS float64 `json:"p50_ms"`
	P99MS float64 `json:"p99_ms"`
	MaxMS float64 `json:"max_ms"`
	// counted is nil in what came over a wire.
	counted *latency.Snapshot
}

// newLatency is the distribution of a snapshot, which it keeps.
func newLatency(s *latency.Snapshot) Latency {
	return Latency{
		Count: s.Count(), P50MS: millis(s.Quantile(0.5)), P99MS: millis(s.Quantile(0.99)), MaxMS: millis(s.Max()), counted: s,
	}
}

// latencyOf is what a histogram holds now.
func latencyOf(h *latency.Histogram) Latency {
	s := h.Snapshot()
	return newLatency(&s)
}

// Sum is all durations together; 0 for a value that was decoded from JSON.
func (l *Latency) Sum() time.Duration {
	if l.counted == nil {
		return 0
	}
	return l.counted.Sum()
}

// Within is how many were shorter than d: exactly so for powers of two of a
// microsecond up to 2²⁷, for others that of a bound that is up to a sixteenth less. It
// is 0 for a value that was decoded from JSON.
func (l *Latency) Within(d time.Duration) uint64 {
	if l.counted == nil {
		return 0
	}
	return l.counted.Within(d)
}

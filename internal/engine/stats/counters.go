// Package stats counts what becomes of an engine's work, in the types that package runtime shows to hosts. [Counters]
// is the only place that counts; the engine's Overview, the gateway's /metrics, and package telemetry are views of
// it.
//
// Stability: internal.
package stats

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// Overview is the state of an engine and what it has counted so far. Stats of a subscription or plugin continue over
// reloads while it stays in the configuration. The JSON is part of the output of "grapnel status". Lists are never
// nil.
type Overview struct {
	// Plugins has a row for each declared plugin, in the order of the file.
	Plugins []PluginHealth `json:"plugins"`
	// Hooks has a row for each expected subscription, by phase in plan order; then one for the tools, and one for the
	// model calls, of each plugin that were called.
	Hooks []HookRow `json:"hooks"`
	// Phases has a row for each phase that was dispatched, in the order of the table.
	Phases []PhaseRow `json:"phases"`
	// Reloads counts the configurations that came into force after the first one.
	Reloads        uint64 `json:"reloads"`
	ReloadsRefused uint64 `json:"reloads_refused"`
}

// RunStats counts the runs of one subscription, of all calls of one plugin's tools, or of all calls that a plugin
// made of the host's model.
type RunStats struct {
	// Runs is how often it had to run: all of States but filtered, disabled, cached and queued. Each attempt of a
	// queued hook counts.
	Runs   uint64 `json:"runs"`
	Cached uint64 `json:"cached"` // how often its answer came from the cache
	// States counts all rows of the ledger by state, if there are any.
	States map[phases.RunState]uint64 `json:"states"`
	// Failed counts failed runs, Failures the same by cause. Neither a denial nor a tool's error for the model is a
	// failure.
	Failed   uint64                  `json:"failed"`
	Failures map[phases.Cause]uint64 `json:"failures"`
	// FailedInARow counts the failures since the last success; 0 for a healthy one.
	FailedInARow uint64 `json:"failed_in_a_row"`
	FailOpen     uint64 `json:"fail_open"` // how many failures did not stop their phase
	// Abandoned counts abandoned calls that are unanswered, AbandonedTotal all of them.
	Abandoned      int        `json:"abandoned"`
	AbandonedTotal uint64     `json:"abandoned_total"`
	LastError      *LastError `json:"last_error"` // the latest failure; null if there was none
	// Took is the time of answers, all attempts of a run together, without the wait for a slot.
	Took Latency `json:"took"`
}

// HookRow is one subscription in force, or the tools or model calls of one plugin together.
type HookRow struct {
	// Subscription is the full id and Hook the plugin's own name for it; both are empty for tools and model calls.
	Subscription string `json:"subscription"`
	Hook         string `json:"hook"`
	Plugin       string `json:"plugin"`
	// Phase may be phases.PhaseToolCall or phases.PhaseHostCall; Role is the stage in the plan, phases.StageTool or
	// phases.StageHost.
	Phase   phases.Phase `json:"phase"`
	Role    phases.Role  `json:"role"`
	Off     string       `json:"off"`     // Off says why it never runs, as the ledger does; empty if it can run
	Breaker string       `json:"breaker"` // "closed", "open" or "half_open"; empty for rows without a breaker
	// TimeoutMS is the timeout in force: the plan's, or the plugin's limits.tool or limits.model.time. Budget is the
	// text budget in force.
	TimeoutMS float64           `json:"timeout_ms"`
	Budget    phases.TextBudget `json:"budget,omitzero"`
	RunStats
}

// PluginHealth is one declared plugin as it is now.
type PluginHealth struct {
	phases.PluginRow

	// Requested is what the plugin asks for by its description: kinds of contributions (contribute), what its hooks
	// need to see, and its tools. It names the rest only as it uses it. Hooks that the operator switched off ask for
	// nothing. It is null until the plugin has described itself.
	Requested *phases.Grants `json:"requested"`
	// Grants is what the operator granted. Neither may be changed.
	Grants phases.Grants `json:"grants"`
	// Since is when it entered its state, StartedAt when the process that takes calls was started; NextStart is the
	// next restart during a back-off.
	Since     time.Time `json:"since"`
	StartedAt time.Time `json:"started_at,omitzero"`
	NextStart time.Time `json:"next_start,omitzero"`
	// MemoryBytes is the resident memory of its process and descendants; 0 for plugins inside the host and where it
	// cannot be measured.
	MemoryBytes int64      `json:"memory_bytes"`
	LastError   *LastError `json:"last_error"` // the latest failure of the process; null if there was none
	// Working calls hold one of the plugin's Concurrency slots, Waiting calls wait for one. Abandoned calls are
	// unanswered and still hold their slot.
	Working     int `json:"working"`
	Waiting     int `json:"waiting"`
	Concurrency int `json:"concurrency"`
	Abandoned   int `json:"abandoned"`
	// AbandonedTotal, LogLinesDropped (by the rate limit), AnswersDropped (late, duplicate, stale …) and Truncations
	// (cut texts, by limit) count from the beginning.
	AbandonedTotal  uint64                  `json:"abandoned_total"`
	LogLinesDropped uint64                  `json:"log_lines_dropped"`
	AnswersDropped  uint64                  `json:"answers_dropped"`
	Truncations     map[phases.Limit]uint64 `json:"truncations"`
	Jobs            map[string]uint64       `json:"jobs"` // Jobs counts the changes of its background jobs by state
	Took            Latency                 `json:"took"` // the time of its hooks and tools together, Queued the wait for a slot
	Queued          Latency                 `json:"queued"`
	Replies         Sizes                   `json:"replies"` // Replies are the sizes of its answers; empty for plugins inside the host
}

// PhaseRow counts the dispatches of one phase.
type PhaseRow struct {
	Phase      phases.Phase `json:"phase"`
	Dispatches uint64       `json:"dispatches"`
	// Failed counts those that failed closed, Cancelled those cancelled by their caller.
	Failed    uint64  `json:"failed"`
	Cancelled uint64  `json:"cancelled"`
	Took      Latency `json:"took"` // the wall time from the host's call to the outcome
}

// LastError is the latest failure of a hook or a process.
type LastError struct {
	Code       string `json:"code"`
	PluginCode string `json:"plugin_code"` // the plugin's own code in a plugin_error
	// Message is for operators, without a plugin's own message unless it was marked safe. The last lines of a crashed
	// process are in it.
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// Bounds of plugins' texts in a LastError, in characters.
const (
	maxCodeChars    = 128
	maxMessageChars = 1000
)

// Counters counts for [Overview]. Counting a run takes no lock and does not allocate. The maps of counters are
// replaced when the plan changes; events of unknown names are ignored.
type Counters struct {
	now   func() time.Time
	known atomic.Pointer[known]
	// phases are those of the engine's table and do not change.
	phases                  map[phases.Phase]*phaseCounters
	order                   []phases.Phase
	causes                  map[phases.Cause]bool
	reloads, reloadsRefused atomic.Uint64
	changing                sync.Mutex // held while known is replaced
}

type known struct {
	hooks   map[string]*RunCounters
	plugins map[string]*pluginCounters
}

// Hook is a subscription whose runs are counted.
type Hook struct {
	ID, Plugin string
	Phase      phases.Phase
}

// RunCounters count the runs of one subscription, or of a plugin's tools or model calls.
type RunCounters struct {
	of     *pluginCounters
	phase  phases.Phase
	states [len(runStates)]atomic.Uint64
	inARow atomic.Uint64
	took   Histogram

	failOpen, abandoned atomic.Uint64
	// unanswered may be negative for a moment, when an abandoned call is answered before it is counted.
	unanswered atomic.Int64

	mu       sync.Mutex
	failures map[phases.Cause]uint64
	last     *LastError
}

type pluginCounters struct {
	name         string
	tools, model RunCounters
	queued       Histogram
	replies      sizes

	logLines, answers, abandoned atomic.Uint64

	mu   sync.Mutex
	cuts map[phases.Limit]uint64
	jobs map[string]uint64
	last *LastError
}

type phaseCounters struct {
	took Histogram
	// The number of dispatches is their sum, so that it cannot decrease.
	succeeded, failed, cancelled atomic.Uint64
}

// runStates are the states of a run, the most frequent first.
//
//nolint:gochecknoglobals // an immutable table
var runStates = [...]phases.RunState{
	phases.StateSucceeded, phases.StateCached, phases.StateFiltered, phases.StateDisabled, phases.StateDenied, phases.StateQueued,
	phases.StateUnavailable, phases.StateTimedOut, phases.StateFailed, phases.StateCancelled, phases.StateBudgetExhausted, phases.StateShadowed,
}

// New returns counters for the phases of a table. Now is the clock of failures.
func New(table *phases.Table, now func() time.Time) *Counters {
	c := &Counters{now: now, phases: map[phases.Phase]*phaseCounters{}, causes: map[phases.Cause]bool{}}
	for _, row := range table.Rows() {
		c.phases[row.Phase] = &phaseCounters{}
		c.order = append(c.order, row.Phase)
	}
	for _, cause := range phases.FailureCauses() {
		c.causes[cause] = true
	}
	c.known.Store(&known{hooks: map[string]*RunCounters{}, plugins: map[string]*pluginCounters{}})
	return c
}

// Expect starts to count plugins and hooks; existing counters continue.
func (c *Counters) Expect(plugins []string, hooks []Hook) {
	c.change(func(next *known) {
		for _, name := range plugins {
			if next.plugins[name] == nil {
				next.plugins[name] = newPluginCounters(name)
			}
		}
		for _, h := range hooks {
			of := next.plugins[h.Plugin]
			if was := next.hooks[h.ID]; was == nil || was.phase != h.Phase || was.of != of {
				next.hooks[h.ID] = &RunCounters{of: of, phase: h.Phase}
			}
		}
	})
}

// Forget drops the plugins and hooks that keepPlugin and keepHook report false for.
func (c *Counters) Forget(keepPlugin func(name string) bool, keepHook func(plugin, id string) bool) {
	c.change(func(next *known) {
		maps.DeleteFunc(next.plugins, func(name string, _ *pluginCounters) bool { return !keepPlugin(name) })
		maps.DeleteFunc(next.hooks, func(id string, r *RunCounters) bool {
			return next.plugins[r.of.name] != r.of || !keepHook(r.of.name, id)
		})
	})
}

func (c *Counters) change(edit func(next *known)) {
	c.changing.Lock()
	defer c.changing.Unlock()
	was := c.known.Load()
	next := &known{hooks: maps.Clone(was.hooks), plugins: maps.Clone(was.plugins)}
	edit(next)
	c.known.Store(next)
}

func newPluginCounters(name string) *pluginCounters {
	p := &pluginCounters{name: name}
	p.tools.of, p.tools.phase = p, phases.PhaseToolCall
	p.model.of, p.model.phase = p, phases.PhaseHostCall
	return p
}

// Run counts a settled row of the ledger; message says why it failed.
func (c *Counters) Run(run *phases.Run, message string) {
	r := c.countersOf(run)
	if r == nil {
		return
	}
	if i := slices.Index(runStates[:], run.State); i >= 0 {
		r.states[i].Add(1)
	}
	r.measure(run)
	switch run.State {
	case phases.StateSucceeded, phases.StateDenied, phases.StateShadowed:
		if r.inARow.Load() != 0 {
			r.inARow.Store(0)
		}
	case phases.StateFailed, phases.StateTimedOut, phases.StateUnavailable, phases.StateBudgetExhausted:
		c.fail(r, run, message)
	}
}

// countersOf returns the counters of a run; nil for a tool or model call that was never made: a caller could repeat
// it at will.
func (c *Counters) countersOf(run *phases.Run) *RunCounters {
	known := c.known.Load()
	if run.Phase != phases.PhaseToolCall && run.Phase != phases.PhaseHostCall {
		return known.hooks[run.Subscription]
	}
	p := known.plugins[run.Plugin]
	switch {
	case p == nil || run.Attempts == 0:
		return nil
	case run.Phase == phases.PhaseToolCall:
		return &p.tools
	default:
		return &p.model
	}
}

// measure counts durations and sizes of a run whose plugin was called.
func (r *RunCounters) measure(run *phases.Run) {
	if run.Attempts > 0 && (run.Incarnation > 0 || run.Phase == phases.PhaseHostCall) {
		r.took.Record(fromMillis(run.DurationMS))
	}
	if run.Phase == phases.PhaseHostCall {
		return
	}
	if run.QueueMS > 0 {
		r.of.queued.Record(fromMillis(run.QueueMS))
	}
	if run.BytesOut > 0 {
		r.of.replies.record(run.BytesOut)
	}
	if len(run.Cut) > 0 {
		r.of.cut(run.Cut)
	}
}

// fail counts a failure by its cause, of a closed list.
func (c *Counters) fail(r *RunCounters, run *phases.Run, message string) {
	cause := phases.Cause(run.Code)
	if !c.causes[cause] {
		cause = phases.CauseInternal
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inARow.Add(1)
	if r.failures == nil {
		r.failures = map[phases.Cause]uint64{}
	}
	r.failures[cause]++
	r.last = &LastError{
		Code: run.Code, PluginCode: text.Sanitize(run.PluginCode, maxCodeChars), Message: text.Sanitize(message, maxMessageChars), At: c.now(),
	}
}

func (p *pluginCounters) cut(list []phases.Cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cuts == nil {
		p.cuts = map[phases.Limit]uint64{}
	}
	for i := range list {
		p.cuts[list[i].Limit]++ // a closed list: merging sets it
	}
}

// Dispatch counts a finished dispatch.
func (c *Counters) Dispatch(phase phases.Phase, state phases.RunState, took time.Duration) {
	p := c.phases[phase]
	if p == nil {
		return
	}
	p.took.Record(took)
	switch state {
	case phases.StateFailed:
		p.failed.Add(1)
	case phases.StateCancelled:
		p.cancelled.Add(1)
	default:
		p.succeeded.Add(1)
	}
}

// Reload counts a configuration that came into force, the first one included.
func (c *Counters) Reload() { c.reloads.Add(1) }

// ReloadRefused counts a configuration that did not.
func (c *Counters) ReloadRefused() { c.reloadsRefused.Add(1) }

// FailOpen counts a failure that did not stop its phase.
func (c *Counters) FailOpen(subscription string) {
	if r := c.known.Load().hooks[subscription]; r != nil {
		r.failOpen.Add(1)
	}
}

// Abandoned counts an abandoned call.
func (c *Counters) Abandoned(plugin, subscription string) {
	if r := c.Caller(plugin, subscription); r != nil {
		r.abandoned.Add(1)
		r.of.abandoned.Add(1)
	}
}

// Caller returns the counters of a subscription, or those of a plugin's tools if it is empty; nil if there are none.
// All methods of nil counters do nothing.
func (c *Counters) Caller(plugin, subscription string) *RunCounters {
	known := c.known.Load()
	if subscription != "" {
		return known.hooks[subscription]
	}
	if p := known.plugins[plugin]; p != nil {
		return &p.tools
	}
	return nil
}

// Unanswered adds 1 for an abandoned call, and -1 when it is answered after all.
func (r *RunCounters) Unanswered(n int64) {
	if r != nil {
		r.unanswered.Add(n)
	}
}

// LogDropped counts lines of a plugin's log that were dropped.
func (c *Counters) LogDropped(plugin string, lines int) {
	if p := c.known.Load().plugins[plugin]; p != nil {
		p.logLines.Add(uint64(max(0, lines)))
	}
}

// AnswerDropped counts an answer that was not applied.
func (c *Counters) AnswerDropped(plugin string) {
	if p := c.known.Load().plugins[plugin]; p != nil {
		p.answers.Add(1)
	}
}

// Job counts a change of a background job; state is one of the engine's own words.
func (c *Counters) Job(plugin, state string) {
	p := c.known.Load().plugins[plugin]
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs == nil {
		p.jobs = map[string]uint64{}
	}
	p.jobs[state]++
}

// PluginFailed notes the latest failure of a plugin's process.
func (c *Counters) PluginFailed(plugin, code, message string) {
	p := c.known.Load().plugins[plugin]
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = &LastError{Code: code, Message: text.Sanitize(message, maxMessageChars), At: c.now()}
}

// Fill completes an overview whose Plugins and Hooks lack only what is counted, adds the rows of tools and model
// calls, and sets the rest.
func (c *Counters) Fill(o *Overview) {
	known := c.known.Load()
	took := map[string]*Snapshot{}
	for i := range o.Plugins {
		took[o.Plugins[i].Plugin] = &Snapshot{}
	}
	for i := range o.Hooks {
		row := &o.Hooks[i]
		row.RunStats = known.hooks[row.Subscription].stats()
		took[row.Plugin].Merge(row.Took.snapshot)
	}
	for i := range o.Plugins {
		row := &o.Plugins[i]
		p := cmp.Or(known.plugins[row.Plugin], newPluginCounters(row.Plugin))
		tools := HookRow{Plugin: p.name, Phase: p.tools.phase, Role: phases.StageTool, RunStats: p.tools.stats()}
		model := HookRow{Plugin: p.name, Phase: p.model.phase, Role: phases.StageHost, RunStats: p.model.stats()}
		for _, calls := range []HookRow{tools, model} {
			if calls.Runs > 0 {
				o.Hooks = append(o.Hooks, calls)
			}
		}
		took[row.Plugin].Merge(tools.Took.snapshot)
		row.Took = took[row.Plugin].latency()
		p.fill(row)
	}
	o.Phases = c.phaseRows()
	o.Reloads, o.ReloadsRefused = c.reloads.Load(), c.reloadsRefused.Load()
	if o.Reloads > 0 {
		o.Reloads-- // the first configuration is not a reload
	}
}

// stats is what has been counted so far. Failures are read before runs, so that they are never more.
func (r *RunCounters) stats() RunStats {
	if r == nil {
		r = &RunCounters{}
	}
	out := RunStats{States: map[phases.RunState]uint64{}}
	r.mu.Lock()
	out.LastError, out.Failures, out.FailedInARow = r.last, clone(r.failures), r.inARow.Load()
	r.mu.Unlock()
	for _, n := range out.Failures {
		out.Failed += n
	}
	out.FailOpen, out.Abandoned, out.AbandonedTotal = r.failOpen.Load(), int(max(0, r.unanswered.Load())), r.abandoned.Load()
	out.Took = r.took.latency()
	for i := range r.states {
		n := r.states[i].Load()
		if n == 0 {
			continue
		}
		out.States[runStates[i]] = n
		switch runStates[i] {
		case phases.StateCached:
			out.Cached = n
		case phases.StateFiltered, phases.StateDisabled, phases.StateQueued:
		default:
			out.Runs += n
		}
	}
	return out
}

func (p *pluginCounters) fill(row *PluginHealth) {
	row.LogLinesDropped, row.AnswersDropped, row.AbandonedTotal = p.logLines.Load(), p.answers.Load(), p.abandoned.Load()
	row.Queued, row.Replies = p.queued.latency(), p.replies.snapshot()
	p.mu.Lock()
	defer p.mu.Unlock()
	row.LastError, row.Truncations, row.Jobs = p.last, clone(p.cuts), clone(p.jobs)
}

func (c *Counters) phaseRows() []PhaseRow {
	rows := []PhaseRow{}
	for _, phase := range c.order {
		p := c.phases[phase]
		row := PhaseRow{Phase: phase, Failed: p.failed.Load(), Cancelled: p.cancelled.Load()}
		if row.Dispatches = p.succeeded.Load() + row.Failed + row.Cancelled; row.Dispatches > 0 {
			row.Took = p.took.latency()
			rows = append(rows, row)
		}
	}
	return rows
}

// clone copies a map; the result is never nil.
func clone[K comparable](m map[K]uint64) map[K]uint64 {
	if m == nil {
		return map[K]uint64{}
	}
	return maps.Clone(m)
}

func fromMillis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Package stats counts what becomes of an engine's work, in the types that package runtime shows to hosts. [Counters]
// is the only place that counts; the engine's Overview, the gateway's /metrics, and package telemetry are views of
// it.
//
// Stability: internal.
package stats

import (
	"maps"
	"slices"
	"sync"
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

// Counters counts for [Overview], in its own rows. Counting a run does not allocate; events of unknown names are
// ignored.
type Counters struct {
	now    func() time.Time
	order  []phases.Phase
	causes map[phases.Cause]bool

	mu                      sync.Mutex // guards what follows, and all that it points to
	phases                  map[phases.Phase]*phaseCounters
	hooks                   map[string]*runCounters
	plugins                 map[string]*pluginCounters
	reloads, reloadsRefused uint64
}

// Hook is a subscription whose runs are counted.
type Hook struct {
	ID, Plugin string
	Phase      phases.Phase
}

// runCounters count the runs of one subscription, or of a plugin's tools or model calls.
type runCounters struct {
	RunStats

	of    *pluginCounters
	phase phases.Phase
	took  Histogram
	// unanswered may be negative for a moment, when an abandoned call is answered before it is counted.
	unanswered int
}

// pluginCounters count what a plugin's row shows beside its state.
type pluginCounters struct {
	PluginHealth

	tools, model runCounters
	queued       Histogram
}

type phaseCounters struct {
	PhaseRow

	took Histogram
}

// New returns counters for the phases of a table. Now is the clock of failures.
func New(table *phases.Table, now func() time.Time) *Counters {
	c := &Counters{
		now: now, causes: map[phases.Cause]bool{}, phases: map[phases.Phase]*phaseCounters{}, hooks: map[string]*runCounters{}, plugins: map[string]*pluginCounters{},
	}
	for _, row := range table.Rows() {
		c.phases[row.Phase] = &phaseCounters{PhaseRow: PhaseRow{Phase: row.Phase}}
		c.order = append(c.order, row.Phase)
	}
	for _, cause := range phases.FailureCauses() {
		c.causes[cause] = true
	}
	return c
}

// Expect starts to count plugins and hooks; existing counters continue.
func (c *Counters) Expect(plugins []string, hooks []Hook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range plugins {
		if c.plugins[name] == nil {
			c.plugins[name] = newPluginCounters(name)
		}
	}
	for _, h := range hooks {
		of := c.plugins[h.Plugin]
		if was := c.hooks[h.ID]; was == nil || was.phase != h.Phase || was.of != of {
			c.hooks[h.ID] = newRunCounters(of, h.Phase)
		}
	}
}

// Forget drops the plugins and hooks that keepPlugin and keepHook report false for.
func (c *Counters) Forget(keepPlugin func(name string) bool, keepHook func(plugin, id string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.plugins, func(name string, _ *pluginCounters) bool { return !keepPlugin(name) })
	maps.DeleteFunc(c.hooks, func(id string, r *runCounters) bool {
		return c.plugins[r.of.Plugin] != r.of || !keepHook(r.of.Plugin, id)
	})
}

func newPluginCounters(name string) *pluginCounters {
	p := &pluginCounters{PluginHealth: PluginHealth{PluginRow: phases.PluginRow{Plugin: name}, Truncations: map[phases.Limit]uint64{}, Jobs: map[string]uint64{}}}
	p.tools, p.model = *newRunCounters(p, phases.PhaseToolCall), *newRunCounters(p, phases.PhaseHostCall)
	p.Replies.Within = make([]uint64, len(SizeBounds()))
	return p
}

func newRunCounters(of *pluginCounters, phase phases.Phase) *runCounters {
	return &runCounters{of: of, phase: phase, RunStats: RunStats{States: map[phases.RunState]uint64{}, Failures: map[phases.Cause]uint64{}}}
}

// Run counts a settled row of the ledger; message says why it failed.
func (c *Counters) Run(run *phases.Run, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.countersOf(run)
	if r == nil {
		return
	}
	r.States[run.State]++
	switch run.State {
	case phases.StateCached:
		r.Cached++
	case phases.StateFiltered, phases.StateDisabled, phases.StateQueued:
	default:
		r.Runs++
	}
	r.measure(run)
	switch run.State {
	case phases.StateSucceeded, phases.StateDenied, phases.StateShadowed:
		r.FailedInARow = 0
	case phases.StateFailed, phases.StateTimedOut, phases.StateUnavailable, phases.StateBudgetExhausted:
		c.fail(r, run, message)
	}
}

// countersOf returns the counters of a run; nil for a tool or model call that was never made: a caller could repeat
// it at will.
func (c *Counters) countersOf(run *phases.Run) *runCounters {
	if run.Phase != phases.PhaseToolCall && run.Phase != phases.PhaseHostCall {
		return c.hooks[run.Subscription]
	}
	p := c.plugins[run.Plugin]
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
func (r *runCounters) measure(run *phases.Run) {
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
		r.of.Replies.record(run.BytesOut)
	}
	for i := range run.Cut {
		r.of.Truncations[run.Cut[i].Limit]++ // a closed list: merging sets it
	}
}

// fail counts a failure by its cause, of a closed list.
func (c *Counters) fail(r *runCounters, run *phases.Run, message string) {
	cause := phases.Cause(run.Code)
	if !c.causes[cause] {
		cause = phases.CauseInternal
	}
	r.FailedInARow++
	r.Failed++
	r.Failures[cause]++
	r.LastError = &LastError{
		Code: run.Code, PluginCode: text.Sanitize(run.PluginCode, maxCodeChars), Message: text.Sanitize(message, maxMessageChars), At: c.now(),
	}
}

// Dispatch counts a finished dispatch.
func (c *Counters) Dispatch(phase phases.Phase, state phases.RunState, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.phases[phase]
	if p == nil {
		return
	}
	p.took.Record(took)
	p.Dispatches++
	switch state {
	case phases.StateFailed:
		p.Failed++
	case phases.StateCancelled:
		p.Cancelled++
	}
}

// Reload counts a configuration that came into force, the first one included.
func (c *Counters) Reload() { c.count(&c.reloads) }

// ReloadRefused counts a configuration that did not.
func (c *Counters) ReloadRefused() { c.count(&c.reloadsRefused) }

func (c *Counters) count(n *uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

// FailOpen counts a failure that did not stop its phase.
func (c *Counters) FailOpen(subscription string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.hooks[subscription]; r != nil {
		r.FailOpen++
	}
}

// Abandoned counts an abandoned call: of a subscription, or of a plugin's tools if that is empty.
func (c *Counters) Abandoned(plugin, subscription string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.caller(plugin, subscription); r != nil {
		r.AbandonedTotal++
		r.of.AbandonedTotal++
	}
}

func (c *Counters) caller(plugin, subscription string) *runCounters {
	if subscription != "" {
		return c.hooks[subscription]
	}
	if p := c.plugins[plugin]; p != nil {
		return &p.tools
	}
	return nil
}

// Unanswered counts a call that was abandoned and is unanswered; answered must be called when it is answered after all.
func (c *Counters) Unanswered(plugin, subscription string) (unanswered, answered func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.caller(plugin, subscription)
	add := func(n int) func() {
		return func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if r != nil {
				r.unanswered += n
			}
		}
	}
	return add(1), add(-1)
}

// ofPlugin calls count with the counters of a plugin, if it is known.
func (c *Counters) ofPlugin(name string, count func(p *pluginCounters)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.plugins[name]; p != nil {
		count(p)
	}
}

// LogDropped counts lines of a plugin's log that were dropped.
func (c *Counters) LogDropped(plugin string, lines int) {
	c.ofPlugin(plugin, func(p *pluginCounters) { p.LogLinesDropped += uint64(max(0, lines)) })
}

// AnswerDropped counts an answer that was not applied.
func (c *Counters) AnswerDropped(plugin string) {
	c.ofPlugin(plugin, func(p *pluginCounters) { p.AnswersDropped++ })
}

// Job counts a change of a background job; state is one of the engine's own words.
func (c *Counters) Job(plugin, state string) {
	c.ofPlugin(plugin, func(p *pluginCounters) { p.Jobs[state]++ })
}

// PluginFailed notes the latest failure of a plugin's process.
func (c *Counters) PluginFailed(plugin, code, message string) {
	c.ofPlugin(plugin, func(p *pluginCounters) {
		p.LastError = &LastError{Code: code, Message: text.Sanitize(message, maxMessageChars), At: c.now()}
	})
}

// Fill completes an overview whose Plugins and Hooks lack only what is counted, adds the rows of tools and model
// calls, and sets the rest.
func (c *Counters) Fill(o *Overview) {
	c.mu.Lock()
	defer c.mu.Unlock()
	took := map[string]*Histogram{}
	for i := range o.Plugins {
		took[o.Plugins[i].Plugin] = &Histogram{}
	}
	for i := range o.Hooks {
		row := &o.Hooks[i]
		r := c.hooks[row.Subscription]
		if r == nil {
			r = newRunCounters(nil, row.Phase)
		}
		row.RunStats = r.stats()
		took[row.Plugin].merge(&r.took)
	}
	for i := range o.Plugins {
		row := &o.Plugins[i]
		p := c.plugins[row.Plugin]
		if p == nil {
			p = newPluginCounters(row.Plugin)
		}
		if p.tools.Runs > 0 {
			o.Hooks = append(o.Hooks, HookRow{Plugin: row.Plugin, Phase: p.tools.phase, Role: phases.StageTool, RunStats: p.tools.stats()})
		}
		if p.model.Runs > 0 {
			o.Hooks = append(o.Hooks, HookRow{Plugin: row.Plugin, Phase: p.model.phase, Role: phases.StageHost, RunStats: p.model.stats()})
		}
		took[row.Plugin].merge(&p.tools.took)
		row.Took, row.Queued = took[row.Plugin].latency(), p.queued.latency()
		row.LogLinesDropped, row.AnswersDropped, row.AbandonedTotal = p.LogLinesDropped, p.AnswersDropped, p.AbandonedTotal
		row.LastError, row.Truncations, row.Jobs, row.Replies = p.LastError, maps.Clone(p.Truncations), maps.Clone(p.Jobs), p.Replies
		row.Replies.Within = slices.Clone(p.Replies.Within)
	}
	o.Phases = []PhaseRow{}
	for _, phase := range c.order {
		if p := c.phases[phase]; p.Dispatches > 0 {
			p.Took = p.took.latency()
			o.Phases = append(o.Phases, p.PhaseRow)
		}
	}
	o.Reloads, o.ReloadsRefused = max(c.reloads, 1)-1, c.reloadsRefused // the first configuration is not a reload
}

// stats is what has been counted so far.
func (r *runCounters) stats() RunStats {
	out := r.RunStats
	out.States, out.Failures = maps.Clone(r.States), maps.Clone(r.Failures)
	out.Abandoned, out.Took = max(0, r.unanswered), r.took.latency()
	return out
}

func fromMillis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

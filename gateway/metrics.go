package gateway

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Metric describes a metric of /metrics.
type Metric struct {
	Name string
	// Type is counter, gauge or histogram.
	Type, Help string
	Labels     []string
}

// Metrics lists the metrics of a gateway with an engine, in the order of the documents.
func Metrics() []Metric {
	plugin := []string{"plugin"}
	hook := func(more ...string) []string { return append([]string{"plugin", "subscription", "phase"}, more...) }
	return []Metric{
		{"grapnel_gateway_calls_total", "counter", "Calls by outcome: ok, or the code of the error. Watch internal and unavailable.", []string{"method", "code"}},
		{"grapnel_gateway_call_seconds", "histogram", "How long calls took.", []string{"method"}},
		{"grapnel_gateway_documents_total", "counter", "Changes of documents by outcome: saved, unchanged, archived, restored, or the code of the error.", []string{"outcome"}},
		{"grapnel_gateway_notifications_total", "counter", "Notifications by outcome: sent, coalesced (a later one of the same thing came before it was sent), or dropped (its connection ended).", []string{"outcome"}},
		{"grapnel_gateway_listen_failures_total", "counter", "How often listening to the database ended and began again.", nil},
		{"grapnel_gateway_read_failures_total", "counter", "How often changes could not be read.", nil},
		{"grapnel_gateway_turns_ended_total", "counter", "Kept turns that ended, by reason: ended (by their client), idle or stopping. Many idle ones are clients that forget turn/end, or lose it.", []string{"reason"}},
		{"grapnel_gateway_ready", "gauge", "1 while /readyz answers 200, else 0. Alert on 0.", nil},
		{"grapnel_gateway_connections", "gauge", "Open WebSocket connections.", nil},
		{"grapnel_gateway_watchers", "gauge", "Workspaces that are watched, counted once per connection.", nil},
		{"grapnel_gateway_turns", "gauge", "Turns that are kept for clients.", nil},
		{"grapnel_manifests_total", "counter", "Manifests by outcome: kept, not_kept or kept_late. Any not_kept is a prompt without a record.", []string{"outcome"}},
		{"grapnel_sink_hanging", "gauge", "Abandoned calls of the store that have not returned: a disk that hangs.", nil},
		{"grapnel_model_hanging", "gauge", "Abandoned calls of the host's model that have not returned.", nil},
		{"grapnel_dispatch_seconds", "histogram", "How long phases took, from the host's call to the outcome.", []string{"phase"}},
		{"grapnel_dispatches_total", "counter", "Phases by outcome: succeeded, failed (closed) or cancelled.", []string{"phase", "outcome"}},
		{"grapnel_reloads_total", "counter", "Reloads by outcome: in_force or refused.", []string{"outcome"}},
		{"grapnel_queue_jobs", "gauge", "Background work of all engines that share the queue: waiting, scheduled, running, dead.", []string{"state"}},
		{"grapnel_queue_oldest_seconds", "gauge", "For how long the oldest waiting job has been due.", nil},
		{"grapnel_plugin_up", "gauge", "1 while a plugin takes calls (ready, degraded), else 0. Alert on 0 that lasts.", plugin},
		{"grapnel_plugin_state", "gauge", "Plugins by state; the value is 1.", []string{"plugin", "state"}},
		{"grapnel_plugin_restarts_total", "counter", "How often a plugin was started again.", plugin},
		{"grapnel_plugin_recycled_total", "counter", "How often a new process took over from one that was well (limits.recycle).", plugin},
		{"grapnel_plugin_memory_bytes", "gauge", "Resident memory of a plugin's process and its descendants.", plugin},
		{"grapnel_plugin_calls", "gauge", "Calls now: working in one of the plugin's slots, or waiting for one.", []string{"plugin", "state"}},
		{"grapnel_plugin_calls_abandoned", "gauge", "Abandoned calls that are not answered yet.", plugin},
		{"grapnel_plugin_calls_abandoned_total", "counter", "Calls that were abandoned before their plugin had answered.", plugin},
		{"grapnel_plugin_log_lines_dropped_total", "counter", "Lines of a plugin's log that were dropped because of their rate.", plugin},
		{"grapnel_plugin_answers_dropped_total", "counter", "Answers that were late, duplicate, stale or unknown.", plugin},
		{"grapnel_truncations_total", "counter", "Texts of a plugin that were cut, by limit.", []string{"plugin", "limit"}},
		{"grapnel_jobs_total", "counter", "What became of attempts at background work: done, retry, requeued, discarded, refused, duplicate or lost.", []string{"plugin", "state"}},
		{"grapnel_plugin_queue_seconds", "histogram", "How long calls waited that found no slot of their plugin free.", plugin},
		{"grapnel_plugin_reply_bytes", "histogram", "Sizes of the answers of a plugin's process.", plugin},
		{"grapnel_hook_runs_total", "counter", "Rows of the ledger by state. Calls of tools and of the model have no subscription.", hook("state")},
		{"grapnel_hook_failures_total", "counter", "Failures by cause: condition is a mistake in the configuration, conflict a slot that another hook held.", hook("code")},
		{"grapnel_fail_open_total", "counter", "Failures that did not stop their phase. Alert on it for guards.", hook()},
		{"grapnel_breaker_state", "gauge", "Breakers by state (closed, open, half_open); the value is 1.", hook("state")},
		{"grapnel_hook_seconds", "histogram", "How long a plugin took to answer, all attempts of a run together.", hook()},
	}
}

// metrics count for /metrics. Each gateway has its own registry.
type metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	took     *prometheus.HistogramVec
	saves    *prometheus.CounterVec
	notes    *prometheus.CounterVec
	listens  prometheus.Counter
	reads    prometheus.Counter
	turns    *prometheus.CounterVec
}

func newMetrics(g *Gateway) *metrics {
	rows, collected := map[string]Metric{}, &snapshot{g, map[string]metricDesc{}}
	for _, row := range Metrics() {
		kind := prometheus.GaugeValue
		if row.Type == "counter" {
			kind = prometheus.CounterValue
		}
		rows[row.Name] = row
		collected.metrics[row.Name] = metricDesc{prometheus.NewDesc(row.Name, row.Help, row.Labels, nil), kind}
	}
	m := &metrics{registry: prometheus.NewRegistry()}
	counter := func(name string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: rows[name].Help}, rows[name].Labels)
		m.registry.MustRegister(v)
		return v
	}
	m.calls = counter("grapnel_gateway_calls_total")
	m.saves = counter("grapnel_gateway_documents_total")
	m.notes = counter("grapnel_gateway_notifications_total")
	m.listens = counter("grapnel_gateway_listen_failures_total").WithLabelValues()
	m.reads = counter("grapnel_gateway_read_failures_total").WithLabelValues()
	m.turns = counter("grapnel_gateway_turns_ended_total")
	took := rows["grapnel_gateway_call_seconds"]
	m.took = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: took.Name, Help: took.Help, Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, took.Labels)
	m.registry.MustRegister(m.took, collected, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

const maxScrapes = 4 // how many scrapes are answered at once; each reads the whole engine

// call counts a call. Unknown methods share one label: clients must not make up labels.
func (m *metrics) call(method, code string, took time.Duration) {
	if method == "" {
		method = "unknown"
	}
	if code == "" {
		code = "ok"
	}
	m.calls.WithLabelValues(method, code).Inc()
	m.took.WithLabelValues(method).Observe(took.Seconds())
}

func (m *metrics) save(outcome string, err error) {
	if err != nil {
		outcome = rpc.CodeInternal
		if e, ok := errors.AsType[*rpc.Error](wireError(err)); ok {
			outcome = e.Code
		}
	}
	m.saves.WithLabelValues(outcome).Inc()
}

// snapshot collects what others count, at each scrape. Label values are names of the configuration, of plugins'
// hooks, and words of closed lists. Only what has occurred has series.
type snapshot struct {
	g       *Gateway
	metrics map[string]metricDesc
}

type metricDesc struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

var _ prometheus.Collector = (*snapshot)(nil)

// Describe sends nothing: the series depend on the engine's configuration.
func (s *snapshot) Describe(chan<- *prometheus.Desc) {}

func (s *snapshot) Collect(out chan<- prometheus.Metric) {
	st := s.g.status(context.Background()) // Prometheus gives none
	send := sender{s.metrics, out}
	send.value("grapnel_gateway_ready", oneIf(s.g.readiness(context.Background()).Ready))
	send.value("grapnel_gateway_connections", float64(st.Connections))
	send.value("grapnel_gateway_watchers", float64(st.Watchers))
	send.value("grapnel_gateway_turns", float64(st.Turns.Open))
	send.value("grapnel_manifests_total", float64(st.Stats.ManifestsKept), "kept")
	send.value("grapnel_manifests_total", float64(st.Stats.ManifestsNotKept), "not_kept")
	send.value("grapnel_manifests_total", float64(st.Stats.ManifestsKeptLate), "kept_late")
	send.value("grapnel_sink_hanging", float64(st.Stats.SinkHanging))
	if s.g.opts.Engine != nil {
		send.value("grapnel_model_hanging", float64(st.Stats.ModelHanging))
		send.engine(&st.Overview, &st.Queue)
	}
}

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

const queueTime = 2 * time.Second // bounds the query of the queue: status is needed most when the database is down

func (g *Gateway) queue(ctx context.Context) runtime.QueueStatus {
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	return g.opts.Engine.Queue(ctx)
}

// sender sends metrics. Labels are values in the order of [Metrics].
type sender struct {
	metrics map[string]metricDesc
	out     chan<- prometheus.Metric
}

func (s sender) value(name string, value float64, labels ...string) {
	d := s.metrics[name]
	m, err := prometheus.NewConstMetric(d.desc, d.kind, value, labels...)
	s.send(d.desc, m, err)
}

func (s sender) send(desc *prometheus.Desc, m prometheus.Metric, err error) {
	if err != nil { // for example a label that is not UTF-8
		m = prometheus.NewInvalidMetric(desc, err)
	}
	s.out <- m
}

// counts sends a counter for each key, which is the last label.
func counts[K ~string](s sender, name string, list map[K]uint64, labels ...string) {
	for _, key := range slices.Sorted(maps.Keys(list)) {
		s.value(name, float64(list[key]), append(slices.Clip(labels), string(key))...)
	}
}

// histogram omits empty histograms.
func (s sender) histogram(name string, n uint64, sum float64, within map[float64]uint64, labels ...string) {
	if n > 0 {
		desc := s.metrics[name].desc
		m, err := prometheus.NewConstHistogram(desc, n, sum, within, labels...)
		s.send(desc, m, err)
	}
}

// seconds has bounds of powers of two of a microsecond, for which the engine's counts are exact: from 64 µs to 17 s.
func (s sender) seconds(name string, l *runtime.Latency, labels ...string) {
	within := map[float64]uint64{}
	for n, bound := 0, 64*time.Microsecond; n <= 18; n, bound = n+1, 2*bound {
		within[bound.Seconds()] = l.Within(bound)
	}
	s.histogram(name, l.Count, l.Sum().Seconds(), within, labels...)
}

func (s sender) engine(o *runtime.Overview, q *runtime.QueueStatus) {
	for i := range o.Plugins {
		s.plugin(&o.Plugins[i])
	}
	for i := range o.Hooks {
		s.hook(&o.Hooks[i])
	}
	for i := range o.Phases {
		p, phase := &o.Phases[i], string(o.Phases[i].Phase)
		s.seconds("grapnel_dispatch_seconds", &p.Took, phase)
		s.value("grapnel_dispatches_total", float64(p.Dispatches-p.Failed-p.Cancelled), phase, "succeeded")
		s.value("grapnel_dispatches_total", float64(p.Failed), phase, "failed")
		s.value("grapnel_dispatches_total", float64(p.Cancelled), phase, "cancelled")
	}
	s.value("grapnel_reloads_total", float64(o.Reloads), "in_force")
	s.value("grapnel_reloads_total", float64(o.ReloadsRefused), "refused")
	if q.Error != "" {
		return // unknown
	}
	s.value("grapnel_queue_jobs", float64(q.Waiting), "waiting")
	s.value("grapnel_queue_jobs", float64(q.Scheduled), "scheduled")
	s.value("grapnel_queue_jobs", float64(q.Running), "running")
	s.value("grapnel_queue_jobs", float64(q.Dead), "dead")
	s.value("grapnel_queue_oldest_seconds", q.OldestSeconds)
}

func (s sender) plugin(p *runtime.PluginHealth) {
	name := p.Plugin
	s.value("grapnel_plugin_up", oneIf(p.State == phases.PluginReady || p.State == phases.PluginDegraded), name)
	s.value("grapnel_plugin_state", 1, name, string(p.State))
	s.value("grapnel_plugin_restarts_total", float64(p.Restarts), name)
	s.value("grapnel_plugin_recycled_total", float64(p.Recycled), name)
	if p.MemoryBytes > 0 {
		s.value("grapnel_plugin_memory_bytes", float64(p.MemoryBytes), name)
	}
	s.value("grapnel_plugin_calls", float64(p.Working), name, "working")
	s.value("grapnel_plugin_calls", float64(p.Waiting), name, "waiting")
	s.value("grapnel_plugin_calls_abandoned", float64(p.Abandoned), name)
	s.value("grapnel_plugin_calls_abandoned_total", float64(p.AbandonedTotal), name)
	s.value("grapnel_plugin_log_lines_dropped_total", float64(p.LogLinesDropped), name)
	s.value("grapnel_plugin_answers_dropped_total", float64(p.AnswersDropped), name)
	counts(s, "grapnel_truncations_total", p.Truncations, name)
	counts(s, "grapnel_jobs_total", p.Jobs, name)
	s.seconds("grapnel_plugin_queue_seconds", &p.Queued, name)
	within := map[float64]uint64{}
	for i, n := range p.Replies.Within {
		within[float64(runtime.SizeBounds()[i])] = n
	}
	s.histogram("grapnel_plugin_reply_bytes", p.Replies.Count, float64(p.Replies.Bytes), within, name)
}

// hook sends the stats of a subscription, or with an empty one, of a plugin's tools or model calls.
func (s sender) hook(h *runtime.HookRow) {
	where := []string{h.Plugin, h.Subscription, string(h.Phase)}
	counts(s, "grapnel_hook_runs_total", h.States, where...)
	counts(s, "grapnel_hook_failures_total", h.Failures, where...)
	if h.Breaker != "" {
		s.value("grapnel_fail_open_total", float64(h.FailOpen), where...)
		s.value("grapnel_breaker_state", 1, append(where, h.Breaker)...)
	}
	s.seconds("grapnel_hook_seconds", &h.Took, where...)
}

package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/grapnelhq/grapnel/gateway/rpc"
)

// metrics count for /metrics. Their registry is the gateway's own, so that a
// process may have several gateways.
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
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "grapnel_gateway_calls_total", Help: "Calls by method and outcome: ok, or the code of the error.",
		}, []string{"method", "code"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "grapnel_gateway_call_seconds", Help: "How long calls took.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method"}),
		saves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "grapnel_gateway_documents_total", Help: "Changes of documents by outcome: saved, unchanged, archived, restored, or the code of the error.",
		}, []string{"outcome"}),
		notes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "grapnel_gateway_notifications_total",
			Help: "Notifications by outcome: sent, coalesced (a later one of the same thing came before it was sent), or dropped (its connection ended).",
		}, []string{"outcome"}),
		listens: counter("grapnel_gateway_listen_failures_total", "How often listening to the database ended and began again."),
		reads:   counter("grapnel_gateway_read_failures_total", "How often changes could not be read."),
		turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "grapnel_gateway_turns_ended_total", Help: "Kept turns that ended, by reason: ended (by their client), idle or stopping.",
		}, []string{"reason"}),
	}
	m.registry.MustRegister(m.calls, m.took, m.saves, m.notes, m.listens, m.reads, m.turns, &snapshot{g},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// maxScrapes is how many scrapes are answered at once; each reads the whole engine.
const maxScrapes = 4

// handler serves them. On this machine they need no token: they are numbers by
// method, plugin and outcome, and never say whose or what; and a collector that had
// to know a token would be one more place that keeps one. Peers from elsewhere need
// one. Guard comes first, as a page could read them through a name of its own that
// points here.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
}

// call counts a call. Methods that there are not are counted under one name:
// clients do not make up the labels.
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

// save counts what became of a change of a document.
func (m *metrics) save(outcome string, err error) {
	if err != nil {
		outcome = rpc.CodeInternal
		if e, ok := errors.AsType[*rpc.Error](wireError(err)); ok {
			outcome = e.Code
		}
	}
	m.saves.WithLabelValues(outcome).Inc()
}

// notified counts what became of a notification.
func (m *metrics) notified(outcome string) { m.notes.WithLabelValues(outcome).Inc() }

// turnEnded counts a kept turn that has ended.
func (m *metrics) turnEnded(reason endReason) { m.turns.WithLabelValues(string(reason)).Inc() }

func (m *metrics) listenEnded() { m.listens.Inc() }
func (m *metrics) readFailed()  { m.reads.Inc() }

// snapshot is what is looked up when somebody asks, and counted by others.
type snapshot struct{ g *Gateway }

var _ prometheus.Collector = (*snapshot)(nil)

// Describe implements prometheus.Collector. The rows depend on the engine's
// configuration, so nothing is promised.
func (s *snapshot) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *snapshot) Collect(out chan<- prometheus.Metric) {
	st := s.g.status(context.Background()) // Prometheus gives none
	send := sender(out)
	ready := 0.0
	if s.g.readiness(context.Background()).Ready {
		ready = 1
	}
	send.gauge("grapnel_gateway_ready", "1 while /readyz says 200, else 0.", ready)
	send.gauge("grapnel_gateway_connections", "Open WebSocket connections.", float64(st.Connections))
	send.gauge("grapnel_gateway_watchers", "How often a connection watches a workspace.", float64(st.Watchers))
	send.gauge("grapnel_gateway_turns", "Turns that are kept for clients.", float64(st.Turns.Open))
	for _, row := range []struct {
		outcome string
		n       uint64
	}{
		{"kept", st.Stats.ManifestsKept}, {"not_kept", st.Stats.ManifestsNotKept}, {"kept_late", st.Stats.ManifestsKeptLate},
	} {
		send.count("grapnel_manifests_total", "Manifests by what became of them.", row.n, label{"outcome", row.outcome})
	}
	send.gauge("grapnel_sink_hanging", "Calls of the log that were given up and have not returned.", float64(st.Stats.SinkHanging))
	if s.g.opts.Engine != nil {
		send.gauge("grapnel_model_hanging", "Calls of the host's model that were given up and have not returned.", float64(st.Stats.ModelHanging))
		send.overview(&st.Overview)
		send.queue(&st.Queue)
	}
}

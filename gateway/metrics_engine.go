package gateway

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// The engine's figures are read from its overview when somebody asks: it counts them
// for status anyway, so that a dispatch pays for metrics nothing more. Labels are names
// of the configuration and of what its plugins describe (256 hooks each at most), and
// words of closed lists; there are series only of what has occurred.

// label is one label of a metric.
type label struct{ name, value string }

// sender sends metrics.
type sender chan<- prometheus.Metric

// sent is what makes one, for any kind.
func (s sender) sent(name, help string, labels []label, build func(*prometheus.Desc, ...string) (prometheus.Metric, error)) {
	names, values := []string{}, []string{}
	for _, l := range labels {
		names, values = append(names, l.name), append(values, l.value)
	}
	desc := prometheus.NewDesc(name, help, names, nil)
	m, err := build(desc, values...)
	if err != nil {
		m = prometheus.NewInvalidMetric(desc, err)
	}
	s <- m
}

func (s sender) gauge(name, help string, value float64, labels ...label) {
	s.sent(name, help, labels, func(d *prometheus.Desc, values ...string) (prometheus.Metric, error) {
		return prometheus.NewConstMetric(d, prometheus.GaugeValue, value, values...)
	})
}

func (s sender) count(name, help string, n uint64, labels ...label) {
	s.sent(name, help, labels, func(d *prometheus.Desc, values ...string) (prometheus.Metric, error) {
		return prometheus.NewConstMetric(d, prometheus.CounterValue, float64(n), values...)
	})
}

// Bounds of durations are powers of two of a microsecond, at which the engine's counts
// are exact: from 64 µs, half the answer of a process, to 17 s.
const (
	shortest = 64 * time.Microsecond
	longest  = shortest << 18
)

// seconds sends a histogram, unless nothing was counted.
func (s sender) seconds(name, help string, l *runtime.Latency, labels ...label) {
	if l.Count == 0 {
		return
	}
	s.sent(name, help, labels, func(d *prometheus.Desc, values ...string) (prometheus.Metric, error) {
		within := map[float64]uint64{}
		for bound := shortest; bound <= longest; bound *= 2 {
			within[bound.Seconds()] = l.Within(bound)
		}
		return prometheus.NewConstHistogram(d, l.Count, l.Sum().Seconds(), within, values...)
	})
}

// bytes sends a histogram, unless nothing was counted.
func (s sender) bytes(name, help string, z *runtime.Sizes, labels ...label) {
	if z.Count == 0 {
		return
	}
	s.sent(name, help, labels, func(d *prometheus.Desc, values ...string) (prometheus.Metric, error) {
		within := map[float64]uint64{}
		for i, bound := range runtime.SizeBounds() {
			if i < len(z.Within) {
				within[float64(bound)] = z.Within[i]
			}
		}
		return prometheus.NewConstHistogram(d, z.Count, float64(z.Bytes), within, values...)
	})
}

// overview sends what an engine counts.
func (s sender) overview(o *runtime.Overview) {
	for i := range o.Plugins {
		s.plugin(&o.Plugins[i])
	}
	for i := range o.Hooks {
		s.hook(&o.Hooks[i])
	}
	for i := range o.Phases {
		p := &o.Phases[i]
		phase := label{"phase", string(p.Phase)}
		s.seconds("grapnel_dispatch_seconds", "How long phases took, from the host's call to the outcome.", &p.Took, phase)
		for _, row := range []struct {
			outcome string
			n       uint64
		}{
			{"succeeded", p.Dispatches - p.Failed - p.Cancelled}, {"failed", p.Failed}, {"cancelled", p.Cancelled},
		} {
			s.count("grapnel_dispatches_total", "Phases by what became of them.", row.n, phase, label{"outcome", row.outcome})
		}
	}
	const reloads = "Configurations that came into force after the first one, or were refused."
	s.count("grapnel_reloads_total", reloads, o.Reloads, label{"outcome", "in_force"})
	s.count("grapnel_reloads_total", reloads, o.ReloadsRefused, label{"outcome", "refused"})
}

// plugin sends the figures of one plugin.
func (s sender) plugin(p *runtime.PluginHealth) {
	who := label{"plugin", p.Plugin}
	up := 0.0
	if p.State == phases.PluginReady || p.State == phases.PluginDegraded {
		up = 1
	}
	s.gauge("grapnel_plugin_up", "Whether a plugin takes calls.", up, who)
	s.gauge("grapnel_plugin_state", "Plugins by their state; the value is 1.", 1, who, label{"state", string(p.State)})
	s.count("grapnel_plugin_restarts_total", "How often a plugin was started again.", uint64(p.Restarts), who)                     //nolint:gosec // not negative
	s.count("grapnel_plugin_recycled_total", "How often a new process took over from one that was well.", uint64(p.Recycled), who) //nolint:gosec // not negative
	if p.MemoryBytes > 0 {
		s.gauge("grapnel_plugin_memory_bytes", "Resident memory of a plugin's process and its descendants.", float64(p.MemoryBytes), who)
	}
	s.gauge("grapnel_plugin_calls", "Calls that hold one of a plugin's slots, or wait for one.", float64(p.Working), who, label{"state", "working"})
	s.gauge("grapnel_plugin_calls", "Calls that hold one of a plugin's slots, or wait for one.", float64(p.Waiting), who, label{"state", "waiting"})
	s.gauge("grapnel_plugin_calls_abandoned", "Calls that were left and are not answered yet.", float64(p.Abandoned), who)
	s.count("grapnel_plugin_calls_abandoned_total", "Calls that were left before their plugin had answered.", p.AbandonedTotal, who)
	s.count("grapnel_plugin_log_lines_dropped_total", "Lines of a plugin's log that were dropped because of their rate.", p.LogLinesDropped, who)
	s.count("grapnel_plugin_answers_dropped_total", "Answers that were late, double, stale or unknown.", p.AnswersDropped, who)
	for _, limit := range slices.Sorted(maps.Keys(p.Truncations)) {
		s.count("grapnel_truncations_total", "Texts of a plugin that were cut, by the limit that did it.", p.Truncations[limit], who, label{"limit", string(limit)})
	}
	for _, state := range slices.Sorted(maps.Keys(p.Jobs)) {
		s.count("grapnel_jobs_total", "What became of attempts at a plugin's background work.", p.Jobs[state], who, label{"state", state})
	}
	s.seconds("grapnel_plugin_queue_seconds", "How long calls waited that found no slot of their plugin free.", &p.Queued, who)
	s.bytes("grapnel_plugin_reply_bytes", "Sizes of the answers of a plugin's process.", &p.Replies, who)
}

// hook sends the figures of a subscription, or of the tools or model calls of a
// plugin, which have an empty one.
func (s sender) hook(h *runtime.HookRow) {
	where := []label{{"plugin", h.Plugin}, {"subscription", h.Subscription}, {"phase", string(h.Phase)}}
	with := func(name, value string) []label { return append(slices.Clip(where), label{name, value}) }
	for _, state := range slices.Sorted(maps.Keys(h.States)) {
		s.count("grapnel_hook_runs_total", "Expected hooks, calls of tools and of the model, by what became of them.", h.States[state], with("state", string(state))...)
	}
	for _, code := range slices.Sorted(maps.Keys(h.Failures)) {
		s.count("grapnel_hook_failures_total", "Failures by cause.", h.Failures[code], with("code", string(code))...)
	}
	if h.Breaker != "" {
		s.count("grapnel_fail_open_total", "Failures that did not stop their phase.", h.FailOpen, where...)
		s.gauge("grapnel_breaker_state", "Breakers by their state; the value is 1.", 1, with("state", h.Breaker)...)
	}
	s.seconds("grapnel_hook_seconds", "How long a plugin took to answer, all attempts of a run together.", &h.Took, where...)
}

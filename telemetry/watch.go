package telemetry

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Source is what Watch asks: a *runtime.Engine.
type Source interface {
	// Plugins returns a row for each declared plugin.
	Plugins() []phases.PluginRow
	// Memory returns the resident bytes of the plugins' processes, by declared name;
	// plugins without one are absent.
	Memory() map[string]int64
}

var _ Source = (*runtime.Engine)(nil)

// Watch looks the plugins' and breakers' states up whenever metrics are collected, until Close. It
// fails with [ErrWatched] when called again.
func (t *Telemetry) Watch(src Source) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched {
		return ErrWatched
	}
	w := &watcher{source: src, measures: &t.measures, breakers: &t.breakers, seen: map[string]restarts{}}
	registered, err := t.meter.RegisterCallback(w.observe, t.measures.up, t.measures.restarts, t.measures.breakers, t.measures.memory)
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	t.watched, t.watch = true, registered
	return nil
}

// watcher reads the plugins' rows.
type watcher struct {
	source   Source
	measures *instruments
	breakers *breakers

	mu sync.Mutex
	// seen keeps the restarts of plugins by name, so that the counter goes on when a
	// reload replaces a plugin by a new one, which begins at 0.
	seen map[string]restarts
}

// restarts are those of one plugin.
type restarts struct {
	last  int
	total int64
}

// observe is the callback of all four instruments. The engine is asked before the lock is
// taken: it has locks of its own.
func (w *watcher) observe(_ context.Context, o metric.Observer) error {
	rows, memory := w.source.Plugins(), w.source.Memory()
	w.breakers.observe(w.measures.breakers, o)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range rows {
		row := &rows[i]
		where := metric.WithAttributeSet(attribute.NewSet(keyPlugin.String(plain(row.Plugin))))
		o.ObserveInt64(w.measures.up, up(row.State), where)
		o.ObserveInt64(w.measures.restarts, w.counted(row), where)
		if held := memory[row.Plugin]; held > 0 {
			o.ObserveInt64(w.measures.memory, held, where)
		}
	}
	return nil
}

// counted is how often a plugin of this name was started again.
func (w *watcher) counted(row *phases.PluginRow) int64 {
	r := w.seen[row.Plugin]
	if row.Restarts < r.last { // another one of the same name
		r.last = 0
	}
	r.total += int64(row.Restarts - r.last)
	r.last = row.Restarts
	w.seen[row.Plugin] = r
	return r.total
}

// up is 1 for a plugin that takes calls.
func up(s phases.PluginState) int64 {
	if s == phases.PluginReady || s == phases.PluginDegraded {
		return 1
	}
	return 0
}

// breakers are the states of those that have changed theirs; all others are closed.
// What is beyond the limit is not told: it would have no name.
type breakers struct {
	limit int

	mu     sync.Mutex
	states map[place]string
}

// breakerStates are the words of the engine's events.
func breakerStates() []string { return []string{"closed", "open", "half_open"} }

func (b *breakers) set(at place, state string) {
	if !slices.Contains(breakerStates(), state) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.states[at]; known || len(b.states) < b.limit {
		b.states[at] = state
	}
}

func (b *breakers) observe(instrument metric.Int64Observable, o metric.Observer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, now := range b.states {
		for _, state := range breakerStates() {
			value := int64(0)
			if state == now {
				value = 1
			}
			o.ObserveInt64(instrument, value, options(keyPlugin.String(at.plugin), keySubscription.String(at.subscription), keyState.String(state)))
		}
	}
}

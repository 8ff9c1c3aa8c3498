package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/grapnelhq/grapnel/phases"
)

// The attributes. Those without "grapnel." are OpenTelemetry's own.
const (
	keyPlugin        = attribute.Key("grapnel.plugin")
	keyVersion       = attribute.Key("grapnel.plugin.version")
	keySubscription  = attribute.Key("grapnel.subscription")
	keyPhase         = attribute.Key("grapnel.phase")
	keyStage         = attribute.Key("grapnel.stage")
	keyGeneration    = attribute.Key("grapnel.generation")
	keyIncarnation   = attribute.Key("grapnel.incarnation")
	keyState         = attribute.Key("grapnel.state")
	keyCause         = attribute.Key("grapnel.cause")
	keyAttempts      = attribute.Key("grapnel.attempts")
	keyQueued        = attribute.Key("grapnel.queue.duration")
	keyRequestSize   = attribute.Key("grapnel.request.size")
	keyReplySize     = attribute.Key("grapnel.reply.size")
	keyContributions = attribute.Key("grapnel.contributions")
	keyCuts          = attribute.Key("grapnel.cuts")
	keyLimit         = attribute.Key("grapnel.limit")
	keyReason        = attribute.Key("grapnel.reason")

	keyError        = attribute.Key("error.type")
	keyOperation    = attribute.Key("gen_ai.operation.name")
	keyTool         = attribute.Key("gen_ai.tool.name")
	keyModel        = attribute.Key("gen_ai.response.model")
	keyInputTokens  = attribute.Key("gen_ai.usage.input_tokens")
	keyOutputTokens = attribute.Key("gen_ai.usage.output_tokens")
)

// place is what the attributes of a measurement are made of. Its words are from
// closed lists, its names are the configuration's.
type place struct {
	plugin, subscription string
	phase                phases.Phase
	state, failure       string
}

// series are the attribute sets of one place, one for each group of instruments.
// Making them costs more than the measurements; so they are made once.
type series struct {
	// run has all attributes; hook all but state and failure; failed all but the
	// state.
	run, hook, failed []metric.AddOption
	// call has all but the failure; spot has plugin and phase; host plugin and
	// state; dispatch phase, state and failure.
	call, spot, host, dispatch []metric.RecordOption
	// where is plugin and phase, for what has attributes of its own beside them.
	where []attribute.KeyValue
}

func newSeries(p place) *series {
	plugin, subscription := keyPlugin.String(p.plugin), keySubscription.String(p.subscription)
	phase, state, failure := keyPhase.String(plain(string(p.phase))), keyState.String(p.state), keyError.String(p.failure)
	return &series{
		run:      []metric.AddOption{options(plugin, subscription, phase, state, failure)},
		hook:     []metric.AddOption{options(plugin, subscription, phase)},
		failed:   []metric.AddOption{options(plugin, subscription, phase, failure)},
		call:     []metric.RecordOption{options(plugin, subscription, phase, state)},
		spot:     []metric.RecordOption{options(plugin, phase)},
		host:     []metric.RecordOption{options(plugin, state)},
		dispatch: []metric.RecordOption{options(phase, state, failure)},
		where:    []attribute.KeyValue{plugin, phase},
	}
}

// options is a set of attributes without the empty ones.
func options(list ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(filled(list)...))
}

// filled takes the texts that are empty out of a list, in place.
func filled(list []attribute.KeyValue) []attribute.KeyValue {
	kept := list[:0]
	for _, kv := range list {
		if kv.Valid() && (kv.Value.Type() != attribute.STRING || kv.Value.AsString() != "") {
			kept = append(kept, kv)
		}
	}
	return kept
}

// seriesCache keeps the series of each place, up to a limit. Readers take no lock: a
// new place is rare once each hook has run, and each has its map copied.
type seriesCache struct {
	limit int

	known atomic.Pointer[map[place]*series]
	// adding is held by who replaces the map.
	adding sync.Mutex
}

// of returns the series of a place. Beyond the limit places are told apart only by
// what is in closed lists.
func (c *seriesCache) of(p place) *series {
	known := c.all()
	if s, ok := known[p]; ok {
		return s
	}
	if len(known) >= c.limit {
		p.plugin, p.subscription = folded(p.plugin), folded(p.subscription)
		if s, ok := known[p]; ok {
			return s
		}
	}
	return c.add(p)
}

// all are the series so far, which nobody changes.
func (c *seriesCache) all() map[place]*series {
	if known := c.known.Load(); known != nil {
		return *known
	}
	return nil
}

// add makes the series of a place, unless somebody else has meanwhile. Some more than
// the limit may come in at the same moment.
func (c *seriesCache) add(p place) *series {
	c.adding.Lock()
	defer c.adding.Unlock()
	known := c.all()
	if s, ok := known[p]; ok {
		return s
	}
	s := newSeries(p)
	next := make(map[place]*series, len(known)+1)
	maps.Copy(next, known)
	next[p] = s
	c.known.Store(&next)
	return s
}

// folded is a name beyond the limit; a name that is absent stays so.
func folded(name string) string {
	if name == "" {
		return ""
	}
	return other
}

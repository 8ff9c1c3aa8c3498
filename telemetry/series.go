package telemetry

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/manifest"
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
	keyManifest      = attribute.Key("grapnel.manifest.id")
	keyDecisionRef   = attribute.Key("grapnel.decision_ref")
	keyKind          = attribute.Key("grapnel.manifest.kind")

	keyError        = attribute.Key("error.type")
	keyOperation    = attribute.Key("gen_ai.operation.name")
	keyTool         = attribute.Key("gen_ai.tool.name")
	keyModel        = attribute.Key("gen_ai.response.model")
	keyInputTokens  = attribute.Key("gen_ai.usage.input_tokens")
	keyOutputTokens = attribute.Key("gen_ai.usage.output_tokens")
	keyCacheRead    = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	keyCacheWrite   = attribute.Key("gen_ai.usage.cache_creation.input_tokens")
	keyRequestModel = attribute.Key("gen_ai.request.model")
	keyProvider     = attribute.Key("gen_ai.provider.name")
	keyConversation = attribute.Key("gen_ai.conversation.id")
	keyAgent        = attribute.Key("gen_ai.agent.id")
)

// place has the attributes of a measurement: words of closed lists, and names of the configuration.
type place struct {
	plugin, subscription string
	phase                phases.Phase
	state, failure       string
}

// series are the attribute sets of one place, one for each group of instruments. They
// are made once, because making them costs more than measuring.
type series struct {
	// run has all attributes; hook all but state and failure; failed all but the state.
	run, hook, failed []metric.AddOption
	// call has all but the failure; spot has plugin and phase; host plugin and
	// state; dispatch phase, state and failure.
	call, spot, host, dispatch []metric.RecordOption
	// where is plugin and phase, for what has attributes of its own beside them.
	where  []attribute.KeyValue
	folded bool // it has no names, beyond the limit
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
		folded:   p.plugin == other || p.subscription == other,
	}
}

func options(list ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(filled(list)...))
}

func filled(list []attribute.KeyValue) []attribute.KeyValue {
	kept := list[:0]
	for _, kv := range list {
		if kv.Valid() && (kv.Value.Type() != attribute.STRING || kv.Value.AsString() != "") {
			kept = append(kept, kv)
		}
	}
	return kept
}

// seriesCache keeps the series of each place, up to a limit.
type seriesCache struct {
	limit int

	mu    sync.RWMutex
	known map[place]*series
}

// of returns the series of a place. Beyond the limit places differ only by words of closed lists.
func (c *seriesCache) of(p place) *series {
	c.mu.RLock()
	s, full := c.known[p], len(c.known) >= c.limit
	c.mu.RUnlock()
	if s != nil {
		return s
	}
	if full {
		p.plugin, p.subscription = folded(p.plugin), folded(p.subscription)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[p] == nil {
		c.known[p] = newSeries(p)
	}
	return c.known[p]
}

func folded(name string) string {
	if name == "" {
		return ""
	}
	return other
}

// other replaces a word that is not in a list, as in OpenTelemetry's conventions.
const other = "_OTHER"

// maxWord bounds a name: a subscription's is that of a plugin, a dot, and that of a hook.
const maxWord = phases.MaxIDBytes + 1

// words are the closed lists.
type words struct {
	states, causes, limits, stages, dropped, jobs, manifests, kinds map[string]bool
}

func newWords() words {
	w := words{
		states: set(
			phases.StateSucceeded, phases.StateDenied, phases.StateFailed, phases.StateTimedOut, phases.StateCancelled, phases.StateFiltered,
			phases.StateDisabled, phases.StateUnavailable, phases.StateBudgetExhausted, phases.StateCached, phases.StateShadowed, phases.StateQueued,
		),
		causes: set(phases.FailureCauses()...),
		limits: set(phases.LimitPlugin, phases.LimitContribution, phases.LimitSubscription, phases.LimitSection, phases.LimitTotal),
		stages: set(phases.StageTool, phases.StageHost),
		// The reasons of internal/wire.
		dropped: set("late", "double", "stale", "unknown_id", "unsupported", "unreadable", "invalidation"),
		jobs: set(
			string(jobs.Done), string(jobs.Retry), string(jobs.Requeue), string(jobs.Discard),
			"refused", "duplicate", "lost",
		),
		manifests: set("not_kept", "kept_late", "usage_not_kept", "previous_unavailable"),
		kinds:     set(manifest.KindPrompt, manifest.KindEvents, manifest.KindErasure),
	}
	for _, r := range phases.Roles() {
		w.stages[string(r)] = true
	}
	// Codes that are not failures of a hook, or not causes.
	for _, code := range []string{
		string(phases.CauseDenied), string(phases.CauseCancelled), string(phases.CauseInterrupted), phases.CodeToolError, phases.CodeNotGranted, "operator", "phase_failed",
	} {
		w.causes[code] = true
	}
	return w
}

func set[T ~string](list ...T) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, s := range list {
		m[string(s)] = true
	}
	return m
}

// closed returns the word if it is empty or the list has it.
func closed[T ~string](list map[string]bool, word T) string {
	if word == "" || list[string(word)] {
		return string(word)
	}
	return other
}

// plain returns a name, empty if it does not have the form of one.
func plain(name string) string {
	if len(name) > maxWord || strings.Trim(name, nameChars) != "" {
		return ""
	}
	return name
}

const nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/+"

// failureOf returns the error.type of a run, empty if it did not fail.
func (w *words) failureOf(run *phases.Run) string {
	switch run.State {
	case phases.StateFailed, phases.StateTimedOut, phases.StateUnavailable, phases.StateBudgetExhausted:
		if run.Code == "" {
			return other
		}
		return closed(w.causes, run.Code)
	case phases.StateSucceeded:
		if run.Code == phases.CodeToolError {
			return phases.CodeToolError
		}
	}
	return ""
}

// asked reports whether the plugin (for a model call, the host) was called. A cached row
// has the incarnation that answered.
func asked(run *phases.Run) bool {
	if run.Phase == phases.PhaseHostCall {
		return run.Attempts > 0
	}
	return run.Incarnation > 0 && run.Attempts > 0
}

// named reports whether the names in a row are the configuration's. A call of a tool that
// does not exist is never attempted.
func named(run *phases.Run) bool { return run.Phase != phases.PhaseToolCall || run.Attempts > 0 }

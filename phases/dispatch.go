package phases

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// Dispatch is one call of one hook.
type Dispatch struct {
	// Subscription is the full id; Hook is the plugin's own name for it.
	Subscription string
	Hook         string
	Phase        Phase
	Context      Context
	Input        Input
	// Withheld names what is not granted: input fields and "metadata" that were
	// there, and the sets "policy" and "context" if the hook needs them.
	Withheld []string
	// Policies and Contexts are the turn's sets so far, by grant.
	Policies []PolicyEntry
	Contexts []ContextEntry
	// Attempt counts from 1.
	Attempt        int
	IdempotencyKey string
	Trace          Trace
	Room           Room
	// Remaining is the time left when the call was sent; a duration, because
	// clocks differ and jump. In process the context's deadline says the same.
	Remaining   time.Duration
	Generation  uint64
	Incarnation uint64
}

// Sight is what a hook may see of its dispatches. It is immutable and safe for
// concurrent use; [NewSight] makes one.
type Sight struct {
	// All says that nothing is withheld of the input.
	All bool
	// Policy and Context say whether the sets are sent, Metadata whether the host's
	// metadata is.
	Policy, Context, Metadata bool

	field func(name string) bool
	// lacks are the sets that the hook needs and does not get.
	lacks []string
}

// NewSight is the sight of a hook that needs the given names, by what it may see:
// fields of the input by JSON name and the words of [SeenSets].
func NewSight(needs []string, sees func(name string) bool) Sight {
	s := Sight{All: sees("*"), Policy: sees(SeePolicy), Context: sees(SeeContext), Metadata: sees(SeeMetadata), field: sees}
	for _, set := range []string{SeePolicy, SeeContext} {
		if !sees(set) && slices.Contains(needs, set) {
			s.lacks = append(s.lacks, set)
		}
	}
	return s
}

// Withhold takes away what the hook may not see, and names it in d.Withheld. The
// input is replaced by a copy unless all of it may be seen.
func (s *Sight) Withhold(d *Dispatch) {
	if !s.All {
		d.Input, d.Withheld = Withhold(d.Input, s.field)
	}
	if !s.Metadata && len(d.Context.Metadata) > 0 {
		d.Context.Metadata = nil
		d.Withheld = append(d.Withheld, SeeMetadata)
	}
	if !s.Policy {
		d.Policies = nil
	}
	if !s.Context {
		d.Contexts = nil
	}
	d.Withheld = append(d.Withheld, s.lacks...)
}

// Room is the text budget that a plugin is told. Zero fields are unbounded.
type Room struct {
	// MaxChars is in Unicode scalar values, the frame included.
	MaxChars int
	// MaxBytes is the largest answer that the wire takes.
	MaxBytes int
}

// Trace is a W3C trace context (traceparent, tracestate).
type Trace struct {
	Parent string `json:"traceparent,omitempty"`
	State  string `json:"tracestate,omitempty"`
}

// Result is a plugin's answer to a Dispatch.
type Result struct {
	Contributions []Contribution
	Diagnostics   []Diagnostic
}

// ToolCall is one call of a plugin's tool.
type ToolCall struct {
	Tool      string
	Arguments json.RawMessage
	Context   Context
	// Policies are the turn's set so far, by grant, as a Dispatch has it. There is
	// none outside a turn. The engine fills them in, whatever its caller put here.
	Policies []PolicyEntry
	// OutsideTurn says that no turn made the call, but the host by itself: for a
	// person at its command line, say. The zero value, a call in a turn, is the
	// stricter reading: what needs a policy there must not go without one.
	OutsideTurn    bool
	IdempotencyKey string
	Trace          Trace
	Room           Room
	Remaining      time.Duration
	Generation     uint64
	Incarnation    uint64
}

// ToolResult is a tool's answer.
type ToolResult struct {
	// Content is any JSON; a plain text is a JSON string.
	Content json.RawMessage
	// IsError says that the tool itself reports a failure to the model.
	IsError     bool
	Diagnostics []Diagnostic
}

// Configuration is what a plugin is told before its first call, and again when
// the operator changes it.
type Configuration struct {
	// Instance is the operator's name for this plugin: the first part of its
	// subscription ids.
	Instance string
	// Config is the operator's configuration as a JSON object, already checked
	// against the plugin's schema. Nil when there is none.
	Config json.RawMessage
	// Services are the host services of which it may call at least one method. A
	// grant may name single methods, so that a call of another one still fails with
	// CauseForbidden.
	Services []string
	// Host is how the plugin calls back. It stays valid until the plugin is
	// configured again or ends.
	Host Host
}

// StateKey names one value of the host service "state".
type StateKey struct {
	WorkspaceID, SessionID, Plugin string
}

// Host is what a plugin may ask of its host. Both methods are safe for
// concurrent use. Inside a handler pass on the handler's context: it carries
// the call chain and the remaining time.
type Host interface {
	// Call asks a host service. An error is an *Error with the service's code;
	// CauseForbidden without the grant.
	Call(ctx context.Context, service, method string, params json.RawMessage) (json.RawMessage, error)
	// Invalidate drops cached contributions of this plugin.
	Invalidate(ctx context.Context, what Invalidation) error
}

// Invalidation says which cached contributions are not true any more: those of
// the named subscriptions and those under the named tags. Empty means all of
// the plugin's.
type Invalidation struct {
	Subscriptions []string
	Tags          []string
}

// PolicyEntry is one value of the turn's policy set.
type PolicyEntry struct {
	Domain   string          `json:"domain"`
	Key      string          `json:"key"`
	Value    json.RawMessage `json:"value"`
	Priority int             `json:"priority"`
	// Owner is the subscription that set it.
	Owner string `json:"owner"`
}

// ContextEntry is one text of the turn's context set.
type ContextEntry struct {
	ContributionID string      `json:"contribution_id"`
	Domain         string      `json:"domain"`
	Content        string      `json:"content"`
	Priority       int         `json:"priority"`
	Owner          string      `json:"owner"`
	Render         bool        `json:"render"`
	SourceRefs     []SourceRef `json:"source_refs"`
	Truncation     *Truncation `json:"truncation"`
}

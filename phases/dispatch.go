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
	Subscription string  `json:"subscription"`
	Hook         string  `json:"hook"`
	Phase        Phase   `json:"phase"`
	Context      Context `json:"context"`
	Input        Input   `json:"-"` // [DecodeInput] needs the phase
	// Withheld names what was there and is not granted: input fields, "metadata", and
	// the sets "policy" and "context", and "facts", if the hook needs them.
	Withheld []string `json:"withheld,omitempty"`
	// Policies and Contexts are the turn's sets so far, by grant.
	Policies []PolicyEntry  `json:"policies,omitempty"`
	Contexts []ContextEntry `json:"contexts,omitempty"`
	// Attempt counts from 1.
	Attempt        int          `json:"attempt"`
	IdempotencyKey string       `json:"idempotency_key,omitempty"`
	Trace          Trace        `json:"trace,omitzero"`
	Budget         AnswerBudget `json:"budget"`
	// Remaining is the time left when the call was sent. In process the context's deadline says the same.
	Remaining   time.Duration `json:"remaining_ns"`
	Generation  uint64        `json:"generation"`
	Incarnation uint64        `json:"incarnation"`
}

// Sight is what a hook may see of its dispatches. It is immutable.
type Sight struct {
	// All means that nothing is withheld of the input.
	All bool
	// Policy, Context and Metadata say whether the sets and the metadata are sent.
	Policy, Context, Metadata bool

	field func(name string) bool
	lacks []string // needed sets, or facts, that are not granted
}

// NewSight returns the sight of a hook with the given needs; sees reports what it may
// see: fields of the input by JSON name and the words of [SeenSets].
func NewSight(needs []string, sees func(name string) bool) Sight {
	s := Sight{All: sees("*"), Policy: sees(SeePolicy), Context: sees(SeeContext), Metadata: sees(SeeMetadata), field: sees}
	for _, set := range []string{SeePolicy, SeeContext, SeeFacts} {
		if !sees(set) && slices.Contains(needs, set) {
			s.lacks = append(s.lacks, set)
		}
	}
	return s
}

// Withhold removes from d what the hook may not see, and names it in d.Withheld. It
// copies the input before it changes it.
func (s *Sight) Withhold(d *Dispatch) {
	if !s.All {
		d.Input, d.Withheld = withhold(d.Input, s.field)
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
	for _, name := range s.lacks {
		if !slices.Contains(d.Withheld, name) { // facts that a test gives are a field
			d.Withheld = append(d.Withheld, name)
		}
	}
}

// AnswerBudget bounds the text of an answer. Zero fields are unbounded.
type AnswerBudget struct {
	// MaxChars is in Unicode scalar values, the frame included. 0 does not bound: where nothing is left, it is 1.
	MaxChars int `json:"max_chars"`
	// MaxBytes is the largest answer that the wire takes.
	MaxBytes int `json:"max_bytes"`
}

// Trace is a W3C trace context (traceparent, tracestate).
type Trace struct {
	Parent string `json:"traceparent,omitempty"`
	State  string `json:"tracestate,omitempty"`
}

// Result is a plugin's answer to a Dispatch.
type Result struct {
	Contributions Contributions `json:"contributions"`
	Diagnostics   []Diagnostic  `json:"diagnostics,omitempty"`
}

// ToolCall is one call of a plugin's tool.
type ToolCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Context   Context         `json:"context"`
	// Policies are the turn's set so far, by grant, filled in by the engine.
	Policies []PolicyEntry `json:"policies,omitempty"`
	// OutsideTurn says that the host made the call outside any turn, for example for
	// a person at its command line. Inside a turn a needed policy must be there.
	OutsideTurn    bool          `json:"outside_turn,omitempty"`
	IdempotencyKey string        `json:"idempotency_key,omitempty"`
	Trace          Trace         `json:"trace,omitzero"`
	Budget         AnswerBudget  `json:"budget"`
	Remaining      time.Duration `json:"remaining_ns"`
	Generation     uint64        `json:"generation"`
	Incarnation    uint64        `json:"incarnation"`
}

// ToolResult is a tool's answer.
type ToolResult struct {
	// Content is any JSON; a plain text is a JSON string.
	Content json.RawMessage `json:"content,omitempty"`
	// IsError says that the tool itself reports a failure to the model.
	IsError     bool         `json:"is_error"`
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
}

// Text is the content as a model reads it: the text of a JSON string, and other JSON as it is.
func (r *ToolResult) Text() string {
	var text string
	if json.Unmarshal(r.Content, &text) != nil {
		text = string(r.Content)
	}
	return text
}

// Configuration is what a plugin gets before its first call, and again when the operator changes it.
type Configuration struct {
	// Instance is the operator's name for this plugin: the first part of its subscription ids.
	Instance string
	// Config is a JSON object that matches the plugin's schema; nil if there is none.
	Config json.RawMessage
	// Services are the host services of which it may call at least one method.
	Services []string
	// Host is how the plugin calls back. It stays valid until the plugin is configured again or ends.
	Host Host
}

// StateKey names one value of the host service "state".
type StateKey struct {
	WorkspaceID, SessionID, Plugin string
}

// Host is what a plugin may ask of its host; it is safe for concurrent use. Inside a
// handler pass on the handler's context: it carries the call chain and the deadline.
type Host interface {
	// Call asks a host service. An error is an *Error with the service's code; CauseForbidden without the grant.
	Call(ctx context.Context, service, method string, params json.RawMessage) (json.RawMessage, error)
	// Invalidate drops cached contributions of this plugin.
	Invalidate(ctx context.Context, what Invalidation) error
}

// Invalidation names stale cached contributions by subscription and tag. Empty means all of the plugin's.
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

// The bounds of the host service "model", in bytes.
const (
	MaxCompletionInput  = 64 << 10  // bounds System, Input and Schema together
	MaxCompletionOutput = 256 << 10 // bounds the Text of an answer
)

// CompletionRequest is what a plugin asks a model through its host: the parameters of
// the method "complete" of the host service "model". The host chooses the model.
type CompletionRequest struct {
	// System are the instructions, if any.
	System string `json:"system,omitempty"`
	// Input is the text that the model works on; required.
	Input string `json:"input"`
	// Schema is the JSON Schema of the answer; nil wants plain text. The engine checks
	// that the answer is JSON, not that it matches.
	Schema json.RawMessage `json:"schema,omitempty"`
	// SchemaName names the schema for the provider: letters, digits, _ and -, at
	// most 64. Empty leaves it to the host.
	SchemaName string `json:"schema_name,omitempty"`
	// MaxOutputTokens bounds the answer, beside the plugin's budget; 0 leaves it to the
	// host. A host's function never gets 0.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
	// Purpose is a word or two for the host's records and its choice of a model.
	Purpose string `json:"purpose,omitempty"`
}

// CompletionResponse is a model's answer to a [CompletionRequest].
type CompletionResponse struct {
	// Text is the answer; JSON if the request has a schema.
	Text string `json:"text"`
	// Model names the model that answered, if the host says so.
	Model string `json:"model"`
	// Usage is what the provider reported; zero if unknown.
	Usage   Usage `json:"usage,omitzero"`
	Stopped Stop  `json:"stopped"`
}

// Stop is why a model's answer ended; empty counts as StoppedEnd.
type Stop string

// The ends of an answer.
const (
	StoppedEnd     Stop = "end"     // the model was done
	StoppedLength  Stop = "length"  // it had no more tokens; the text is cut off
	StoppedRefusal Stop = "refusal" // the model, or the provider's filter, refused
	StoppedOther   Stop = "other"   // any other end; the text may be a part
)

// Known reports whether s is one of the ends of an answer.
func (s Stop) Known() bool {
	return s == StoppedEnd || s == StoppedLength || s == StoppedRefusal || s == StoppedOther
}

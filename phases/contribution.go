package phases

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"
)

// Kind names a kind of contribution.
type Kind string

// The kinds.
const (
	KindPolicy Kind = "policy" // sets one value under (domain, key) for the rest of the turn
	// KindPromptContext: text for the dynamic context, or (`Render` false) only for later hooks.
	KindPromptContext Kind = "prompt_context"
	KindPromptSection Kind = "prompt_section" // one section of the prompt, under an id that belongs to you
	KindToolBundle    Kind = "tool_bundle"    // offers tools that you answer
	// KindDecision: allow, ask or deny; the strongest verdict wins, all reasons are kept.
	KindDecision Kind = "decision"
	// KindRewrite: replaces one value in a tool's arguments or result, by JSON pointer.
	KindRewrite Kind = "rewrite"
	// KindReminder: a message beside the conversation, once per dedupe key and epoch.
	KindReminder           Kind = "reminder"
	KindManifestDiagnostic Kind = "manifest_diagnostic" // a remark of yours in the manifest; needs no grant
	KindAudit              Kind = "audit"               // an event for the audit trail
	// KindBackgroundJob: work for later: a call of your tool of that name, or a handler of the host's.
	KindBackgroundJob Kind = "background_job"
	KindNoop          Kind = "noop" // "I ran and have nothing to add"; needs no grant
)

//nolint:gochecknoglobals // an immutable table
var kinds = []func() Contribution{
	func() Contribution { return &Policy{} }, func() Contribution { return &PromptContext{} }, func() Contribution { return &PromptSection{} },
	func() Contribution { return &ToolBundle{} }, func() Contribution { return &Decision{} }, func() Contribution { return &Rewrite{} },
	func() Contribution { return &Reminder{} }, func() Contribution { return &ManifestDiagnostic{} }, func() Contribution { return &Audit{} },
	func() Contribution { return &BackgroundJob{} }, func() Contribution { return &Noop{} },
}

// Kinds returns all kinds, in the order of the specification.
func Kinds() []Kind {
	list := make([]Kind, len(kinds))
	for i := range kinds {
		list[i] = kinds[i]().kind()
	}
	return list
}

// newContribution returns a zero value of the kind, or nil for an unknown one.
func newContribution(k Kind) Contribution {
	for _, zero := range kinds {
		if c := zero(); c.kind() == k {
			return c
		}
	}
	return nil
}

// AlwaysAccepted returns the kinds that every phase takes.
func AlwaysAccepted() []Kind {
	return []Kind{KindAudit, KindBackgroundJob, KindManifestDiagnostic, KindNoop}
}

// NeedsGrant reports whether the operator must grant the kind by name.
func (k Kind) NeedsGrant() bool { return k != KindManifestDiagnostic && k != KindNoop }

// Known reports whether k is one of Kinds.
func (k Kind) Known() bool { return newContribution(k) != nil }

// Contribution is one typed output of a hook: a pointer to one of the structs below. The interface is sealed.
type Contribution interface {
	// Head returns the fields that all kinds share, to read or to set.
	Head() *Common
	kind() Kind
}

// KindOf returns the kind of a contribution.
func KindOf(c Contribution) Kind { return c.kind() }

// Common is what contributions of all kinds carry.
type Common struct {
	// ContributionID is the plugin's own id; the runtime fills an empty one as
	// SUBSCRIPTION#INDEX, so that runs repeat byte for byte.
	ContributionID string `json:"contribution_id,omitempty"`
	// Domain is the area that the contribution speaks for ("memory", …).
	Domain string `json:"domain,omitempty"`
	// Priority ranks contributions behind their subscription's priority; higher is more important.
	Priority int `json:"priority,omitempty"`
	// Diagnostics is what the plugin has to say about this contribution.
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
}

// Head returns c itself.
func (c *Common) Head() *Common { return c }

// Stability says how often a section's text changes.
type Stability string

// The stabilities. An empty one counts as dynamic.
const (
	StabilityStable  Stability = "stable"
	StabilityDynamic Stability = "dynamic"
)

// Placement says where a section goes. An empty one counts as system.
type Placement string

// The placements.
const (
	PlacementSystem        Placement = "system"
	PlacementSystemMessage Placement = "system_message"
	PlacementUserMessage   Placement = "user_message"
)

// Verdict is a decision's answer.
type Verdict string

// The verdicts, weakest first.
const (
	VerdictAllow Verdict = "allow"
	VerdictAsk   Verdict = "ask"
	VerdictDeny  Verdict = "deny"
)

// Strength orders verdicts: deny > ask > allow > anything else.
func (v Verdict) Strength() int {
	return slices.Index([]Verdict{VerdictAllow, VerdictAsk, VerdictDeny}, v) + 1
}

// SourceRef names where a text came from, for the manifest.
type SourceRef struct {
	// Kind is one of SourceKinds.
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
	// Label is for people.
	Label string `json:"label,omitempty"`
	// Hash says which content it was, such as "sha256:" and 64 hex digits of a file's bytes.
	Hash string `json:"hash,omitempty"`
}

// SourceKinds returns the words that a SourceRef's kind may be.
func SourceKinds() []string {
	return []string{"workspace", "thread", "turn", "task", "agent", "tool", "document", "file", "url", "memory", "hook_run", "other"}
}

// Frame is text around a section's body that survives every cut.
type Frame struct {
	Open  string `json:"open,omitempty"`
	Close string `json:"close,omitempty"`
}

// SelfCut is a plugin's own report of what it left away, in Unicode scalar values.
type SelfCut struct {
	Original int `json:"original"`
	Kept     int `json:"kept"`
}

// Policy sets one value under (domain, key) for the rest of the turn.
type Policy struct {
	Common
	Key string `json:"key"`
	// Value is any JSON.
	Value json.RawMessage `json:"value"`
}

// PromptContext is text for the dynamic context or for later hooks.
type PromptContext struct {
	Common
	Content string `json:"content"`
	// MaxChars bounds the text; 0 leaves it to the phase's limits.
	MaxChars   int         `json:"max_chars,omitempty"`
	SourceRefs []SourceRef `json:"source_refs,omitempty"`
	// Render false hands the text to later hooks only. Nil means true.
	Render *bool `json:"render,omitempty"`
}

// Rendered reports whether the text goes into the prompt.
func (c *PromptContext) Rendered() bool { return c.Render == nil || *c.Render }

// PromptSection is one section of the prompt.
type PromptSection struct {
	Common
	SectionID string    `json:"section_id"`
	Title     string    `json:"title,omitempty"`
	Stability Stability `json:"stability,omitempty"`
	Placement Placement `json:"placement,omitempty"`
	Content   string    `json:"content"`
	Frame     *Frame    `json:"frame,omitempty"`
	// MaxChars bounds frame, body and marker; 0 leaves it to other limits.
	MaxChars   int         `json:"max_chars,omitempty"`
	SourceRefs []SourceRef `json:"source_refs,omitempty"`
	// Cut is what the plugin itself left away, if it did.
	Cut *SelfCut `json:"cut,omitempty"`
}

// RequestTools is the name of the engine's own tool, by which a model asks for the tools of hidden domains. The
// name belongs to "builtin": no plugin may offer a tool under it.
const RequestTools = "request_tools"

// Tool is one tool as a model sees it.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// InputSchema is a JSON Schema object; nil means no arguments.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	// HiddenDomain hides the tool behind a domain, a name, until that is asked for by [RequestTools].
	HiddenDomain string `json:"hidden_domain,omitempty"`
}

// ToolBundle offers tools that this plugin answers.
type ToolBundle struct {
	Common
	BundleID string `json:"bundle_id"`
	Tools    []Tool `json:"tools"`
}

// Decision allows, asks or denies.
type Decision struct {
	Common
	Verdict    Verdict `json:"verdict"`
	Reason     string  `json:"reason,omitempty"`
	ReasonCode string  `json:"reason_code,omitempty"`
}

// Rewrite replaces one value in a tool's arguments or result.
type Rewrite struct {
	Common
	// Path is a JSON pointer (RFC 6901) into the arguments or the result.
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// Reminder is a message that the host puts beside the conversation.
type Reminder struct {
	Common
	Type       string            `json:"type"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Text       string            `json:"text"`
	// DedupeKey makes the engine deliver the reminder once per epoch; empty means always.
	DedupeKey string `json:"dedupe_key,omitempty"`
}

// Severity is how bad a diagnostic is.
type Severity string

// The severities.
const (
	SeverityInfo    Severity = "info"
	SeverityWarning Severity = "warning"
	SeverityError   Severity = "error"
)

// ManifestDiagnostic puts a diagnostic of the plugin's into the manifest.
type ManifestDiagnostic struct {
	Common
	Code        string   `json:"code"`
	Message     string   `json:"message,omitempty"`
	Severity    Severity `json:"severity,omitempty"`
	SafeForUser bool     `json:"safe_for_user,omitempty"`
}

// Audit is an event for the audit trail.
type Audit struct {
	Common
	EventKind string `json:"event_kind"`
	// Details is any JSON.
	Details     json.RawMessage `json:"details,omitempty"`
	SafeForUser bool            `json:"safe_for_user,omitempty"`
}

// BackgroundJob asks for work to be done later by the contributing plugin.
type BackgroundJob struct {
	Common
	JobKind string `json:"job_kind"`
	// Payload is any JSON.
	Payload json.RawMessage `json:"payload,omitempty"`
	// IdempotencyKey makes a second job of the same key a no-op. It also says that doing the job twice does no
	// harm: the tool gets the key. Without one, a job that was interrupted is not retried.
	IdempotencyKey string    `json:"idempotency_key,omitempty"`
	NotBefore      time.Time `json:"not_before,omitzero"`
}

// Noop says "I ran and have nothing to add". If it is the whole answer and has the id [IDFiltered], it says that a condition
// of the hook's own does not hold for this input, and that the hook did nothing: its run is filtered.
type Noop struct{ Common }

// IDFiltered is the id of a [Noop] whose hook does not apply to its input.
const IDFiltered = "filtered"

func (*Policy) kind() Kind             { return KindPolicy }
func (*PromptContext) kind() Kind      { return KindPromptContext }
func (*PromptSection) kind() Kind      { return KindPromptSection }
func (*ToolBundle) kind() Kind         { return KindToolBundle }
func (*Decision) kind() Kind           { return KindDecision }
func (*Rewrite) kind() Kind            { return KindRewrite }
func (*Reminder) kind() Kind           { return KindReminder }
func (*ManifestDiagnostic) kind() Kind { return KindManifestDiagnostic }
func (*Audit) kind() Kind              { return KindAudit }
func (*BackgroundJob) kind() Kind      { return KindBackgroundJob }
func (*Noop) kind() Kind               { return KindNoop }

// CloneContribution returns a copy that shares no mutable memory with c.
func CloneContribution(c Contribution) Contribution {
	switch c := c.(type) { // the usual ones, without reflection
	case *PromptSection:
		own := *c
		own.Diagnostics, own.SourceRefs = slices.Clone(c.Diagnostics), slices.Clone(c.SourceRefs)
		own.Frame, own.Cut = clonePointer(c.Frame), clonePointer(c.Cut)
		return &own
	case *PromptContext:
		own := *c
		own.Diagnostics, own.SourceRefs = slices.Clone(c.Diagnostics), slices.Clone(c.SourceRefs)
		own.Render = clonePointer(c.Render)
		return &own
	}
	return cloneAny(c)
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	own := *p
	return &own
}

func cloneAny(c Contribution) Contribution {
	v := reflect.New(reflect.TypeOf(c).Elem())
	v.Elem().Set(reflect.ValueOf(c).Elem())
	unshare(v.Elem())
	return v.Interface().(Contribution) //nolint:forcetypeassert // of the same type
}

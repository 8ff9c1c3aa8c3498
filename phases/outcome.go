package phases

import (
	"encoding/json"
	"strconv"
)

// RunState is what became of one expected hook.
type RunState string

// The states of the ledger.
const (
	StateSucceeded       RunState = "succeeded"
	StateDenied          RunState = "denied"
	StateFailed          RunState = "failed"
	StateTimedOut        RunState = "timed_out"
	StateCancelled       RunState = "cancelled"
	StateFiltered        RunState = "filtered"
	StateDisabled        RunState = "disabled"
	StateUnavailable     RunState = "unavailable"
	StateBudgetExhausted RunState = "budget_exhausted"
	StateCached          RunState = "cached"
	StateShadowed        RunState = "shadowed"
	StateQueued          RunState = "queued"
)

// Completed reports whether the state satisfies a phase's "require".
func (s RunState) Completed() bool {
	return s == StateSucceeded || s == StateDenied || s == StateCached
}

// The words of ledger rows for calls that belong to no phase. Nothing can subscribe to them.
const (
	// PhaseToolCall and StageTool: a call of a tool, between tool.pre_call and tool.post_call.
	PhaseToolCall Phase = "tool.call"
	StageTool     Role  = "tool"
	// PhaseHostCall and StageHost: a plugin's call of the host service "model".
	PhaseHostCall Phase = "host.call"
	StageHost     Role  = "host"
)

// Run is the record of one expected hook in one phase, of one call of a tool ([PhaseToolCall]), or of one call
// of the host's model ([PhaseHostCall]). Times are not hashed, so that equal work gives equal fingerprints.
type Run struct {
	// Subscription is the full id; of a tool call PLUGIN.TOOL, of a host call the
	// caller's with "/SERVICE.METHOD" behind it.
	Subscription string `json:"subscription"`
	// Hook is the plugin's own name for it; of a tool call the tool's name, of a host call SERVICE.METHOD.
	Hook          string `json:"hook"`
	Plugin        string `json:"plugin"`
	PluginVersion string `json:"plugin_version"`
	Generation    uint64 `json:"generation"`
	Incarnation   uint64 `json:"incarnation"`
	Phase         Phase  `json:"phase"`
	Stage         Role   `json:"stage"`
	// Layer is the dependency layer inside the stage, from 0.
	Layer int      `json:"layer"`
	State RunState `json:"state"`
	// Code is the cause; for a disabled run the reason, and "tool_error" for a tool
	// that reported a failure to the model. Empty when all is well.
	Code string `json:"code"`
	// PluginCode is the plugin's own word in a plugin_error.
	PluginCode string `json:"plugin_code"`
	// Verdict is what the hook decided, of several decisions the strongest; of a
	// shadowed run what it would have decided. Absent where it decided nothing.
	Verdict Verdict `json:"verdict,omitempty"`
	// ReasonCode is the plugin's own word for the reason of the verdict.
	ReasonCode string `json:"reason_code,omitempty"`
	// RewrittenBy are the subscriptions whose rewrites were in the input that the condition judged and the hook
	// was sent; absent where it was as the host gave it.
	RewrittenBy []string `json:"rewritten_by,omitempty"`
	Attempts    int      `json:"attempts"`
	// QueueMS and DurationMS are wall milliseconds waiting for a slot and in the call.
	QueueMS    float64 `json:"queue_ms"`
	DurationMS float64 `json:"duration_ms"`
	// BytesIn went to the plugin and BytesOut came back; 0 in process. Of a host
	// call they went to the service and came back from it.
	BytesIn  int `json:"bytes_in"`
	BytesOut int `json:"bytes_out"`
	// Contributions are the hashes of what was kept.
	Contributions []string `json:"contributions"`
	Cut           []Cut    `json:"cut"`
	// CachedFrom names the run that a cached answer came from.
	CachedFrom string `json:"cached_from"`
	// DecisionRef is that of the phase's outcome, if the hook decided, and of the prompt in force at a call of a tool.
	DecisionRef *DecisionRef `json:"-"`
	// Model names the model that answered a host call, as the host says; absent from other rows.
	Model string `json:"model,omitempty"`
	// Usage is what the model's provider reported for a host call; absent from other rows.
	Usage Usage `json:"usage,omitzero"`
}

// Limit names the one limit that cut a text.
type Limit string

// The limits, in the order in which ties are settled.
const (
	LimitPlugin       Limit = "plugin"
	LimitContribution Limit = "contribution"
	LimitSubscription Limit = "subscription"
	LimitSection      Limit = "section"
	LimitTotal        Limit = "total"
)

// Truncation says which limit cut a text, and from how many Unicode scalar values to how many.
type Truncation struct {
	Limit    Limit `json:"limit"`
	Original int   `json:"original"`
	Kept     int   `json:"kept"`
}

// Cut is a truncation of one contribution.
type Cut struct {
	ContributionID string `json:"contribution_id"`
	SectionID      string `json:"section_id,omitempty"`
	Truncation
}

// Omitted is something that did not reach the prompt at all.
type Omitted struct {
	// ID is a section or contribution id.
	ID    string `json:"id"`
	Owner string `json:"owner"`
	// Reason is a word: budget, profile, conflict, forbidden, blank, filtered, duplicate, host_cannot, or a Cause.
	Reason string `json:"reason"`
	Chars  int    `json:"chars"`
}

// PluginState is the state of a plugin as the ledger shows it.
type PluginState string

// The states of a plugin.
const (
	PluginDeclared    PluginState = "declared"
	PluginStarting    PluginState = "starting"
	PluginReady       PluginState = "ready"
	PluginDegraded    PluginState = "degraded"
	PluginBackoff     PluginState = "backoff"
	PluginQuarantined PluginState = "quarantined"
	PluginDraining    PluginState = "draining"
	PluginStopped     PluginState = "stopped"
)

// PluginRow is one declared plugin beside the runs.
type PluginRow struct {
	Plugin  string `json:"plugin"`
	Version string `json:"version"`
	// SHA256 is the checksum of the program in hex; "builtin" and "in_process" where
	// there is no file, and "unpinned" where it could not be read.
	SHA256 string `json:"sha256"`
	// Pinned says that the operator's file names the checksum.
	Pinned bool `json:"pinned,omitempty"`
	// GrantHash is the hash of what the operator grants the plugin.
	GrantHash string      `json:"grant_hash,omitempty"`
	State     PluginState `json:"state"`
	// Code and Message say why it is not ready. The message is the engine's own; it
	// keeps its name in stored manifests.
	Code    string `json:"code"`
	Message string `json:"detail"`
	// Detail holds words of the plugin that belong to the message, such as the end of
	// its standard error. It is for the operator's log and never encoded.
	Detail     string `json:"-"`
	Generation uint64 `json:"generation"`
	// Tier is the sandbox tier reached: "T0", "T1", "T2", or "" in process.
	Tier string `json:"tier"`
	// TierLacks says what the tier lacks on this machine; absent if that is nothing.
	TierLacks []string `json:"tier_lacks,omitempty"`
	// AbsentPaths lists granted paths that were not there when the process started,
	// and are not granted therefore; absent if all were.
	AbsentPaths []string `json:"absent_paths,omitempty"`
	Restarts    int      `json:"restarts"`
	// Recycled is how often a new process took over from one that was well (limits.recycle).
	Recycled int `json:"recycled,omitempty"`
}

// Applied is one contribution that was kept.
type Applied struct {
	Kind         Kind   `json:"kind"`
	Hook         string `json:"hook"`
	Subscription string `json:"subscription"`
	Plugin       string `json:"plugin"`
	Hash         string `json:"hash"`
	// Value is what everybody may see: of a manifest_diagnostic without the words of
	// the plugin, of an audit event without its details.
	Value Contribution `json:"value"`
	// Whole is the contribution as it was made, where Value is not; see [Applied.For].
	Whole Contribution `json:"-"`
	// SafeForUser and Visibility say to whom it opens.
	SafeForUser bool       `json:"-"`
	Visibility  Visibility `json:"-"`
}

// Reason is one hook's part in a decision.
type Reason struct {
	Subscription string  `json:"subscription"`
	Verdict      Verdict `json:"verdict"`
	Reason       string  `json:"reason"`
	ReasonCode   string  `json:"reason_code"`
	// ContributionID is that of the decision; absent where no hook made it.
	ContributionID string `json:"contribution_id,omitempty"`
}

// Decided is a merged decision: the strongest verdict, and all reasons in plan order.
type Decided struct {
	Verdict Verdict  `json:"verdict"`
	Reasons []Reason `json:"reasons"`
}

// DecisionRef names the record of the prompt in force when a decision was made: the last one that the model had been
// given. It joins what an agent did with what it had been told.
type DecisionRef struct {
	ManifestID string `json:"manifest_id"`
	// Seq is the record's number in its thread; 0 without a store.
	Seq uint64 `json:"seq"`
}

// String returns the text form, MANIFESTID/SEQ.
func (r DecisionRef) String() string { return r.ManifestID + "/" + strconv.FormatUint(r.Seq, 10) }

// MergedSection is one section after merging: fragments joined, text cut.
type MergedSection struct {
	SectionID string    `json:"section_id"`
	Stability Stability `json:"stability"`
	Priority  int       `json:"priority"`
	// Owner is the plugin that the section belongs to.
	Owner string `json:"owner"`
	// Content is the text with frames and markers, ready to be placed.
	Content    string      `json:"content"`
	Truncation *Truncation `json:"truncation"`

	Title     string    `json:"-"`
	Placement Placement `json:"-"`
	// OriginalChars is the length before any cut.
	OriginalChars int         `json:"-"`
	SourceRefs    []SourceRef `json:"-"`
	// Sources are the contributions whose text is in it, in order.
	Sources []HookSource `json:"-"`
	// Parts say who wrote what of Content, without a gap. Nil means that it is all from the only source, or else
	// from the owner.
	Parts []TextPart `json:"-"`
}

// TextPart is a piece of a text that one owner wrote.
type TextPart struct {
	Bytes int
	// Owner is a plugin, or "builtin" for separators and the markers of cuts.
	Owner          string
	ContributionID string
}

// HookSource says where a contribution of a hook went.
type HookSource struct {
	HookID           string `json:"hook_id"`
	SubscriptionID   string `json:"subscription_id"`
	ContributionID   string `json:"contribution_id"`
	ContributionHash string `json:"contribution_hash"`
	ContributionKind Kind   `json:"contribution_kind"`
	SectionID        string `json:"section_id"`
	Phase            Phase  `json:"phase"`
	// Priority is the subscription's.
	Priority    int `json:"priority"`
	SourceCount int `json:"source_count"`
	// Truncation is hook, prompt, hook_and_prompt or none.
	Truncation    string `json:"truncation"`
	Plugin        string `json:"plugin"`
	PluginVersion string `json:"plugin_version"`
	CachedFrom    string `json:"cached_from"`
}

// MergedTool is one tool after merging.
type MergedTool struct {
	Name     string `json:"name"`
	BundleID string `json:"bundle_id"`
	// Owner is the plugin that answers it, "host" or "builtin".
	Owner string `json:"owner"`

	Definition Tool   `json:"-"`
	Hash       string `json:"-"`
}

// MergedRewrite is one rewrite, in the order of application.
type MergedRewrite struct {
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
	Owner string          `json:"owner"`
}

// MergedReminder is one reminder to be delivered.
type MergedReminder struct {
	Type       string            `json:"type"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Text       string            `json:"text"`
	DedupeKey  string            `json:"dedupe_key,omitempty"`
	Owner      string            `json:"owner"`
	// ContributionID is that of the contribution.
	ContributionID string `json:"contribution_id,omitempty"`
}

// BackgroundRun is the result of background work that a dispatch queued: of an
// observing hook, or of a background_job.
type BackgroundRun struct {
	// Kind is the job_kind; empty for a hook.
	Kind         string `json:"kind"`
	Plugin       string `json:"plugin"`
	Subscription string `json:"subscription"`
	Phase        Phase  `json:"phase"`
	// State is "queued" for work that has not ended yet. Code says why it failed or was last put off.
	State      RunState `json:"state"`
	Code       string   `json:"code"`
	PluginCode string   `json:"plugin_code"`
	// Attempts counts them; DurationMS is the time of the last one.
	Attempts   int     `json:"attempts"`
	DurationMS float64 `json:"duration_ms"`
	// Contributions are the kinds of what it contributed.
	Contributions []Kind       `json:"contributions"`
	Diagnostics   []Diagnostic `json:"diagnostics"`
}

// Merged is the result of merging the contributions of one dispatch, with an owner
// for each slot. Lists are empty, not nil, so that JSON shows [].
type Merged struct {
	Policies  []PolicyEntry    `json:"policies"`
	Contexts  []ContextEntry   `json:"contexts"`
	Sections  []MergedSection  `json:"sections"`
	Tools     []MergedTool     `json:"tools"`
	Rewrites  []MergedRewrite  `json:"rewrites"`
	Reminders []MergedReminder `json:"reminders"`
}

// Spent is the time of one subscription.
type Spent struct {
	Subscription string  `json:"subscription"`
	MS           float64 `json:"ms"`
}

// BudgetUse is the time of a dispatch, in milliseconds.
type BudgetUse struct {
	GrantedMS float64 `json:"granted_ms"`
	UsedMS    float64 `json:"used_ms"`
	SpentBy   []Spent `json:"spent_by"`
}

// Outcome is the result of one dispatch of a phase.
type Outcome struct {
	Phase Phase `json:"phase"`
	// Contributions is what was kept, in plan order.
	Contributions []Applied `json:"contributions"`
	// Shadowed is what shadow hooks contributed, in plan order; none of it is applied.
	Shadowed []Applied `json:"shadowed,omitempty"`
	// Decision is nil when nobody decided.
	Decision *Decided `json:"decision"`
	// DecisionRef is nil without a decision, and where no prompt is known.
	DecisionRef *DecisionRef `json:"decision_ref,omitempty"`
	Merged      Merged       `json:"merged"`
	// Runs has one entry per expected subscription, in plan order.
	Runs []Run `json:"runs"`
	// Plugins has one row per declared plugin. Outcomes share them: they must not be changed.
	Plugins []PluginRow `json:"plugins"`
	Budget  BudgetUse   `json:"budget"`
	// Diagnostics are in plan order, then by kind.
	Diagnostics []Diagnostic `json:"diagnostics"`
	// Error is set when the phase failed closed.
	Error *Error `json:"error"`
	// Background is set if the host waited for the background work.
	Background []BackgroundRun `json:"background,omitempty"`

	// Omitted is what did not reach the merged result, and why.
	Omitted []Omitted `json:"-"`
	// Rewritten is the input with all rewrites applied: what the host goes on with.
	Rewritten Input `json:"-"`
	// Sources lists every kept contribution for the manifest.
	Sources []HookSource `json:"-"`
}

package phases

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Input is the typed input of one phase: a pointer to one of the *Input structs of this package. The interface
// is sealed; a host's own phases use [CustomInput].
type Input interface{ phase() Phase }

// PhaseOf returns the phase that an input belongs to.
func PhaseOf(in Input) Phase { return in.phase() }

// SessionStartInput is the input of [SessionStart].
type SessionStartInput struct {
	// Source says what began the session: "startup" or "clear".
	Source string `json:"source,omitempty"`
}

// SessionResumeInput is the input of [SessionResume].
type SessionResumeInput struct {
	// State is what the host recorded of the session, JSON.
	State json.RawMessage `json:"state,omitempty"`
}

// PrePolicyInput is the input of [PrePolicy].
type PrePolicyInput struct {
	UserText Text   `json:"user_text,omitzero"`
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`
}

// PrePromptContextInput is the input of [PrePromptContext].
type PrePromptContextInput struct {
	UserText Text   `json:"user_text,omitzero"`
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`
}

// PostPreflightInput is the input of [PostPreflight].
type PostPreflightInput struct {
	UserText Text   `json:"user_text,omitzero"`
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`
	// RecallPlan is what the host's planner wants recalled, JSON.
	RecallPlan json.RawMessage `json:"recall_plan,omitempty"`
}

// PreToolsInput is the input of [PreTools].
type PreToolsInput struct {
	// ToolCalling says whether the provider can call tools at all.
	ToolCalling bool `json:"tool_calling,omitempty"`
	// ExistingTools are the names of the host's own tools; they belong to it.
	ExistingTools []string `json:"existing_tools,omitempty"`
}

// PrePromptCompileInput is the input of [PrePromptCompile].
type PrePromptCompileInput struct {
	ToolCalling bool `json:"tool_calling,omitempty"`
	// AvailableTools are the names of all tools that the model will be offered.
	AvailableTools []string `json:"available_tools,omitempty"`
	// Sections are the ids of the sections known so far.
	Sections []string `json:"sections,omitempty"`
}

// PostPromptCompileInput is the input of [PostPromptCompile].
type PostPromptCompileInput struct {
	// Manifest is the canonical JSON of the PromptManifest so far.
	Manifest json.RawMessage `json:"manifest,omitempty"`
	// PromptText is the compiled prompt.
	PromptText Text `json:"prompt_text,omitzero"`
}

// RuntimePreContextInput is the input of [RuntimePreContext].
type RuntimePreContextInput struct {
	UserText Text `json:"user_text,omitzero"`
}

// ToolPreCallInput is the input of [ToolPreCall].
type ToolPreCallInput struct {
	// Tool is the tool's name; it is always sent.
	Tool string `json:"tool,omitempty"`
	// Arguments are the call's arguments, JSON.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// TouchedPaths are the files and folders that the call is about.
	TouchedPaths []string `json:"touched_paths,omitempty"`
	// Facts are what is known of the call. Only a hook has them that needs "facts" and may see them; the engine replaces
	// what a host gives.
	Facts Facts `json:"facts,omitzero"`
}

// ToolPostCallInput is the input of [ToolPostCall].
type ToolPostCallInput struct {
	// Tool is the tool's name; it is always sent.
	Tool         string          `json:"tool,omitempty"`
	Arguments    json.RawMessage `json:"arguments,omitempty"`
	Result       Preview         `json:"result,omitzero"`
	TouchedPaths []string        `json:"touched_paths,omitempty"`
	// Outcome is the host's word for how the call ended ("ok", "error", …).
	Outcome string `json:"outcome,omitempty"`
	// Facts are as in [ToolPreCallInput], with the files as they are after the call.
	Facts Facts `json:"facts,omitzero"`
}

// MaxForced is how often a turn can be made to go on at its end ([PreEnd]): Claude Code and Copilot stop after as many.
const MaxForced = 8

// PreEndInput is the input of [PreEnd].
type PreEndInput struct {
	// Text is what the model has said last.
	Text Text `json:"text,omitzero"`
	// OpenTasks are short descriptions of what the host knows to be undone.
	OpenTasks []string `json:"open_tasks,omitempty"`
	// Forced is how often hooks have made this turn go on. In a turn the engine counts, whatever the host says.
	Forced int `json:"forced,omitempty"`
}

// TurnStatus is how a turn ended.
type TurnStatus string

// The statuses of a turn.
const (
	TurnSucceeded       TurnStatus = "succeeded"
	TurnFailed          TurnStatus = "failed"
	TurnProviderFailure TurnStatus = "provider_failure"
	TurnInterrupted     TurnStatus = "interrupted"
	TurnBlocked         TurnStatus = "blocked"
)

// Bounds of a [PostTurnInput], in Unicode scalar values and entries.
const (
	MaxTurnText   = 4000
	MaxTurnError  = 1000
	MaxTurnEvents = 40
)

// ToolEvent is one tool call of a finished turn.
type ToolEvent struct {
	Tool       string  `json:"tool"`
	CallID     string  `json:"call_id,omitempty"`
	Outcome    string  `json:"outcome,omitempty"`
	DurationMS float64 `json:"duration_ms,omitempty"`
}

// DomainEvent is something that the host wants to be known of a finished turn.
type DomainEvent struct {
	Kind    string          `json:"kind"`
	Details json.RawMessage `json:"details,omitempty"`
}

// Usage is what the provider reported, in tokens.
type Usage struct {
	// InputTokens are all that were read, those of the cache included.
	InputTokens int `json:"input_tokens,omitempty"`
	// OutputTokens are all that were written, reasoning included.
	OutputTokens int `json:"output_tokens,omitempty"`
	// CacheReadTokens came out of the provider's cache.
	CacheReadTokens int `json:"cache_read_tokens,omitempty"`
	// CacheWriteTokens went into it.
	CacheWriteTokens int `json:"cache_write_tokens,omitempty"`
}

// Add returns the sum of two reports.
func (u Usage) Add(o Usage) Usage {
	u.InputTokens += o.InputTokens
	u.OutputTokens += o.OutputTokens
	u.CacheReadTokens += o.CacheReadTokens
	u.CacheWriteTokens += o.CacheWriteTokens
	return u
}

// PostTurnInput is the input of [PostTurn]. Bounded cuts it to its bounds.
type PostTurnInput struct {
	Status        TurnStatus    `json:"status,omitempty"`
	UserText      Preview       `json:"user_text,omitzero"`
	AssistantText Preview       `json:"assistant_text,omitzero"`
	Error         Preview       `json:"error,omitzero"`
	ToolEvents    []ToolEvent   `json:"tool_events,omitempty"`
	DomainEvents  []DomainEvent `json:"domain_events,omitempty"`
	Usage         Usage         `json:"usage,omitzero"`
}

// Bounded returns a copy within the bounds of the phase: previews shortened
// (keeping their original length), the first events kept.
func (in *PostTurnInput) Bounded() *PostTurnInput {
	out := *in
	out.UserText = out.UserText.bounded(MaxTurnText)
	out.AssistantText = out.AssistantText.bounded(MaxTurnText)
	out.Error = out.Error.bounded(MaxTurnError)
	out.ToolEvents = slices.Clone(out.ToolEvents[:min(len(out.ToolEvents), MaxTurnEvents)])
	out.DomainEvents = slices.Clone(out.DomainEvents[:min(len(out.DomainEvents), MaxTurnEvents)])
	return &out
}

func (p Preview) bounded(limit int) Preview {
	q := NewPreview(p.Text, limit)
	q.OriginalLength = max(q.OriginalLength, p.OriginalLength)
	q.Truncated = q.Truncated || p.Truncated
	q.Withheld = p.Withheld
	return q
}

// SourceRange is the part of the history that a compaction replaces.
type SourceRange struct {
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// PreCompactionInput is the input of [PreCompaction].
type PreCompactionInput struct {
	// Trigger is the host's word for why ("threshold", "user", …).
	Trigger     string      `json:"trigger,omitempty"`
	SourceRange SourceRange `json:"source_range,omitzero"`
	// TokenBudget is the room for the summary, in tokens.
	TokenBudget int      `json:"token_budget,omitempty"`
	Policies    []string `json:"policies,omitempty"`
}

// PostCompactionInput is the input of [PostCompaction].
type PostCompactionInput struct {
	Summary Preview `json:"summary,omitzero"`
	// Lost names what the summary does not hold any more.
	Lost []string `json:"lost,omitempty"`
}

// SessionEndInput is the input of [SessionEnd].
type SessionEndInput struct {
	Reason string `json:"reason,omitempty"`
}

// CustomInput is the input of a phase that a host registered ([Custom]).
type CustomInput struct {
	Name Phase
	// Fields is the input as one JSON object.
	Fields json.RawMessage
}

// MarshalJSON gives the object itself.
func (in *CustomInput) MarshalJSON() ([]byte, error) {
	if len(in.Fields) == 0 {
		return []byte("{}"), nil
	}
	return in.Fields, nil
}

// UnmarshalJSON takes any JSON object and keeps the phase's name; null, as usual, changes nothing.
func (in *CustomInput) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	if fields == nil {
		return nil
	}
	in.Fields = bytes.Clone(data)
	return nil
}

func (*SessionStartInput) phase() Phase      { return SessionStart }
func (*SessionResumeInput) phase() Phase     { return SessionResume }
func (*PrePolicyInput) phase() Phase         { return PrePolicy }
func (*PrePromptContextInput) phase() Phase  { return PrePromptContext }
func (*PostPreflightInput) phase() Phase     { return PostPreflight }
func (*PreToolsInput) phase() Phase          { return PreTools }
func (*PrePromptCompileInput) phase() Phase  { return PrePromptCompile }
func (*PostPromptCompileInput) phase() Phase { return PostPromptCompile }
func (*RuntimePreContextInput) phase() Phase { return RuntimePreContext }
func (*ToolPreCallInput) phase() Phase       { return ToolPreCall }
func (*ToolPostCallInput) phase() Phase      { return ToolPostCall }
func (*PreEndInput) phase() Phase            { return PreEnd }
func (*PostTurnInput) phase() Phase          { return PostTurn }
func (*PreCompactionInput) phase() Phase     { return PreCompaction }
func (*PostCompactionInput) phase() Phase    { return PostCompaction }
func (*SessionEndInput) phase() Phase        { return SessionEnd }
func (in *CustomInput) phase() Phase         { return in.Name }

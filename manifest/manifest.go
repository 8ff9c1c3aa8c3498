package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

// SchemaVersion is the version of the record's JSON. It rises when a field changes its meaning or goes away, not when
// one is added. A field that is added is omitted from JSON while it has its zero value, so that the canonical form of
// older records stays what it was.
const SchemaVersion = 1

// Manifest is one record. The fields of the embedded structs are top-level keys of its JSON; every other field is one
// group under its own name. Lists are never null in JSON: see [Manifest.Complete].
//
// A Manifest is plain data. It is not safe for concurrent modification, and a
// copy shares its lists with the original.
type Manifest struct {
	Head
	Fingerprints
	// Sections are the sections of the prompt, in the order in which they reach
	// the model: stable, dynamic, then system and user messages.
	Sections []Section `json:"sections"`
	// SectionIDs are the ids of the sections, in order, for quick reading.
	SectionIDs []string `json:"section_ids"`
	// Omitted is what did not reach the prompt, and why.
	Omitted []phases.Omitted `json:"omitted"`
	// HookSources has one entry per kept contribution of each hook that ran.
	HookSources []phases.HookSource `json:"hook_sources"`
	// Runs is the ledger of every phase of the turn so far: one row per subscription expected, and one per call of a
	// tool; in a record of events, those since the last prompt.
	Runs []phases.Run `json:"runs"`
	// Audits are the events that plugins brought for the audit trail since the turn's previous record; absent without
	// any.
	Audits []Audit `json:"audits,omitempty"`
	// Plugins has one row per declared plugin.
	Plugins []phases.PluginRow `json:"plugins"`
	// Policies are the policy entries in force, with their owners.
	Policies []phases.PolicyEntry `json:"policies"`
	// Tools are the tools offered to the model, and those that it may request, by name, with their owners.
	Tools []Tool `json:"tools"`
	// HostTools are the tools that the host offers beside them, by name; absent without any.
	HostTools []HostTool `json:"host_tools,omitempty"`
	// History is the conversation that the host sends behind the prompt; absent where it did not say.
	History *History `json:"history,omitempty"`
	// Reminders are those that were handed to the host since the turn's previous record, with the prompt as a rule; absent
	// without any.
	Reminders []Reminder `json:"reminders,omitempty"`
	// Calls are the decided or rewritten dispatches and the steps of tool calls since the turn's previous record, in order;
	// absent without any.
	Calls []Call `json:"calls,omitempty"`
	// Requests are what the host reported of requests since the turn's previous record, in order; absent without any.
	Requests []Request `json:"requests,omitempty"`
	// HostEvents are what a host said that it did by itself since the turn's previous record, in order; absent without any.
	HostEvents []HostEvent `json:"host_events,omitempty"`
	// Erasure says what was erased; absent from other records.
	Erasure *Erasure `json:"erasure,omitempty"`
	// Budgets are time and text, granted and used.
	Budgets Budgets `json:"budgets"`
	// Files are the runtime-home files that were read, or looked for, and those that the host gives the model by itself.
	Files []File `json:"files"`
	// Diagnostics are the remarks of compiler, runtime and plugins.
	Diagnostics []Diagnostic `json:"diagnostics"`
	// Cache is what is known about the provider's prompt cache.
	Cache Cache `json:"cache"`
	Integrity
}

// Head says what the record is about.
type Head struct {
	// SchemaVersion is the version of this record's JSON.
	SchemaVersion int `json:"schema_version"`
	// Kind says what the record is about: a prompt, what came after it, or an erasure.
	Kind RecordKind `json:"kind"`
	// ManifestID is a ULID, made when the compilation began.
	ManifestID string `json:"manifest_id"`
	// Seq counts the records of one workspace and thread, from 0. The store assigns it; 0 without one.
	Seq uint64 `json:"seq"`
	// Round is the provider round within the turn, from 0.
	Round int `json:"round"`
	// RunsBefore is how many of Runs, counted from the first, earlier records of the turn already have; absent if none.
	RunsBefore int `json:"runs_before,omitempty"`
	// CompilerVersion changes when the same input would give another prompt; empty in the record of an erasure.
	CompilerVersion string `json:"compiler_version"`
	// Profile is how much of the prompt was compiled.
	Profile phases.Profile `json:"profile"`
	// Generation is the loaded configuration that the turn ran under.
	Generation uint64 `json:"generation"`
	// WorkspaceID is the host's id of the workspace.
	WorkspaceID string `json:"workspace_id"`
	// ThreadID is the host's id of the thread.
	ThreadID string `json:"thread_id"`
	// TurnID is the host's id of the turn.
	TurnID string `json:"turn_id"`
	// SessionID is the host's id of the session; empty without one.
	SessionID string `json:"session_id"`
	// Epoch counts the compactions, clears and reloads of the session, from 0: a
	// prompt of a higher epoch than the one before it follows other history. Behind
	// agents' hooks it counts from 0 again when the gateway is started.
	Epoch int `json:"epoch,omitempty"`
	// Blocked says that the turn was blocked: no provider has seen a prompt of this record.
	Blocked bool `json:"blocked,omitempty"`
	// Actor is who the turn was made for, as the host says: KIND:ID, such as user:ada; absent without one.
	Actor string `json:"actor,omitempty"`
	// AgentID is the host's id of the agent; absent without one.
	AgentID string `json:"agent_id,omitempty"`
	// TaskID is the host's id of the task; absent without one.
	TaskID string `json:"task_id,omitempty"`
	// Observed is the agent behind hooks that made this request by itself: the record has its parts as they were sent, with
	// those of Grapnel among them. Absent from prompts that Grapnel compiled.
	Observed string `json:"observed,omitempty"`
	// Mode is the host's mode; absent without one.
	Mode phases.Mode `json:"mode,omitempty"`
	// Build is the version of Grapnel that made the record.
	Build string `json:"build,omitempty"`
	// ConfigHash is the hash of the configuration in force.
	ConfigHash string `json:"config_hash,omitempty"`
	// TurnEnded says that the turn ended with this record; absent where more may follow.
	TurnEnded bool `json:"turn_ended,omitempty"`
	// TextsKept says that the texts of the sections were given to the store with the record.
	TextsKept bool `json:"texts_kept,omitempty"`
	// CreatedAt is when the record was made, in UTC.
	CreatedAt time.Time `json:"created_at"`
}

// RecordKind says what a record is about.
type RecordKind string

// The kinds of records.
const (
	KindPrompt  RecordKind = "prompt"  // a compiled prompt, or a turn that was blocked before there was one
	KindEvents  RecordKind = "events"  // what happened after a turn's last prompt, or outside of a turn
	KindErasure RecordKind = "erasure" // texts that were erased: by whom, when and why
)

// Fingerprints are the fingerprints and hashes of the prompt as a whole: a fingerprint to show, a hash to compare. Parts
// that are empty have those of the empty text.
type Fingerprints struct {
	// FingerprintStable is the fingerprint of the stable part.
	FingerprintStable string `json:"fingerprint_stable"`
	// FingerprintDynamic is the fingerprint of the dynamic part.
	FingerprintDynamic string `json:"fingerprint_dynamic"`
	// FingerprintDynamicWithoutExtraSystem is the fingerprint of the dynamic part without
	// the section extra_system, which changes with the date.
	FingerprintDynamicWithoutExtraSystem string `json:"fingerprint_dynamic_without_extra_system"`
	// FingerprintFull is the fingerprint of both parts with the boundary between them.
	FingerprintFull string `json:"fingerprint_full"`
	// FingerprintTools is the fingerprint of the tool list.
	FingerprintTools string `json:"fingerprint_tools"`
	// FingerprintKeyID differs from key to key; absent without one.
	FingerprintKeyID string `json:"fingerprint_key_id,omitempty"`
	// HashStable is the hash of the stable part.
	HashStable string `json:"hash_stable"`
	// HashDynamic is the hash of the dynamic part.
	HashDynamic string `json:"hash_dynamic"`
	// HashDynamicWithoutExtraSystem is the hash of the dynamic part without the section extra_system, which changes with
	// the date.
	HashDynamicWithoutExtraSystem string `json:"hash_dynamic_without_extra_system"`
	// HashFull is the hash of both parts with the boundary between them.
	HashFull string `json:"hash_full"`
	// HashTools is the hash of the tool list.
	HashTools string `json:"hash_tools"`
}

// EmptyFingerprints returns those of a record without a prompt, under the key.
func EmptyFingerprints(key []byte) Fingerprints {
	f, h := Fingerprint("", key), Hash("", key)
	return Fingerprints{
		FingerprintStable: f, FingerprintDynamic: f, FingerprintDynamicWithoutExtraSystem: f, FingerprintFull: f, FingerprintTools: f,
		FingerprintKeyID: KeyID(key),
		HashStable:       h, HashDynamic: h, HashDynamicWithoutExtraSystem: h, HashFull: h, HashTools: h,
	}
}

// KeyID returns the fingerprint_key_id of a key: it tells keys apart and reveals none.
func KeyID(key []byte) string {
	if len(key) == 0 {
		return ""
	}
	return Fingerprint("grapnel fingerprint key", key)[len(digest.PrefixHMACSHA256):][:16]
}

// Section is one section of the prompt.
type Section struct {
	// SectionID is the section's id, unique in the record.
	SectionID string `json:"section_id"`
	// Title is the heading.
	Title string `json:"title"`
	// Stability says in which part of the prompt it stands.
	Stability phases.Stability `json:"stability"`
	// Placement says whether it is part of the system prompt or a message; where an agent compiles the request, its text
	// stands where the agent puts it.
	Placement phases.Placement `json:"placement"`
	// Owner is a plugin's name, "builtin" or "host"; in an observed request also the agent, or whoever brought it there:
	// "mod:NAME", "mcp:SERVER", "user", "model" or "unknown".
	Owner string `json:"owner"`
	// Position is the place in the list, from 0.
	Position int `json:"position"`
	// Chars is the length of the text in Unicode scalar values, without its heading.
	Chars int `json:"chars"`
	// Tokens is the length of the rendered section; absent without a tokenizer.
	Tokens *int `json:"tokens,omitempty"`
	// Tokenizer names what counted the tokens.
	Tokenizer string `json:"tokenizer,omitempty"`
	// OriginalChars is the length before any cut.
	OriginalChars int `json:"original_chars"`
	// Truncation says which limit cut the text; null if none did.
	Truncation *phases.Truncation `json:"truncation"`
	// Fingerprint is that of the rendered section, heading included: a short name of it, which others can forge.
	Fingerprint string `json:"fingerprint"`
	// Hash is the SHA-256 of the rendered section, heading included.
	Hash string `json:"hash"`
	// ContentMap says who wrote what of the text, in order and without a gap.
	ContentMap []Span `json:"content_map"`
	// SourceRefs say where the text came from.
	SourceRefs []phases.SourceRef `json:"source_refs"`
}

// Span is a piece of a section's text that one owner wrote. Separators and markers of cuts belong to "builtin".
type Span struct {
	// Offset is where it begins in the text without the heading, in Unicode scalar values.
	Offset int `json:"offset"`
	// Length is how long it is, in Unicode scalar values.
	Length int `json:"length"`
	// Owner is a plugin's name, "builtin" or "host".
	Owner string `json:"owner"`
	// ContributionID is that of the hook source; absent from texts of the host and the engine.
	ContributionID string `json:"contribution_id,omitempty"`
}

// Tool is one tool that was offered to the model, or that it could request.
type Tool struct {
	// Name is the name that the model calls.
	Name string `json:"name"`
	// BundleID is the bundle that brought it; empty for the host's own.
	BundleID string `json:"bundle_id"`
	// Owner is the plugin that answers it, "host" or "builtin".
	Owner string `json:"owner"`
	// Hash is the SHA-256 of its definition; empty where that is not known.
	Hash string `json:"hash"`
	// HiddenDomain is the domain that has to be requested before the tool is offered; empty for a tool that is.
	HiddenDomain string `json:"hidden_domain,omitempty"`
}

// Budgets are the budgets of the turn and of each phase that ran.
type Budgets struct {
	// Turn is the turn's own budget.
	Turn Budget `json:"turn"`
	// Phases has one entry per dispatch, in order.
	Phases []PhaseBudget `json:"phases"`
}

// Budget is time and text, granted and used. Zero grants are unbounded or do not apply.
type Budget struct {
	// GrantedMS is the time that the configuration allows, in milliseconds:
	// what was left of the turn does not make it smaller.
	GrantedMS float64 `json:"granted_ms"`
	// UsedMS is the wall time used, in milliseconds.
	UsedMS float64 `json:"used_ms"`
	// GrantedChars is the text allowed, in Unicode scalar values.
	GrantedChars int `json:"granted_chars"`
	// UsedChars is what is in the prompt, in Unicode scalar values: of a turn the sections of plugins, of a phase what
	// the spans of its last dispatch have, with the markers behind them.
	UsedChars int `json:"used_chars"`
}

// PhaseBudget is the budget of one dispatch.
type PhaseBudget struct {
	// Phase is the phase that was dispatched.
	Phase phases.Phase `json:"phase"`
	Budget
}

// File is one file of the persona directory, or of the host.
type File struct {
	// Path is relative to the persona directory; that of a file of the host is as the host names it.
	Path string `json:"path"`
	// Status is loaded, missing, host for a file that the host gives the model by itself, or the diagnostic code that says
	// why it was not read.
	Status string `json:"status"`
	// Chars is the length of what went into the prompt, in Unicode scalar values.
	Chars int `json:"chars"`
}

// Diagnostic is one remark.
type Diagnostic struct {
	// Code is a stable word.
	Code string `json:"code"`
	// Severity is how bad it is.
	Severity phases.Severity `json:"severity"`
	// Message is for people: the engine's own, or a plugin's where its author calls it safe and the hook's visibility
	// is user_audit or user_visible. A neutral sentence stands for any other.
	Message string `json:"message"`
	// Cause is why the hook failed, in a mark that a failure left behind (fail_open); absent from others.
	Cause phases.Cause `json:"cause,omitempty"`
	// SectionID is the section concerned, if any.
	SectionID string `json:"section_id"`
	// HookSource is the subscription concerned, if any.
	HookSource string `json:"hook_source"`
}

// Integrity ties the record to its content and to the record before it.
type Integrity struct {
	// ContentHash is the hash of the content without times, ids and durations: equal for equal work.
	ContentHash string `json:"content_hash"`
	// Prev is the hash of the thread's previous record; empty for the first.
	Prev string `json:"prev"`
	// Hash is the hash of this record with this field empty.
	Hash string `json:"hash"`
}

// maxAuditDetails bounds the details that are kept themselves, in bytes.
const maxAuditDetails = 4 << 10

// Audit is one event that a plugin brought for the audit trail.
type Audit struct {
	// Phase is the phase that it came from.
	Phase phases.Phase `json:"phase"`
	// Plugin is the plugin.
	Plugin string `json:"plugin"`
	// PluginVersion is the plugin's version.
	PluginVersion string `json:"plugin_version"`
	// SubscriptionID is the full id of the subscription.
	SubscriptionID string `json:"subscription_id"`
	// EventKind is the plugin's word for what happened.
	EventKind string `json:"event_kind"`
	// ContributionHash is the hash of the contribution.
	ContributionHash string `json:"contribution_hash"`
	// Details is any JSON; absent where the plugin did not call it safe for users, or where it is too long.
	Details json.RawMessage `json:"details,omitempty"`
	// DetailsHash is that of the details as canonical JSON; absent without details, and where they are here.
	DetailsHash string `json:"details_hash,omitempty"`
	// DetailsBytes is the length of the details as canonical JSON.
	DetailsBytes int `json:"details_bytes"`
}

// SetDetails keeps the details if they are safe and have at most 4 KiB, otherwise their hash under the key.
func (a *Audit) SetDetails(details json.RawMessage, safe bool, key []byte) {
	if len(details) == 0 {
		return
	}
	canonical, err := digest.JSON(nil, details)
	if err != nil { // it was admitted, so it is JSON
		canonical, safe = details, false
	}
	a.DetailsBytes = len(canonical)
	if safe && len(canonical) <= maxAuditDetails {
		a.Details = canonical
		return
	}
	a.DetailsHash = digest.Hash(key, canonical)
}

// HashDetails replaces the details by their hash.
func (a *Audit) HashDetails(key []byte) {
	if len(a.Details) > 0 {
		a.Details, a.DetailsHash = nil, digest.Hash(key, a.Details)
	}
}

// HashRaw returns the [Hash] of JSON in its canonical form; of anything else, that of the text.
func HashRaw(raw json.RawMessage, key []byte) string {
	if canonical, err := digest.JSON(nil, raw); err == nil {
		raw = canonical
	}
	return digest.Hash(key, raw)
}

// Text is one rendered section of a prompt, heading included. A store keeps each once, by its hash.
type Text struct {
	Hash string
	Text string
}

// Usage is what a provider reported for the prompt of a kept manifest. It is kept
// beside the record, which is closed before the usage is known.
type Usage struct {
	// ManifestID names the manifest.
	ManifestID string `json:"manifest_id"`
	// Rounds is how many compilations of the turn the numbers are for, up to and with this manifest; behind hooks, how many
	// requests of the agent.
	Rounds int `json:"rounds"`
	// ReportedAt is when the numbers came in, in UTC.
	ReportedAt time.Time `json:"reported_at"`
	phases.Usage
}

// Check returns an error unless the usage has a ULID, at least one round, a time, and no count below 0.
func (u *Usage) Check() error {
	switch {
	case !isULID(u.ManifestID):
		return fmt.Errorf("usage: manifest_id: %q is not a ULID", u.ManifestID)
	case u.Rounds < 1:
		return fmt.Errorf("usage: rounds: %d is below 1", u.Rounds)
	case u.ReportedAt.IsZero():
		return errors.New("usage: reported_at: is not set")
	case min(u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens) < 0:
		return errors.New("usage: a count is below 0")
	}
	return nil
}

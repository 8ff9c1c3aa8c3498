package phases

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
)

// Role is how a hook takes part in a phase.
type Role string

// The roles, in the order of their stages. The empty role counts as
// RoleContribute, and as RoleObserve in queue phases.
const (
	RoleTransform  Role = "transform"
	RoleContribute Role = "contribute"
	RoleValidate   Role = "validate"
	RoleObserve    Role = "observe"
)

// Roles returns the roles in the order of their stages.
func Roles() []Role { return []Role{RoleTransform, RoleContribute, RoleValidate, RoleObserve} }

// FailureWord says what a failed hook does to its phase.
type FailureWord string

// The failure words.
const (
	FailClosed FailureWord = "fail_closed"
	BestEffort FailureWord = "best_effort"
	UseInstead FailureWord = "fallback"
)

// OnFailure is a failure policy: a default word, and words by cause. In JSON and YAML it is a word or {default:
// word, CAUSE: word}. The zero value leaves the choice to the runtime.
type OnFailure struct {
	Default FailureWord
	ByCause map[Cause]FailureWord
}

// IsZero reports whether nothing was chosen.
func (f OnFailure) IsZero() bool { return f.Default == "" && len(f.ByCause) == 0 }

// For returns the word for a cause.
func (f OnFailure) For(c Cause) FailureWord {
	if w, ok := f.ByCause[c]; ok {
		return w
	}
	return f.Default
}

// Uses reports whether any of its words is w.
func (f OnFailure) Uses(w FailureWord) bool {
	return f.Default == w || slices.Contains(slices.Collect(maps.Values(f.ByCause)), w)
}

// MarshalJSON implements json.Marshaler.
func (f OnFailure) MarshalJSON() ([]byte, error) {
	if len(f.ByCause) == 0 {
		return json.Marshal(f.Default)
	}
	m := maps.Clone(f.ByCause)
	if f.Default != "" {
		m["default"] = f.Default
	}
	return json.Marshal(m)
}

// UnmarshalJSON implements json.Unmarshaler. Words and causes are checked.
func (f *OnFailure) UnmarshalJSON(data []byte) error {
	*f = OnFailure{}
	if len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &f.Default); err != nil {
			return err
		}
		return f.check()
	}
	var m map[Cause]FailureWord
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("want a word (%s) or {default: word, CAUSE: word}", strings.Join(words(failureWords()), ", "))
	}
	f.Default = m["default"]
	delete(m, "default")
	if len(m) > 0 {
		f.ByCause = m
	}
	return f.check()
}

func failureWords() []FailureWord { return []FailureWord{FailClosed, BestEffort, UseInstead} }

func (f OnFailure) check() error {
	known := words(failureWords())
	if f.Default != "" && !slices.Contains(known, string(f.Default)) {
		return fmt.Errorf("unknown failure policy %.80q%s", f.Default, suggest.DidYouMean(string(f.Default), known))
	}
	for _, c := range slices.Sorted(maps.Keys(f.ByCause)) {
		w := f.ByCause[c]
		if !c.Failure() {
			return fmt.Errorf("%.80q is not a cause of failure%s", c, suggest.DidYouMean(string(c), words(FailureCauses())))
		}
		if !slices.Contains(known, string(w)) {
			return fmt.Errorf("unknown failure policy %.80q for %s%s", w, c, suggest.DidYouMean(string(w), known))
		}
	}
	return nil
}

// Retry retries a failed call within the remaining budget. It requires a hook that is Idempotent.
type Retry struct {
	// Attempts counts all calls, the first included; 0 and 1 mean no retry.
	Attempts int      `json:"attempts,omitempty"`
	Backoff  Duration `json:"backoff,omitempty"`
}

// TextBudget bounds what is kept of a hook's text. Zero fields do not bound.
type TextBudget struct {
	// Chars is in Unicode scalar values, frame and marker included.
	Chars int `json:"chars,omitempty"`
	// Tokens is in tokens of the engine's tokenizer.
	Tokens int `json:"tokens,omitempty"`
}

// Cache lets the engine answer for a hook from memory.
type Cache struct {
	// TTL is the longest life of an answer.
	TTL Duration `json:"ttl,omitempty"`
	// Vary names the context and input fields that the answer depends on, such as "dir" or "input.tool".
	Vary []string `json:"vary,omitempty"`
	// Tags are names under which the plugin may invalidate the answer.
	Tags []string `json:"tags,omitempty"`
}

// Visibility says who may read the texts that a hook words itself, in diagnostics, errors and audit events; the
// operator's log gets all of them. It opens only what the author calls safe (SafeForUser). Codes, names, the
// engine's own words, and content such as sections are open to everybody. [Visibility.Opens] is the rule.
type Visibility string

// The visibilities; each opens all that the one before it opens. The empty one counts as VisibilityInternal.
const (
	// VisibilityInternal opens nothing.
	VisibilityInternal Visibility = "internal"
	// VisibilityDebug opens the command line, and the gateway to the right "admin".
	VisibilityDebug Visibility = "debug"
	// VisibilityUserAudit opens manifests.
	VisibilityUserAudit Visibility = "user_audit"
	// VisibilityUserVisible opens all answers of the gateway.
	VisibilityUserVisible Visibility = "user_visible"
)

// Hook is what a plugin proposes for one handler. The operator has the last word (see [Override]).
type Hook struct {
	// Name is unique in the plugin; the subscription's id is PLUGIN.NAME.
	Name string `json:"name"`
	// Doc is one line for people.
	Doc   string `json:"doc,omitempty"`
	Phase Phase  `json:"phase"`
	// Kinds are the contribution kinds that the hook may answer with.
	Kinds []Kind `json:"kinds,omitempty"`
	Role  Role   `json:"role,omitempty"`
	// Priority: higher is more important, everywhere.
	Priority int `json:"priority,omitempty"`
	// After and Before are full subscription ids; an absent one that ends in "?" is ignored.
	After  []string `json:"after,omitempty"`
	Before []string `json:"before,omitempty"`
	// Needs are what the hook must see: fields of the phase's input by JSON name, the
	// words of [SeenSets], or [NeedsNothing]. Without the grant (see) a hook that
	// decides is not planned ([WithoutNeeds]); any other hook learns what it lacks.
	Needs []string `json:"needs,omitempty"`
	// When is a condition; empty means always. A plugin's own condition sees what the
	// plugin may see, an operator's sees everything.
	When string `json:"when,omitempty"`
	// Timeout of 0 means min(1 s, the phase's budget), 30 s in queue phases.
	Timeout   Duration      `json:"timeout,omitempty"`
	OnFailure OnFailure     `json:"on_failure,omitzero"`
	Fallback  Contributions `json:"fallback,omitempty"`
	Retry     *Retry        `json:"retry,omitempty"`
	// Idempotent says that calling twice does no harm.
	Idempotent bool       `json:"idempotent,omitempty"`
	Budget     TextBudget `json:"budget,omitzero"`
	Cache      *Cache     `json:"cache,omitempty"`
	// Shadow runs the hook and records it as "would have"; nothing is applied.
	Shadow     bool       `json:"shadow,omitempty"`
	Visibility Visibility `json:"visibility,omitempty"`
}

// Override is what the operator changes about one subscription; nil fields keep the proposal. With Phase set it
// also declares a subscription that is expected of a plugin that never described itself.
type Override struct {
	// Enabled false turns the subscription off.
	Enabled    *bool         `json:"enabled,omitempty"`
	Phase      *Phase        `json:"phase,omitempty"`
	Kinds      []Kind        `json:"kinds,omitempty"`
	Role       *Role         `json:"role,omitempty"`
	Priority   *int          `json:"priority,omitempty"`
	After      *[]string     `json:"after,omitempty"`
	Before     *[]string     `json:"before,omitempty"`
	When       *string       `json:"when,omitempty"`
	Timeout    *Duration     `json:"timeout,omitempty"`
	OnFailure  *OnFailure    `json:"on_failure,omitempty"`
	Fallback   Contributions `json:"fallback,omitempty"`
	Retry      *Retry        `json:"retry,omitempty"`
	Budget     *TextBudget   `json:"budget,omitempty"`
	Cache      *Cache        `json:"cache,omitempty"`
	Shadow     *bool         `json:"shadow,omitempty"`
	Visibility *Visibility   `json:"visibility,omitempty"`
	// WithoutNeeds is for a hook that decides and is not granted what it needs. The
	// zero value makes that a mistake in the plan.
	WithoutNeeds *WithoutNeeds `json:"without_needs,omitempty"`
}

// WithoutNeeds says what becomes of a hook that decides and may not see what it needs.
type WithoutNeeds string

// TurnOff turns such a hook off; each dispatch of its phase then carries a fail_open diagnostic.
const TurnOff WithoutNeeds = "off"

// SeenSets returns the names, beside input fields, that a hook may need and an operator may grant (see): the
// turn's policies and prompt contexts, and the host's metadata.
func SeenSets() []string { return []string{SeePolicy, SeeContext, SeeMetadata} }

// NeedsNothing is the need of a hook that decides without looking at its input, as
// opposed to one that forgot to declare its needs.
const NeedsNothing = "nothing"

// The words of [SeenSets].
const (
	SeePolicy   = "policy"
	SeeContext  = "context"
	SeeMetadata = "metadata"
)

// SeeFacts is the input field of tool calls that is derived only for who names it; see [Facts].
const SeeFacts = "facts"

// Decides reports whether the hook may allow, ask or deny.
func (h *Hook) Decides() bool {
	return h.Role == RoleValidate || slices.Contains(h.Kinds, KindDecision)
}

// Grants is what the operator allows a plugin. Nothing is allowed by default.
// Entries are names; "*" at the end is a wildcard ("memory/*", "*").
type Grants struct {
	// Contribute lists contribution kinds.
	Contribute []string `json:"contribute,omitempty"`
	// Sections and StableSections list section ids; Join lists section ids of other plugins that may be added to.
	Sections       []string `json:"sections,omitempty"`
	StableSections []string `json:"stable_sections,omitempty"`
	Join           []string `json:"join,omitempty"`
	// Policies lists "domain/key".
	Policies []string `json:"policies,omitempty"`
	Domains  []string `json:"domains,omitempty"`
	Tools    []string `json:"tools,omitempty"`
	// Host lists host services.
	Host []string `json:"host,omitempty"`
	// Read, Write and Net are for the sandbox.
	Read  []string `json:"read,omitempty"`
	Write []string `json:"write,omitempty"`
	Net   []string `json:"net,omitempty"`
	// See lists input fields by JSON name and the words of [SeenSets].
	See []string `json:"see,omitempty"`
}

// Allows reports whether one of the granted names covers name.
func Allows(granted []string, name string) bool {
	return slices.ContainsFunc(granted, func(g string) bool {
		prefix, wild := strings.CutSuffix(g, "*")
		return g == name || wild && strings.HasPrefix(name, prefix)
	})
}

// Description is what a plugin says of itself.
type Description struct {
	// Name is the plugin's own name; the operator's may differ.
	Name    string `json:"name"`
	Version string `json:"version"`
	Doc     string `json:"doc,omitempty"`
	Hooks   []Hook `json:"hooks"`
	// Requires lists features that the host must have.
	Requires []string `json:"requires,omitempty"`
	// Tools are the tools that the plugin answers calls of.
	Tools []Tool `json:"tools,omitempty"`
	// ConfigSchema is a JSON Schema for the plugin's configuration; nil accepts only an absent or empty one.
	ConfigSchema json.RawMessage `json:"config_schema,omitempty"`
	Limits       PluginLimits    `json:"limits,omitzero"`
}

// PluginLimits is what a plugin can take. Zero fields leave it to the host.
type PluginLimits struct {
	// Concurrency is the most calls that it wants at once.
	Concurrency int `json:"concurrency,omitempty"`
}

// Features returns the features of this version of the protocol. A plugin that requires another one fails at start.
func Features() []string {
	return []string{"cancel", "host_calls", "invalidate", "reconfigure", "tools"}
}

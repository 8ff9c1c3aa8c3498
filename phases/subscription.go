package phases

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// OnFailure is a failure policy: a default word, and words by cause. The zero
// value leaves the choice to the runtime. In JSON and YAML it is a word or
// {default: word, CAUSE: word}.
type OnFailure struct {
	Default FailureWord
	ByCause map[Cause]FailureWord
}

// IsZero reports whether nothing was chosen.
func (f OnFailure) IsZero() bool { return f.Default == "" && len(f.ByCause) == 0 }

// For returns the word for a cause. The planner fills the default in, so that an
// effective policy never returns "".
func (f OnFailure) For(c Cause) FailureWord {
	if w, ok := f.ByCause[c]; ok {
		return w
	}
	return f.Default
}

// Uses reports whether any of its words is w.
func (f OnFailure) Uses(w FailureWord) bool {
	if f.Default == w {
		return true
	}
	for _, word := range f.ByCause {
		if word == w {
			return true
		}
	}
	return false
}

// MarshalJSON implements json.Marshaler.
func (f OnFailure) MarshalJSON() ([]byte, error) {
	if len(f.ByCause) == 0 {
		return json.Marshal(f.Default)
	}
	m := map[string]FailureWord{}
	for c, w := range f.ByCause {
		m[string(c)] = w
	}
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
	var m map[string]FailureWord
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("want a word (%s) or {default: word, CAUSE: word}", strings.Join(words(failureWords()), ", "))
	}
	f.Default = m["default"]
	delete(m, "default")
	if len(m) > 0 {
		f.ByCause = make(map[Cause]FailureWord, len(m))
	}
	for c, w := range m {
		f.ByCause[Cause(c)] = w
	}
	return f.check()
}

func failureWords() []FailureWord { return []FailureWord{FailClosed, BestEffort, UseInstead} }

func (f OnFailure) check() error {
	known := words(failureWords())
	if f.Default != "" && !slices.Contains(known, string(f.Default)) {
		return fmt.Errorf("unknown failure policy %.80q%s", f.Default, DidYouMean(string(f.Default), known))
	}
	for _, c := range slices.Sorted(maps.Keys(f.ByCause)) {
		w := f.ByCause[c]
		if !c.Failure() {
			return fmt.Errorf("%.80q is not a cause of failure%s", c, DidYouMean(string(c), words(FailureCauses())))
		}
		if !slices.Contains(known, string(w)) {
			return fmt.Errorf("unknown failure policy %.80q for %s%s", w, c, DidYouMean(string(w), known))
		}
	}
	return nil
}

// Retry repeats a failed call within the remaining budget. Only hooks that
// declare themselves idempotent may have it.
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
	// Vary names the context and input fields that the answer depends on, such
	// as "dir" or "input.tool".
	Vary []string `json:"vary,omitempty"`
	// Tags are names under which the plugin may invalidate the answer.
	Tags []string `json:"tags,omitempty"`
}

// Visibility says who may read what a hook words itself, in diagnostics, errors
// and audit events, beside the operator's log, where all of it goes. It opens
// only what the author calls safe (SafeForUser); codes and names, and what the
// engine words, everybody sees. Content, such as sections and the reasons of
// decisions, is not concerned. [Visibility.Opens] is the rule.
type Visibility string

// The visibilities, each with all that the one before it opens. The empty one
// counts as VisibilityInternal.
const (
	// VisibilityInternal opens nothing.
	VisibilityInternal Visibility = "internal"
	// VisibilityDebug opens the output of the command line, and the gateway's answers
	// to callers with the right "admin".
	VisibilityDebug Visibility = "debug"
	// VisibilityUserAudit opens manifests, too.
	VisibilityUserAudit Visibility = "user_audit"
	// VisibilityUserVisible opens all answers of the gateway.
	VisibilityUserVisible Visibility = "user_visible"
)

// Hook is what a plugin proposes for one handler: the subscription's fields as
// the plugin would like them. The operator has the last word (see [Override]).
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
	// After and Before are full subscription ids; one that ends in "?" is
	// ignored where it is absent. They order, and nothing else.
	After  []string `json:"after,omitempty"`
	Before []string `json:"before,omitempty"`
	// Needs are what the hook must see to do its work: fields of the phase's input
	// by JSON name, the words of [SeenSets], or [NeedsNothing]. What the operator
	// does not grant (see) stays withheld: a hook that decides is not planned without
	// it, see [Override], and any other hook is told what it lacks.
	Needs []string `json:"needs,omitempty"`
	// When is a condition; empty means always. The plugin's own condition sees
	// what the plugin may see; one that the operator wrote sees everything.
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

// Override is what the operator changes about one subscription. Nil fields
// leave the proposal as it is. With Phase set it also names a subscription that
// is expected of a plugin which never described itself.
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
	// WithoutNeeds says what becomes of a hook that decides and is not granted what
	// it needs. The zero value is a mistake in the plan: no guard is passed without
	// a word.
	WithoutNeeds *WithoutNeeds `json:"without_needs,omitempty"`
}

// WithoutNeeds is what the operator wants of a hook that decides and may not see
// what it needs.
type WithoutNeeds string

// TurnOff turns such a hook off. Each dispatch of its phase then carries a fail_open
// mark.
const TurnOff WithoutNeeds = "off"

// SeenSets are the names, beside the fields of an input, that a hook may need and an
// operator may grant (see): the turn's policies, its prompt contexts, and the
// host's metadata.
func SeenSets() []string { return []string{SeePolicy, SeeContext, SeeMetadata} }

// NeedsNothing is the need of a hook that decides without looking at its input, such
// as by the mode of the turn. It says so, and is not taken for one that forgot to.
const NeedsNothing = "nothing"

// The words of [SeenSets].
const (
	SeePolicy   = "policy"
	SeeContext  = "context"
	SeeMetadata = "metadata"
)

// Decides reports whether the hook may allow, ask or deny.
func (h *Hook) Decides() bool {
	return h.Role == RoleValidate || slices.Contains(h.Kinds, KindDecision)
}

// Grants is what the operator allows a plugin. Nothing is allowed by default.
// Entries are names; "*" at the end is a wildcard ("memory/*", "*").
type Grants struct {
	// Contribute lists contribution kinds.
	Contribute []string `json:"contribute,omitempty"`
	// Sections and StableSections list section ids; Join lists section ids of
	// other plugins that may be added to.
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
	for _, g := range granted {
		if g == name {
			return true
		}
		if prefix, wild := strings.CutSuffix(g, "*"); wild && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
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
	// ConfigSchema is a JSON Schema for the plugin's configuration; nil accepts
	// only an absent or empty one.
	ConfigSchema json.RawMessage `json:"config_schema,omitempty"`
	Limits       PluginLimits    `json:"limits,omitzero"`
}

// PluginLimits is what a plugin can take. Zero fields leave it to the host.
type PluginLimits struct {
	// Concurrency is the most calls that it wants at once.
	Concurrency int `json:"concurrency,omitempty"`
}

// The features of this version of the protocol, by name. A plugin that requires
// another one fails at start.
const (
	FeatureTools       = "tools"
	FeatureHostCalls   = "host_calls"
	FeatureInvalidate  = "invalidate"
	FeatureCancel      = "cancel"
	FeatureReconfigure = "reconfigure"
)

// Features returns the features of this version of the protocol.
func Features() []string {
	return []string{FeatureCancel, FeatureHostCalls, FeatureInvalidate, FeatureReconfigure, FeatureTools}
}

// Package scripted is a plugin that answers from its own configuration: to try a configuration out, to add fixed text
// or a fixed decision without writing a plugin, and for tests. Any number of instances may run, each under a name of
// its own.
//
// It is not a template language: an answer is fixed text. Start reading at [New]; the
// configuration is a list of [Hook].
package scripted

import (
	"context"
	_ "embed" // for the schema
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// configSchema is the schema of the configuration: {"hooks": [Hook, …]}.
//
//go:embed schema.json
var configSchema []byte

// Hook is one scripted hook: the fields of a subscription that a plugin states, under the same names, and what it does when it is called.
// With none of Respond, Delay and Error it gives an empty answer.
type Hook struct {
	// ID is the hook's name; the subscription is INSTANCE.ID.
	ID         string               `json:"id"`
	Phase      phases.Phase         `json:"phase"`
	Role       phases.Role          `json:"role,omitempty"`
	Priority   int                  `json:"priority,omitempty"`
	After      []string             `json:"after,omitempty"`
	Before     []string             `json:"before,omitempty"`
	Needs      []string             `json:"needs,omitempty"`
	When       string               `json:"when,omitempty"`
	Timeout    phases.Duration      `json:"timeout,omitempty"`
	OnFailure  phases.OnFailure     `json:"on_failure,omitzero"`
	Fallback   phases.Contributions `json:"fallback,omitempty"`
	Retry      *phases.Retry        `json:"retry,omitempty"`
	Budget     phases.TextBudget    `json:"budget,omitzero"`
	Cache      *phases.Cache        `json:"cache,omitempty"`
	Shadow     bool                 `json:"shadow,omitempty"`
	Visibility phases.Visibility    `json:"visibility,omitempty"`

	// Respond is the answer.
	Respond phases.Contributions `json:"respond,omitempty"`
	// Delay is waited for before anything else; it ends early when the call is cancelled.
	Delay phases.Duration `json:"delay,omitempty"`
	// Error is returned instead of an answer.
	Error *Failure `json:"error,omitempty"`
}

// Failure is a scripted error.
type Failure struct {
	Code      string `json:"code"`
	Message   string `json:"message,omitempty"`
	Retryable bool   `json:"retryable,omitempty"`
}

// New returns the plugin.
func New() *sdk.Plugin {
	return &sdk.Plugin{
		Name:         "scripted",
		Version:      "0.1.0",
		Doc:          "Answers from its own configuration.",
		ConfigSchema: configSchema,
		OnConfigure:  configure,
	}
}

func configure(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
	var cfg struct {
		Hooks []json.RawMessage `json:"hooks"`
	}
	if err := sdk.DecodeConfig(c.Config, &cfg); err != nil {
		return sdk.Setup{}, err
	}
	var setup sdk.Setup
	seen := map[string]int{}
	for i, raw := range cfg.Hooks {
		h, err := decodeHook("/hooks/"+strconv.Itoa(i), raw, seen)
		if err != nil {
			return sdk.Setup{}, err
		}
		seen[h.ID] = i
		setup.Hooks = append(setup.Hooks, h.hook())
	}
	return setup, nil
}

// decodeHook decodes and checks the hook at a place of the configuration. seen
// are the indices of those before it, by id.
func decodeHook(pointer string, raw json.RawMessage, seen map[string]int) (*Hook, error) {
	var h Hook
	if err := sdk.DecodeConfig(raw, &h); err != nil {
		return nil, blame(pointer, raw, err)
	}
	if first, dup := seen[h.ID]; dup {
		return nil, &phases.ConfigError{Pointer: pointer + "/id", Message: fmt.Sprintf("the hook %q is a duplicate of hooks[%d]", h.ID, first)}
	}
	if err := check(&h); err != nil {
		return nil, &phases.ConfigError{Pointer: pointer, Message: err.Error()}
	}
	for i, c := range h.Respond {
		if err := phases.ValidateContribution(c, phases.Row{Kinds: phases.Kinds()}); err != nil {
			return nil, &phases.ConfigError{Pointer: fmt.Sprintf("%s/respond/%d", pointer, i), Message: err.Error()}
		}
	}
	return &h, nil
}

// blame finds the member of a hook that cannot be decoded: the first that fails alone.
// Decoders of single values do not know their place.
func blame(pointer string, raw json.RawMessage, whole error) error {
	member := ""
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members) // without members the whole hook is to blame
	for _, name := range slices.Sorted(maps.Keys(members)) {
		alone, err := json.Marshal(map[string]json.RawMessage{name: members[name]})
		if err != nil {
			continue
		}
		if err := sdk.DecodeConfig(alone, new(Hook)); err != nil {
			member, whole = "/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), err // RFC 6901
			break
		}
	}
	if config, ok := errors.AsType[*phases.ConfigError](whole); ok {
		return &phases.ConfigError{Pointer: pointer + member, Message: config.Message, AtKey: config.AtKey}
	}
	return whole
}

// check finds the mistakes of one hook while its place in the file is known. A
// host's own phase cannot be checked here.
func check(h *Hook) error {
	if strings.HasPrefix(string(h.Phase), "x.") {
		return nil
	}
	hook := h.proposal()
	return errors.Join(phases.ValidateHook(&hook, phases.Standard())...)
}

func (h *Hook) proposal() phases.Hook {
	return phases.Hook{
		Name: h.ID, Phase: h.Phase, Kinds: h.kinds(), Role: h.Role, Needs: h.needs(), Priority: h.Priority, After: h.After, Before: h.Before, When: h.When,
		Timeout: h.Timeout, OnFailure: h.OnFailure, Fallback: h.Fallback, Retry: h.Retry, Idempotent: true, Budget: h.Budget,
		Cache: h.Cache, Shadow: h.Shadow, Visibility: h.Visibility,
	}
}

func (h *Hook) needs() []string {
	if len(h.Needs) == 0 {
		return []string{phases.NeedsNothing}
	}
	return h.Needs
}

func (h *Hook) kinds() []phases.Kind {
	var kinds []phases.Kind
	seen := map[phases.Kind]bool{}
	for _, list := range []phases.Contributions{h.Respond, h.Fallback} {
		for _, c := range list {
			if k := phases.KindOf(c); !seen[k] {
				seen[k] = true
				kinds = append(kinds, k)
			}
		}
	}
	return kinds
}

func (h *Hook) hook() sdk.Hook {
	return sdk.Hook{
		Name: h.ID, Doc: "scripted", Phase: h.Phase, Kinds: h.kinds(), Role: h.Role, Needs: h.needs(), Priority: h.Priority, After: h.After, Before: h.Before,
		When: h.When, Timeout: h.Timeout.D(), OnFailure: h.OnFailure, Fallback: h.Fallback, Retry: h.Retry, Idempotent: true,
		Budget: h.Budget, Cache: h.Cache, Shadow: h.Shadow, Visibility: h.Visibility,
		Any: h.answer,
	}
}

func (h *Hook) answer(ctx context.Context, _ *sdk.Call, _ phases.Input) ([]phases.Contribution, error) {
	if h.Delay > 0 {
		timer := time.NewTimer(h.Delay.D())
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if h.Error != nil {
		failure := sdk.Fail(h.Error.Code, h.Error.Message)
		failure.Retryable = h.Error.Retryable
		return nil, failure
	}
	out := make([]phases.Contribution, len(h.Respond))
	for i, c := range h.Respond {
		out[i] = phases.CloneContribution(c) // the answer belongs to the host
	}
	return out, nil
}

package pool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/grapnelhq/grapnel/internal/bounded"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// Peer is one incarnation of a plugin as its callers see it. Both calls return when ctx
// ends; freed is called exactly once, when the plugin has let go of the call.
type Peer interface {
	Dispatch(ctx context.Context, d *phases.Dispatch, freed func()) (*phases.Result, wire.Stats, error)
	CallTool(ctx context.Context, c *phases.ToolCall, freed func()) (*phases.ToolResult, wire.Stats, error)
}

var (
	_ Peer = (*wire.Session)(nil)
	_ Peer = (*local)(nil)
)

// local is a plugin inside the host. Arguments and answers are copied and panics recovered.
type local struct{ plugin Plugin }

// Dispatch implements Peer.
func (l *local) Dispatch(ctx context.Context, d *phases.Dispatch, freed func()) (*phases.Result, wire.Stats, error) {
	given := cloneDispatch(d)
	res, err := abandonable(ctx, freed, func() (*phases.Result, error) {
		res, err := l.plugin.Dispatch(ctx, given)
		return res, wire.FromPlugin(err)
	})
	if err != nil || res == nil {
		return &phases.Result{}, wire.Stats{}, err
	}
	return &phases.Result{Diagnostics: slices.Clone(res.Diagnostics), Contributions: CloneContributions(res.Contributions)}, wire.Stats{}, nil
}

// CallTool implements Peer.
func (l *local) CallTool(ctx context.Context, c *phases.ToolCall, freed func()) (*phases.ToolResult, wire.Stats, error) {
	given := *c
	given.Context, given.Arguments, given.Policies = c.Context.Clone(), slices.Clone(c.Arguments), clonePolicies(c.Policies)
	res, err := abandonable(ctx, freed, func() (*phases.ToolResult, error) {
		res, err := l.plugin.CallTool(ctx, &given)
		return res, wire.FromPlugin(err)
	})
	if err != nil || res == nil {
		return &phases.ToolResult{}, wire.Stats{}, err
	}
	out := *res
	out.Content, out.Diagnostics = slices.Clone(res.Content), slices.Clone(res.Diagnostics)
	return &out, wire.Stats{}, checkAnswer(c, out.Content)
}

// checkAnswer checks a tool's answer as the wire does for plugins outside the host.
func checkAnswer(c *phases.ToolCall, content json.RawMessage) error {
	if most := c.Budget.MaxBytes; most > 0 && len(content) > most {
		return phases.Errorf(phases.CauseOversizeReply, "the answer of the tool %q has %d bytes; at most %d are taken (limits.frame)", c.Tool, len(content), most)
	}
	if len(content) == 0 {
		return nil
	}
	if err := jsonscan.Check(content, phases.MaxJSONDepth); err != nil {
		return phases.Errorf(phases.CauseInvalidReply, "the answer of the tool %q %w", c.Tool, err)
	}
	return nil
}

// abandonable is bounded.Abandonable for a call of the plugin: a panic is its error.
func abandonable[T any](ctx context.Context, freed func(), call func() (*T, error)) (*T, error) {
	value, err := bounded.Abandonable(ctx, freed, call)
	if p, ok := errors.AsType[*bounded.PanicError](err); ok {
		err = &phases.Error{Code: phases.CausePluginError, PluginCode: phases.PluginCodePanic, Message: "the plugin panicked", Detail: p.Error()}
	}
	return value, err
}

func cloneDispatch(d *phases.Dispatch) *phases.Dispatch {
	given := *d
	given.Context = d.Context.Clone()
	given.Input = phases.CloneInput(d.Input)
	given.Withheld = slices.Clone(d.Withheld)
	given.Policies = clonePolicies(d.Policies)
	given.Contexts = slices.Clone(d.Contexts)
	for i := range given.Contexts {
		given.Contexts[i].SourceRefs = slices.Clone(given.Contexts[i].SourceRefs)
	}
	return &given
}

func clonePolicies(list []phases.PolicyEntry) []phases.PolicyEntry {
	given := slices.Clone(list)
	for i := range given {
		given[i].Value = slices.Clone(given[i].Value)
	}
	return given
}

// CloneContributions copies contributions, some of which may be nil.
func CloneContributions(cs []phases.Contribution) []phases.Contribution {
	out := slices.Clone(cs)
	for i, c := range cs {
		if c != nil {
			out[i] = phases.CloneContribution(c)
		}
	}
	return out
}

package runtime

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// peer is one incarnation of a plugin as dispatch sees it: a session to a
// process, or a plugin inside the host. Both calls return when ctx ends,
// whatever the plugin does; freed is called exactly once, when the plugin has
// let go of the call.
type peer interface {
	Dispatch(ctx context.Context, d *phases.Dispatch, freed func()) (*phases.Result, wire.Stats, error)
	CallTool(ctx context.Context, c *phases.ToolCall, freed func()) (*phases.ToolResult, wire.Stats, error)
}

var (
	_ peer = (*wire.Session)(nil)
	_ peer = (*local)(nil)
)

// local is a plugin inside the host. It gets copies, its panics are recovered,
// and its answers are copied before anybody looks at them.
type local struct{ plugin Plugin }

// Dispatch implements peer.
func (l *local) Dispatch(ctx context.Context, d *phases.Dispatch, freed func()) (*phases.Result, wire.Stats, error) {
	given := cloneDispatch(d)
	res, err := abandonable(ctx, freed, func() (*phases.Result, error) {
		res, err := l.plugin.Dispatch(ctx, given)
		return res, owned(err)
	})
	if err != nil || res == nil {
		return &phases.Result{}, wire.Stats{}, err
	}
	return cloneResult(res), wire.Stats{}, nil
}

// CallTool implements peer.
func (l *local) CallTool(ctx context.Context, c *phases.ToolCall, freed func()) (*phases.ToolResult, wire.Stats, error) {
	given := *c
	given.Context, given.Arguments, given.Policies = c.Context.Clone(), slices.Clone(c.Arguments), clonePolicies(c.Policies)
	res, err := abandonable(ctx, freed, func() (*phases.ToolResult, error) {
		res, err := l.plugin.CallTool(ctx, &given)
		return res, owned(err)
	})
	if err != nil || res == nil {
		return &phases.ToolResult{}, wire.Stats{}, err
	}
	out := *res
	out.Content, out.Diagnostics = slices.Clone(res.Content), slices.Clone(res.Diagnostics)
	return &out, wire.Stats{}, nil
}

// owned makes a handler's error the plugin's own: what it calls cancelled or
// denied is still a failure.
func owned(err error) error {
	if err == nil {
		return nil
	}
	return wire.FromPlugin(err)
}

// abandonable runs call in a goroutine of its own and waits for it or for ctx.
// A call that ignores ctx goes on by itself; freed tells when it ended.
func abandonable[T any](ctx context.Context, freed func(), call func() (*T, error)) (*T, error) {
	type answer struct {
		value *T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		defer freed()
		value, err := guarded(call)
		done <- answer{value, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// guarded makes a panic an error of the plugin's. What it panicked with, and the
// stack, are its words.
func guarded[T any](call func() (*T, error)) (value *T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &phases.Error{
				Code: phases.CausePluginError, PluginCode: phases.PluginCodePanic, Message: "the plugin panicked",
				Detail: fmt.Sprintf("panic: %v\n%s", r, debug.Stack()),
			}
		}
	}()
	return call()
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

func cloneResult(r *phases.Result) *phases.Result {
	return &phases.Result{Diagnostics: slices.Clone(r.Diagnostics), Contributions: cloneContributions(r.Contributions)}
}

// cloneContributions copies contributions, of which some may be nil.
func cloneContributions(cs []phases.Contribution) []phases.Contribution {
	if len(cs) == 0 {
		return nil
	}
	out := make([]phases.Contribution, len(cs))
	for i, c := range cs {
		if c != nil {
			out[i] = phases.CloneContribution(c)
		}
	}
	return out
}

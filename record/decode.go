package record

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// exchange is the reverse of lineOf.
func (l *Line) exchange() (*runtime.Exchange, error) {
	x := &runtime.Exchange{
		Kind: runtime.ExchangeKind(l.Kind), Begin: l.Begin, Plugin: l.Plugin, Version: l.Version, SHA256: l.SHA256, Subscription: l.Subscription,
		Start: l.Start, Generation: l.Generation, Incarnation: l.Incarnation, Took: took(l.TookMS),
		Description: l.Description, Err: l.Error.coded(),
	}
	if c := l.Configuration; c != nil {
		x.Configuration = &runtime.ExchangeConfiguration{Instance: c.Instance, Config: c.Config, Secrets: c.Secrets, Services: c.Services}
	}
	for i := range l.HostCalls {
		c := &l.HostCalls[i]
		x.HostCalls = append(x.HostCalls, runtime.HostCall{
			Service: c.Service, Method: c.Method, Params: c.Params, Result: c.Result, Err: c.Error.coded(), Took: took(c.TookMS),
		})
	}
	switch l.Kind {
	case KindDispatch:
		return x, l.hook(x)
	case KindTool:
		return x, l.tool(x)
	case KindConfigure, KindHost:
		return x, nil
	default:
		return nil, fmt.Errorf("unknown kind %q", l.Kind)
	}
}

// hook is the part of a hook's call.
func (l *Line) hook(x *runtime.Exchange) error {
	d := l.Dispatch
	if d == nil {
		return errors.New("a dispatch without what was sent")
	}
	in, err := inputOf(d)
	if err != nil {
		return err
	}
	x.Dispatch = &phases.Dispatch{
		Subscription: d.Subscription, Hook: d.Hook, Phase: d.Phase, Context: d.Context, Input: in, Withheld: d.Withheld, Policies: d.Policies,
		Contexts: d.Contexts, Attempt: d.Attempt, IdempotencyKey: d.IdempotencyKey, Trace: d.Trace, Room: phases.Room(d.Room),
		Remaining: time.Duration(d.RemainingNS), Generation: d.Generation, Incarnation: d.Incarnation,
	}
	if l.Result != nil {
		x.Result = &phases.Result{Contributions: l.Result.Contributions, Diagnostics: l.Result.Diagnostics}
	}
	return answered(x, l.Result != nil)
}

// inputOf decodes the input of a phase, which may be a host's own.
func inputOf(d *dispatch) (phases.Input, error) {
	table := phases.Standard()
	if _, known := table.Lookup(d.Phase); !known {
		var err error
		if table, err = phases.NewTable(phases.Custom(d.Phase, "", 0)); err != nil {
			return nil, err
		}
	}
	return phases.DecodeInput(table, d.Phase, d.Input)
}

// tool is the part of a tool call.
func (l *Line) tool(x *runtime.Exchange) error {
	c := l.ToolCall
	if c == nil {
		return errors.New("a tool call without what was sent")
	}
	x.ToolCall = &phases.ToolCall{
		Tool: c.Tool, Arguments: c.Arguments, Context: c.Context, Policies: c.Policies, OutsideTurn: c.OutsideTurn, IdempotencyKey: c.IdempotencyKey,
		Trace: c.Trace, Room: phases.Room(c.Room), Remaining: time.Duration(c.RemainingNS), Generation: c.Generation, Incarnation: c.Incarnation,
	}
	if l.ToolResult != nil {
		x.ToolResult = &phases.ToolResult{Content: l.ToolResult.Content, IsError: l.ToolResult.IsError, Diagnostics: l.ToolResult.Diagnostics}
	}
	return answered(x, l.ToolResult != nil)
}

// answered refuses an exchange with two ends or none.
func answered(x *runtime.Exchange, answer bool) error {
	if answer == (x.Err != nil) {
		return errors.New("it has neither an answer nor an error, or both")
	}
	return nil
}

// coded is the reverse of failureOf.
func (f *failure) coded() *phases.Error {
	if f == nil {
		return nil
	}
	return &phases.Error{Code: f.Code, Message: f.Message, PluginCode: f.PluginCode, Retryable: f.Retryable}
}

// took is the reverse of millis. What no program writes is no time.
func took(ms float64) time.Duration {
	const most = float64(math.MaxInt64) / float64(time.Millisecond)
	if ms < 0 || ms >= most {
		return 0
	}
	return time.Duration(math.Round(ms*1000)) * time.Microsecond
}

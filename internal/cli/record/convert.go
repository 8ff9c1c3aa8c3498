package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

func lineOf(x *runtime.Exchange) (*Line, error) {
	l := &Line{
		Kind: Kind(x.Kind), Begin: x.Begin.UTC(), Plugin: x.Plugin, Version: x.Version, SHA256: x.SHA256, Subscription: x.Subscription,
		Start: x.Start, Generation: x.Generation, Incarnation: x.Incarnation, TookMS: millis(x.Took),
		Description: x.Description, Result: x.Result, ToolCall: x.ToolCall, ToolResult: x.ToolResult, Error: failureOf(x.Err),
	}
	if c := x.Configuration; c != nil {
		l.Configuration = &configuration{c.Instance, c.Config, c.Secrets, append([]string{}, c.Services...)}
	}
	if d := x.Dispatch; d != nil {
		in, err := json.Marshal(d.Input)
		if err != nil {
			return nil, fmt.Errorf("the input: %w", err)
		}
		l.Dispatch = &dispatch{*d, in}
	}
	for i := range x.HostCalls {
		c := &x.HostCalls[i]
		l.HostCalls = append(l.HostCalls, hostCall{c.Service, c.Method, c.Params, c.Result, failureOf(c.Err), millis(c.Took)})
	}
	return l, nil
}

func failureOf(err *phases.Error) *failure {
	if err == nil {
		return nil
	}
	return &failure{err.Code, err.Message, err.PluginCode, err.Retryable}
}

func (l *Line) encode(b *bytes.Buffer) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false) // prompts are full of tags
	return enc.Encode(l)
}

// encodeExchange appends the line of an exchange. An answer that is not JSON, of a plugin
// inside the host, is replaced by an error.
func encodeExchange(b *bytes.Buffer, session string, x *runtime.Exchange) error {
	l, err := lineOf(x)
	if err != nil {
		return err
	}
	l.Session = session
	if err = l.encode(b); err == nil {
		return nil
	}
	b.Reset()
	l.Result, l.ToolResult, l.Description = nil, nil, nil
	l.Error = &failure{Code: phases.CauseInvalidReply, Message: "the answer cannot be recorded: " + err.Error()}
	return l.encode(b)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (l *Line) exchange() (*runtime.Exchange, error) {
	x := &runtime.Exchange{
		Kind: runtime.ExchangeKind(l.Kind), Begin: l.Begin, Plugin: l.Plugin, Version: l.Version, SHA256: l.SHA256, Subscription: l.Subscription,
		Start: l.Start, Generation: l.Generation, Incarnation: l.Incarnation, Took: took(l.TookMS),
		Configuration: (*runtime.ExchangeConfiguration)(l.Configuration), Description: l.Description, Err: l.Error.coded(),
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
		if l.ToolCall == nil {
			return nil, errors.New("a tool call without what was sent")
		}
		x.ToolCall, x.ToolResult = l.ToolCall, l.ToolResult
		return x, answered(x, x.ToolResult != nil)
	case KindConfigure, KindHost:
		return x, nil
	default:
		return nil, fmt.Errorf("unknown kind %q", l.Kind)
	}
}

func (l *Line) hook(x *runtime.Exchange) error {
	d := l.Dispatch
	if d == nil {
		return errors.New("a dispatch without what was sent")
	}
	in, err := inputOf(d)
	if err != nil {
		return err
	}
	x.Dispatch, x.Result = &d.Dispatch, l.Result
	x.Dispatch.Input = in
	return answered(x, l.Result != nil)
}

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

// answered refuses an exchange with two ends or none.
func answered(x *runtime.Exchange, answer bool) error {
	if answer == (x.Err != nil) {
		return errors.New("it has neither an answer nor an error, or both")
	}
	return nil
}

func (f *failure) coded() *phases.Error {
	if f == nil {
		return nil
	}
	return &phases.Error{Code: f.Code, Message: f.Message, PluginCode: f.PluginCode, Retryable: f.Retryable}
}

// took is the reverse of millis; 0 for times that no program writes.
func took(ms float64) time.Duration {
	const most = float64(math.MaxInt64) / float64(time.Millisecond)
	if ms < 0 || ms >= most {
		return 0
	}
	return time.Duration(math.Round(ms*1000)) * time.Microsecond
}

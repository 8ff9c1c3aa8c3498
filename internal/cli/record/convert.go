package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

func lineOf(x *runtime.Exchange) (*Line, error) {
	l := &Line{Exchange: *x, Error: failureOf(x.Err)}
	l.Begin = l.Begin.UTC()
	if d := x.Dispatch; d != nil {
		in, err := json.Marshal(d.Input)
		if err != nil {
			return nil, fmt.Errorf("the input: %w", err)
		}
		l.Dispatch = &dispatch{*d, in}
	}
	for i := range x.HostCalls {
		l.HostCalls = append(l.HostCalls, hostCall{x.HostCalls[i], failureOf(x.HostCalls[i].Err)})
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

func (l *Line) exchange() (*runtime.Exchange, error) {
	x := &l.Exchange
	x.Err = l.Error.coded()
	for _, c := range l.HostCalls {
		c.Err = c.Error.coded()
		x.HostCalls = append(x.HostCalls, c.HostCall)
	}
	switch l.Kind {
	case runtime.ExchangeDispatch:
		return x, l.hook(x)
	case runtime.ExchangeTool:
		if l.ToolCall == nil {
			return nil, errors.New("a tool call without what was sent")
		}
		return x, answered(x, x.ToolResult != nil)
	case runtime.ExchangeConfigure, runtime.ExchangeHost:
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
	x.Dispatch = &d.Dispatch
	x.Dispatch.Input = in
	return answered(x, x.Result != nil)
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

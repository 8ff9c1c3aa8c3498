package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// lineOf is an exchange as a line.
func lineOf(x *runtime.Exchange) (*Line, error) {
	l := &Line{
		Kind: Kind(x.Kind), Begin: x.Begin.UTC(), Plugin: x.Plugin, Version: x.Version, SHA256: x.SHA256, Subscription: x.Subscription,
		Start: x.Start, Generation: x.Generation, Incarnation: x.Incarnation, TookMS: millis(x.Took),
		Description: x.Description, Error: failureOf(x.Err),
	}
	if c := x.Configuration; c != nil {
		l.Configuration = &configuration{c.Instance, c.Config, c.Secrets, append([]string{}, c.Services...)}
	}
	if d := x.Dispatch; d != nil {
		in, err := json.Marshal(d.Input)
		if err != nil {
			return nil, fmt.Errorf("the input: %w", err)
		}
		l.Dispatch = &dispatch{
			d.Subscription, d.Hook, d.Phase, d.Context, in, d.Withheld, d.Policies, d.Contexts, d.Attempt, d.IdempotencyKey, d.Trace,
			room(d.Room), int64(d.Remaining), d.Generation, d.Incarnation,
		}
	}
	if r := x.Result; r != nil {
		l.Result = &result{phases.Contributions(r.Contributions), r.Diagnostics}
	}
	if c := x.ToolCall; c != nil {
		l.ToolCall = &toolCall{
			c.Tool, c.Arguments, c.Context, c.Policies, c.OutsideTurn, c.IdempotencyKey, c.Trace, room(c.Room), int64(c.Remaining), c.Generation,
			c.Incarnation,
		}
	}
	if r := x.ToolResult; r != nil {
		l.ToolResult = &toolResult{r.Content, r.IsError, r.Diagnostics}
	}
	for i := range x.HostCalls {
		c := &x.HostCalls[i]
		l.HostCalls = append(l.HostCalls, hostCall{c.Service, c.Method, c.Params, c.Result, failureOf(c.Err), millis(c.Took)})
	}
	return l, nil
}

// failureOf is an error as it crosses the wire; nil for none.
func failureOf(err *phases.Error) *failure {
	if err == nil {
		return nil
	}
	return &failure{err.Code, err.Message, err.PluginCode, err.Retryable}
}

// encode appends a line to a buffer, with its end.
func (l *Line) encode(b *bytes.Buffer) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false) // prompts are full of tags
	return enc.Encode(l)
}

// encodeExchange appends the line of an exchange. An answer that is no JSON, which
// a plugin inside the host may give, is left away: the error says so.
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

// millis is a duration in milliseconds, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

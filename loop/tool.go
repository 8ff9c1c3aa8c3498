package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// Result is what the model gets for a call, even if it was refused or failed.
type Result struct {
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
	Text    string `json:"text"`
	IsError bool   `json:"is_error,omitempty"`
	// Changed says that Text is not the tool's own: a hook rewrote or refused it, or it was trimmed.
	Changed bool `json:"changed,omitempty"`
	// Refused is set if the call was not made.
	Refused *Refused `json:"-"`
}

// Tool makes one tool call of the model: it lets the plugins judge and rewrite it (tool.pre_call), asks a person if they
// want that, calls the host's tool or the plugin's, and lets the plugins see and rewrite the result (tool.post_call).
// Refusals and failures are results. An error means that the turn cannot go on: ctx is done, or the turn has ended.
func (t *Turn) Tool(ctx context.Context, c Call) (Result, error) {
	own := t.own(c.Tool)
	if own.Call == nil {
		return t.RunTool(ctx, c, t.callPlugin)
	}
	return t.RunTool(ctx, c, func(ctx context.Context, c Call) (string, bool, error) {
		text, err := own.Call(ctx, c.Arguments)
		return text, false, err
	})
}

// own returns the host's tool of that name; the zero value if there is none.
func (t *Turn) own(name string) (tool Tool) {
	if i := slices.IndexFunc(t.options.Tools, func(own Tool) bool { return own.Name == name }); i >= 0 {
		tool = t.options.Tools[i]
	}
	return tool
}

// RunTool is [Turn.Tool] for a tool that belongs to a framework: run makes the call. Run gets the arguments that the
// plugins agreed to, and is not called if they refused. Its error becomes a result, except for [ErrNotYet], which means that
// the call was not made yet: RunTool returns it, and the next attempt is judged again.
func (t *Turn) RunTool(ctx context.Context, c Call, run func(ctx context.Context, c Call) (text string, isError bool, err error)) (Result, error) {
	c, refused, err := t.CheckTool(ctx, c)
	switch {
	case err != nil:
		return Result{}, err
	case refused != nil:
		return Result{CallID: c.ID, Tool: c.Tool, Text: refused.Error(), IsError: true, Changed: true, Refused: refused}, nil
	}
	began := time.Now()
	text, isError, err := run(ctx, c)
	switch {
	case errors.Is(err, ErrNotYet):
		return Result{}, err
	case err != nil:
		text, isError = err.Error(), true
	}
	return t.FinishTool(ctx, c, text, isError, time.Since(began))
}

// CheckTool lets the plugins judge and rewrite a call, and returns the call to make. If it must not be made, refused says
// why, and refused.Error() is the result for the model.
func (t *Turn) CheckTool(ctx context.Context, c Call) (checked Call, refused *Refused, err error) {
	if own := t.own(c.Tool); own.Paths != nil && c.Paths == nil {
		c.Paths = own.Paths(c.Arguments)
	}
	out, err := t.ForCall(c.ID).Dispatch(ctx, &phases.ToolPreCallInput{Tool: c.Tool, Arguments: c.Arguments, TouchedPaths: c.Paths})
	if out != nil {
		if c.DecisionRef = out.DecisionRef; t.options.Judged != nil {
			t.options.Judged(ctx, c, out)
		}
	}
	err = t.decide(ctx, out, err, &Refused{Phase: phases.ToolPreCall, Call: c})
	t.sum.answered(&c)
	if refused, ok := errors.AsType[*Refused](err); ok {
		if errors.Is(refused.Err, ErrNotYet) {
			t.sum.wait(*refused)
		} else {
			t.called(c, outcomeDenied, 0)
		}
		return c, refused, nil
	}
	if err != nil {
		return c, nil, err
	}
	if in, ok := out.Rewritten.(*phases.ToolPreCallInput); ok {
		c.Arguments, c.Paths = in.Arguments, in.TouchedPaths
	}
	return c, nil, nil
}

// seenChars is how much of a result the plugins see.
const seenChars = 256 << 10

// FinishTool lets the plugins see and rewrite the result of a checked call, trims it, and returns the result for the model.
// A rewrite replaces the whole result, even if the plugins have seen only its beginning. took is how long the call ran.
func (t *Turn) FinishTool(ctx context.Context, c Call, text string, isError bool, took time.Duration) (Result, error) {
	outcome := "ok"
	if isError {
		outcome = "error"
	}
	t.sum.answered(&c) // whoever was asked allowed it: it was made
	t.called(c, outcome, took)
	text = clean(text)
	r := Result{CallID: c.ID, Tool: c.Tool, Text: text, IsError: isError}
	out, err := t.ForCall(c.ID).Dispatch(ctx, &phases.ToolPostCallInput{
		Tool: c.Tool, Arguments: c.Arguments, TouchedPaths: c.Paths, Result: phases.NewPreview(text, seenChars), Outcome: outcome,
	})
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case out == nil:
		return r, err
	case err != nil: // a phase that failed closed
		r.Text, r.IsError, r.Changed = "the result of the tool is withheld: "+err.Error(), true, true
		return r, nil //nolint:nilerr // the model is told
	}
	if in, ok := out.Rewritten.(*phases.ToolPostCallInput); ok && len(out.Merged.Rewrites) > 0 {
		r.Text, r.Changed = in.Result.Text, true
	}
	return r, t.trim(ctx, c, &r)
}

// clean repairs a text that plugins and models do not accept.
func clean(text string) string {
	if utf8.ValidString(text) && !strings.Contains(text, "\x00") {
		return text
	}
	return sdk.CleanText(text)
}

const outcomeDenied = "denied"

// called records a call for the turn's end, which has the first [phases.MaxTurnEvents].
func (t *Turn) called(c Call, outcome string, took time.Duration) {
	t.sum.mu.Lock()
	defer t.sum.mu.Unlock()
	if len(t.sum.events) == phases.MaxTurnEvents {
		return
	}
	t.sum.events = append(t.sum.events, phases.ToolEvent{Tool: clean(c.Tool), CallID: clean(c.ID), Outcome: outcome, DurationMS: float64(took.Microseconds()) / 1000})
}

// callPlugin calls a plugin's tool.
func (t *Turn) callPlugin(ctx context.Context, c Call) (string, bool, error) {
	res, err := t.CallTool(ctx, phases.ToolCall{Tool: c.Tool, Arguments: c.Arguments, IdempotencyKey: c.ID})
	if err != nil {
		return "", true, err
	}
	return res.Text(), res.IsError, nil
}

// trim cuts a result to the host's limit, with a reminder that says what was cut and how to get it.
func (t *Turn) trim(ctx context.Context, c Call, r *Result) error {
	chars := utf8.RuneCountInString(r.Text)
	if most := t.options.MaxResultChars; most <= 0 || chars <= most {
		return nil
	}
	how := "Call the tool again with arguments that ask for less."
	if t.options.KeepResult != nil {
		how = t.options.KeepResult(ctx, c, r.Text)
	}
	r.Text, r.Changed = sdk.CutText(r.Text, t.options.MaxResultChars), true
	kept := utf8.RuneCountInString(r.Text)
	return t.Remind(phases.Reminder{
		Type:       "tool.output.trimmed",
		Attributes: map[string]string{"tool": sdk.PlainName(c.Tool), "call_id": sdk.PlainName(c.ID), "kept": strconv.Itoa(kept), "dropped": strconv.Itoa(chars - kept)},
		Text:       fmt.Sprintf("Only the first %d of %d characters of this result are there. %s", kept, chars, how),
	})
}

package genkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core"

	"github.com/grapnelhq/grapnel/loop"
)

func (g *generation) wrapTool(ctx context.Context, p *ai.ToolParams, next ai.ToolNext) (*ai.MultipartToolResponse, error) {
	arguments, err := encode(p.Request.Input)
	if err != nil {
		return nil, fmt.Errorf("the arguments of the tool %q: %w", p.Request.Name, err)
	}
	if arguments == "null" {
		arguments = "{}"
	}
	call := loop.Call{ID: p.Request.Ref, Tool: p.Request.Name, Arguments: json.RawMessage(arguments)}
	if g.own != nil && g.own[call.Tool] == nil { // a plugin's, or none
		r, err := g.turn.Tool(ctx, call)
		return &ai.MultipartToolResponse{Output: r.Text}, err
	}
	var resp *ai.MultipartToolResponse
	isText := false
	r, err := g.turn.Call(ctx, call, func(c loop.Call) (string, error) {
		request := *p.Request
		if changed := string(c.Arguments); changed != arguments {
			request.Input = anyOf(changed)
		}
		var failed error
		if resp, failed = run(context.WithValue(ctx, turnKey{}, g.turn), &ai.ToolParams{Request: &request, Tool: p.Tool}, next); failed != nil {
			return "", failed // it ends the generation, unless it is an interrupt
		}
		var text string
		if text, isText = resp.Output.(string); isText {
			return text, nil
		}
		return encode(resp.Output)
	}, interrupts)
	switch {
	case err != nil:
		return nil, err
	case r.Refused != nil && errors.Is(r.Refused.Err, loop.ErrNotYet):
		return nil, ai.NewToolInterruptError(map[string]any{"by": r.Refused.By, "reason": r.Refused.Reason})
	case !r.Changed:
		return resp, nil
	case resp != nil && !isText && json.Valid([]byte(r.Text)):
		return &ai.MultipartToolResponse{Output: anyOf(r.Text)}, nil
	}
	return &ai.MultipartToolResponse{Output: r.Text}, nil // parts that no plugin has seen do not go with it
}

func interrupts(err error) bool {
	interrupt, _ := ai.IsToolInterruptError(err)
	return interrupt
}

// run keeps a tool that panics from ending the process: nobody could recover in the goroutine that Genkit runs it in.
func run(ctx context.Context, p *ai.ToolParams, next ai.ToolNext) (resp *ai.MultipartToolResponse, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = core.NewError(core.INTERNAL, "the tool %q panicked: %v", p.Request.Name, v)
		}
	}()
	return next(ctx, p)
}

// encode writes JSON as plugins should read it: without escapes of HTML.
func encode(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// anyOf reads JSON that is valid.
func anyOf(text string) (v any) {
	_ = json.Unmarshal([]byte(text), &v)
	return v
}

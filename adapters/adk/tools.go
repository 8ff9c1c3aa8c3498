package adk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/genai"

	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// declared are the functions of a request, as ADK has them by name and as Grapnel does, and what else it has as tools.
func declared(list []*genai.Tool) (own map[string]*genai.FunctionDeclaration, tools []phases.Tool, others []*genai.Tool) {
	own = map[string]*genai.FunctionDeclaration{}
	for _, t := range list {
		if t == nil {
			continue
		}
		for _, d := range t.FunctionDeclarations {
			schema := raw(d.ParametersJsonSchema)
			if d.Parameters != nil {
				schema = raw(d.Parameters)
			}
			own[d.Name], tools = d, append(tools, phases.Tool{Name: d.Name, Description: d.Description, InputSchema: schema})
		}
		rest := *t
		if rest.FunctionDeclarations = nil; !reflect.ValueOf(rest).IsZero() {
			others = append(others, &rest)
		}
	}
	return own, tools, others
}

// isADKs says whether ADK gives calls of this name a meaning of its own, also where it does not offer the tool.
func isADKs(name string) bool {
	return strings.HasPrefix(name, "adk_") || slices.Contains([]string{"finish_task", "set_model_response", "stop_streaming", "task_completed", "transfer_to_agent"}, name)
}

// offer lists the tools of a prompt in a request, in its order, and makes those of plugins known to ADK.
func (s *speaker) offer(rq *model.LLMRequest, tools []phases.Tool, own map[string]*genai.FunctionDeclaration, others []*genai.Tool) (changes []manifest.RequestChange) {
	known, list := map[string]any{}, &genai.Tool{}
	for name, t := range rq.Tools {
		if s, ok := t.(streaming); ok {
			t = whole{Tool: s, stream: s}
		}
		known[name] = t
	}
	for i, t := range tools {
		d := own[t.Name]
		switch again := i > 0 && tools[i-1].Name == t.Name; {
		case d != nil && !again:
		case d != nil, known[t.Name] != nil, isADKs(t.Name): // a plugin's, of a name that is taken
			changes = append(changes, manifest.RequestChange{Kind: manifest.RequestToolGone, ID: t.Name})
			continue
		default:
			plugins := pluginTool{t, s}
			d, known[t.Name] = plugins.Declaration(), plugins
		}
		list.FunctionDeclarations = append(list.FunctionDeclarations, d)
	}
	if rq.Tools, rq.Config.Tools = known, others; len(list.FunctionDeclarations) > 0 {
		rq.Config.Tools = append([]*genai.Tool{list}, others...)
	}
	return changes
}

// pluginTool is a plugin's tool as ADK has it.
type pluginTool struct {
	tool phases.Tool
	in   *speaker
}

// Name is the plugin's.
func (p pluginTool) Name() string { return p.tool.Name }

// Description is the plugin's.
func (p pluginTool) Description() string { return p.tool.Description }

// IsLongRunning says no.
func (pluginTool) IsLongRunning() bool { return false }

// Declaration has the plugin's schema, which the engine has checked.
func (p pluginTool) Declaration() *genai.FunctionDeclaration {
	var schema any = map[string]any{"type": "object"}
	if json.Unmarshal(p.tool.InputSchema, &schema) != nil {
		schema = map[string]any{"type": "object"}
	}
	return &genai.FunctionDeclaration{Name: p.tool.Name, Description: p.tool.Description, ParametersJsonSchema: schema}
}

// Run makes a call, which the plugins judge as any other.
func (p pluginTool) Run(ctx agent.Context, args any) (map[string]any, error) {
	result, err := p.in.Tool(ctx, loop.Call{ID: ctx.FunctionCallID(), Tool: p.tool.Name, Arguments: raw(args)})
	return answered(result), err
}

// streaming is a tool that ADK calls without its plugins.
type streaming interface {
	tool.Tool
	Declaration() *genai.FunctionDeclaration
	RunStream(ctx agent.Context, args any) iter.Seq2[string, error]
}

// whole is a streaming tool as one that is not: outside of live runs, ADK does not show the pieces either.
type whole struct {
	tool.Tool

	stream streaming
}

// Declaration is the tool's.
func (w whole) Declaration() *genai.FunctionDeclaration { return w.stream.Declaration() }

// Run returns all pieces as one.
func (w whole) Run(ctx agent.Context, args any) (map[string]any, error) {
	var text strings.Builder
	for piece, err := range w.stream.RunStream(ctx, args) {
		if err != nil {
			return nil, err
		}
		text.WriteString(piece)
	}
	return map[string]any{"result": text.String()}, nil
}

// checked is a call that may be made.
type checked struct {
	loop.Call

	at time.Time
}

func (g *grapnel) beforeTool(ctx agent.Context, t tool.Tool, args map[string]any) (map[string]any, error) {
	if _, plugins := t.(pluginTool); plugins {
		return nil, nil //nolint:nilnil // it asks for itself
	}
	r, s, err := g.speaker(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Unlock()
	c := loop.Call{ID: ctx.FunctionCallID(), Tool: t.Name(), Arguments: raw(args)}
	agreed, refused, err := s.CheckTool(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case refused != nil:
		return map[string]any{"error": refused.Error()}, nil
	case bytes.Equal(agreed.Arguments, c.Arguments):
	case args == nil: // a call that a person has confirmed: afterModel has not seen it
		return nil, errNoArguments
	default:
		clear(args)
		if err := json.Unmarshal(agreed.Arguments, &args); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[ctx] = checked{agreed, time.Now()}
	return nil, nil //nolint:nilnil // ADK's word for going on
}

func (g *grapnel) afterTool(ctx agent.Context, _ tool.Tool, _, result map[string]any, failed error) (map[string]any, error) {
	r, s, err := g.speaker(ctx)
	if err != nil {
		return nil, err
	}
	c, under := r.calls[ctx]
	delete(r.calls, ctx)
	r.mu.Unlock()
	if !under || result == nil && failed == nil || errors.Is(failed, tool.ErrConfirmationRequired) { // answered before, or later
		return nil, nil //nolint:nilnil // ADK's word for going on
	}
	text, isError := said(result, failed)
	done, err := s.FinishTool(ctx, c.Call, text, isError, time.Since(c.at))
	if err != nil || !done.Changed {
		return nil, err
	}
	return answered(done), nil
}

// said is a tool's result as plugins see it: the text if it has nothing else.
func said(result map[string]any, failed error) (text string, isError bool) {
	if failed != nil {
		return failed.Error(), true
	}
	of, isError := result["error"]
	if !isError {
		of = result["result"]
	}
	if text, plain := of.(string); plain && len(result) == 1 {
		return text, isError
	}
	return string(raw(result)), isError
}

// answered is a result as ADK has it: an object where it is one.
func answered(r loop.Result) map[string]any {
	var object map[string]any
	switch {
	case r.IsError:
		return map[string]any{"error": r.Text}
	case json.Unmarshal([]byte(r.Text), &object) == nil && object != nil:
		return object
	}
	return map[string]any{"result": r.Text}
}

// raw is a value as JSON, or as a JSON string if it cannot be JSON. No arguments are an empty object.
func raw(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if args, ok := v.(map[string]any); ok && args == nil {
		return json.RawMessage(`{}`)
	}
	if err != nil {
		data, _ = json.Marshal(fmt.Sprint(v)) //nolint:errchkjson // a string always can
	}
	return data
}

func partsOf(c *genai.Content) []*genai.Part {
	if c == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.Parts), func(p *genai.Part) bool { return p == nil })
}

func textOf(c *genai.Content) string {
	var text strings.Builder
	for _, p := range partsOf(c) {
		if !p.Thought {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}

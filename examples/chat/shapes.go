package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
)

// shape is the form of one provider's answers, as far as the fake model needs it.
type shape struct {
	model string
	write func(said, cost) any
}

func shapes() map[string]shape {
	return map[string]shape{
		compiler.Anthropic: {"claude-opus-5", writeAnthropic},
		compiler.OpenAI:    {"gpt-5", writeOpenAI},
		compiler.Gemini:    {"gemini-3-flash", writeGemini},
	}
}

// view is what the fake model reads of a request of any provider.
type view struct {
	text         strings.Builder // in the order in which caches compare it
	tools        []string
	last, result string // the user's last words, and what a tool answered after them
}

type message struct {
	Role    string            `json:"role"`
	Content []json.RawMessage `json:"content"`
	Parts   []json.RawMessage `json:"parts"`
}

func newView(body []byte) (*view, error) {
	var r struct {
		Tools       []json.RawMessage `json:"tools"`
		System      []json.RawMessage `json:"system"`
		Instruction message           `json:"systemInstruction"`
		Input       []json.RawMessage `json:"input"`
		Messages    []message         `json:"messages"`
		Contents    []message         `json:"contents"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	v := &view{}
	err := errors.Join(v.take("tools", r.Tools), v.take("system", r.System), v.take("system", r.Instruction.Parts), v.take("input", r.Input))
	for _, m := range slices.Concat(r.Messages, r.Contents) {
		err = errors.Join(err, v.take(m.Role, slices.Concat(m.Content, m.Parts)))
	}
	return v, err
}

type piece struct {
	Name         string `json:"name"`
	Declarations []struct {
		Name string `json:"name"`
	} `json:"functionDeclarations"`
	Type             string `json:"type"`
	Role             string `json:"role"`
	Text             string `json:"text"`
	Output           string `json:"output"`
	Content          any    `json:"content"`
	FunctionResponse *struct {
		Response struct {
			Output string `json:"output"`
		} `json:"response"`
	} `json:"functionResponse"`
}

func (v *view) take(place string, list []json.RawMessage) error {
	for _, raw := range list {
		var members map[string]any
		var p piece
		if err := errors.Join(json.Unmarshal(raw, &members), json.Unmarshal(raw, &p)); err != nil {
			return err
		}
		delete(members, "cache_control")             // caches do not compare it
		_, _ = fmt.Fprintln(&v.text, place, members) // a builder does not fail
		v.read(place, &p)
	}
	return nil
}

func (v *view) read(place string, p *piece) {
	said, _ := p.Content.(string)
	switch {
	case place == "tools":
		v.tools = append(v.tools, p.Name)
		for _, d := range p.Declarations {
			v.tools = append(v.tools, d.Name)
		}
	case p.Type == "tool_result":
		v.result = textOf(p.Content)
	case p.Type == "function_call_output":
		v.result = p.Output
	case p.FunctionResponse != nil:
		v.result = p.FunctionResponse.Response.Output
	case place == "user" || p.Role == "user":
		v.hear(p.Text + said)
	}
}

// hear notes what the user said. Sections of the prompt may stand beside it.
func (v *view) hear(text string) {
	if !strings.HasPrefix(text, "## ") && text != "" {
		v.last, v.result = text, ""
	}
}

func textOf(content any) string {
	if list, ok := content.([]any); ok && len(list) > 0 {
		if first, ok := list[0].(map[string]any); ok {
			text, _ := first["text"].(string)
			return text
		}
	}
	return ""
}

func writeAnthropic(s said, c cost) any {
	content := map[string]any{"type": "text", "text": s.text}
	if s.tool != "" {
		content = map[string]any{"type": "tool_use", "id": s.id, "name": s.tool, "input": s.args}
	}
	return map[string]any{
		"type": "message", "role": "assistant", "content": []any{content},
		"usage": map[string]any{
			"input_tokens": c.input - c.read, "cache_read_input_tokens": c.read, "output_tokens": 10,
		},
	}
}

func writeOpenAI(s said, c cost) any {
	item := map[string]any{
		"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": s.text}},
	}
	if s.tool != "" {
		item = map[string]any{"type": "function_call", "call_id": s.id, "name": s.tool, "arguments": string(s.args)}
	}
	return map[string]any{
		"object": "response", "status": "completed", "output": []any{item},
		"usage": map[string]any{
			"input_tokens": c.input, "input_tokens_details": map[string]any{"cached_tokens": c.read}, "output_tokens": 10,
		},
	}
}

func writeGemini(s said, c cost) any {
	part := map[string]any{"text": s.text}
	if s.tool != "" {
		part = map[string]any{"functionCall": map[string]any{"name": s.tool, "args": s.args}}
	}
	return map[string]any{
		"candidates":    []any{map[string]any{"content": map[string]any{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
		"usageMetadata": map[string]any{"promptTokenCount": c.input, "cachedContentTokenCount": c.read, "candidatesTokenCount": 10},
	}
}

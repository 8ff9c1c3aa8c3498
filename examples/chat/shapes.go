package main

import (
	"encoding/json"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
)

// shape is the form of one provider's requests and answers, as far as the fake model needs it.
type shape struct {
	model string
	read  func(body []byte) ([]part, error)
	write func(said, cost) any
}

func shapes() map[string]shape {
	return map[string]shape{
		compiler.Anthropic: {"claude-opus-5", readAnthropic, writeAnthropic},
		compiler.OpenAI:    {"gpt-5", readOpenAI, writeOpenAI},
		compiler.Gemini:    {"gemini-3-flash", readGemini, writeGemini},
	}
}

type part struct {
	place string
	list  []json.RawMessage
}

type view struct {
	blocks       []block // in the order in which caches compare it
	tools        []string
	last, result string // the user's last words, and what a tool answered after them
}

type block struct {
	text   string
	marked bool
}

type piece struct {
	Name             string `json:"name"`
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

func newView(parts []part) (v view, err error) {
	for _, part := range parts {
		for _, raw := range part.list {
			if err := v.take(part.place, raw); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}

func (v *view) take(place string, raw json.RawMessage) error {
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	var p piece
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	_, marked := members["cache_control"]
	delete(members, "cache_control") // caches do not compare it
	text, err := json.Marshal(members)
	if err != nil {
		return err
	}
	v.blocks = append(v.blocks, block{place + string(text), marked})
	said, _ := p.Content.(string)
	switch {
	case place == "tools":
		v.tools = append(v.tools, p.Name)
	case p.Type == "tool_result":
		v.result = textOf(p.Content)
	case p.Type == "function_call_output":
		v.result = p.Output
	case p.FunctionResponse != nil:
		v.result = p.FunctionResponse.Response.Output
	case place == "user" || p.Role == "user":
		v.hear(p.Text + said)
	}
	return nil
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

func readAnthropic(body []byte) ([]part, error) {
	var r struct {
		Tools    []json.RawMessage `json:"tools"`
		System   []json.RawMessage `json:"system"`
		Messages []struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	err := json.Unmarshal(body, &r)
	parts := []part{{"tools", r.Tools}, {"system", r.System}}
	for _, m := range r.Messages {
		parts = append(parts, part{m.Role, m.Content})
	}
	return parts, err
}

func readOpenAI(body []byte) ([]part, error) {
	var r struct {
		Tools []json.RawMessage `json:"tools"`
		Input []json.RawMessage `json:"input"`
	}
	err := json.Unmarshal(body, &r)
	return []part{{"tools", r.Tools}, {"input", r.Input}}, err
}

func readGemini(body []byte) ([]part, error) {
	var r struct {
		Tools []struct {
			Declarations []json.RawMessage `json:"functionDeclarations"`
		} `json:"tools"`
		System struct {
			Parts []json.RawMessage `json:"parts"`
		} `json:"systemInstruction"`
		Contents []struct {
			Role  string            `json:"role"`
			Parts []json.RawMessage `json:"parts"`
		} `json:"contents"`
	}
	err := json.Unmarshal(body, &r)
	var parts []part
	for _, t := range r.Tools {
		parts = append(parts, part{"tools", t.Declarations})
	}
	parts = append(parts, part{"system", r.System.Parts})
	for _, c := range r.Contents {
		parts = append(parts, part{c.Role, c.Parts})
	}
	return parts, err
}

func writeAnthropic(s said, c cost) any {
	content := map[string]any{"type": "text", "text": s.text}
	if s.tool != "" {
		content = map[string]any{"type": "tool_use", "id": s.id, "name": s.tool, "input": s.args}
	}
	return map[string]any{
		"type": "message", "role": "assistant", "content": []any{content},
		"usage": map[string]any{
			"input_tokens": c.input - c.read - c.written, "cache_read_input_tokens": c.read, "cache_creation_input_tokens": c.written, "output_tokens": 10,
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

package main

import (
	"encoding/json"
	"strings"

	"github.com/grapnelhq/grapnel/providers/facts"
)

// shape is how one provider's requests and answers look, as far as the fake model
// cares.
type shape struct {
	// model is the one that is pretended to be.
	model string
	read  func(body []byte) (view, error)
	write func(said, cost) any
}

func shapes() map[string]shape {
	return map[string]shape{
		facts.Anthropic: {"claude-opus-5", readAnthropic, writeAnthropic},
		facts.OpenAI:    {"gpt-5", readOpenAI, writeOpenAI},
		facts.Gemini:    {"gemini-3-flash", readGemini, writeGemini},
	}
}

// view is a request as the model sees it.
type view struct {
	// blocks are all of it, in the order in which caches compare it.
	blocks []block
	tools  []string
	// last are the user's last words, and result is what a tool answered after
	// them.
	last, result string
}

// block is a piece of a request. A marked one ends a prefix that is to be kept.
type block struct {
	text   string
	marked bool
}

// piece is any of the objects that requests are made of. What is not in one of
// the shapes stays empty.
type piece struct {
	Name             string            `json:"name"`
	Type             string            `json:"type"`
	Role             string            `json:"role"`
	Text             string            `json:"text"`
	Output           string            `json:"output"`
	Content          any               `json:"content"`
	FunctionResponse *functionResponse `json:"functionResponse"`
}

// functionResponse is how Gemini is told what a tool answered.
type functionResponse struct {
	Response struct {
		Output string `json:"output"`
	} `json:"response"`
}

// take adds blocks and returns what they are.
func (v *view) take(place string, list []json.RawMessage) ([]piece, error) {
	pieces := make([]piece, len(list))
	for i, raw := range list {
		var members map[string]any
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &pieces[i]); err != nil {
			return nil, err
		}
		_, marked := members["cache_control"]
		delete(members, "cache_control") // no part of what is compared
		text, err := json.Marshal(members)
		if err != nil {
			return nil, err
		}
		v.blocks = append(v.blocks, block{place + string(text), marked})
		if place == "tools" {
			v.tools = append(v.tools, pieces[i].Name)
		}
	}
	return pieces, nil
}

// hear notes what the user said. A section of the prompt, which may stand beside
// it, is nothing that the user said.
func (v *view) hear(text string) {
	if !strings.HasPrefix(text, "## ") && text != "" {
		v.last, v.result = text, ""
	}
}

func readAnthropic(body []byte) (v view, err error) {
	var r struct {
		Tools    []json.RawMessage `json:"tools"`
		System   []json.RawMessage `json:"system"`
		Messages []struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return v, err
	}
	if _, err := v.take("tools", r.Tools); err != nil {
		return v, err
	}
	if _, err := v.take("system", r.System); err != nil {
		return v, err
	}
	for _, m := range r.Messages {
		pieces, err := v.take(m.Role, m.Content)
		if err != nil {
			return v, err
		}
		for _, p := range pieces {
			switch {
			case m.Role != "user":
			case p.Type == "tool_result":
				v.result = textOf(p.Content)
			default:
				v.hear(p.Text)
			}
		}
	}
	return v, nil
}

// textOf is the text of a result's content.
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
			"input_tokens": c.input - c.read - c.written, "cache_read_input_tokens": c.read, "cache_creation_input_tokens": c.written, "output_tokens": 10,
		},
	}
}

func readOpenAI(body []byte) (v view, err error) {
	var r struct {
		Tools []json.RawMessage `json:"tools"`
		Input []json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return v, err
	}
	if _, err := v.take("tools", r.Tools); err != nil {
		return v, err
	}
	pieces, err := v.take("input", r.Input)
	for _, p := range pieces {
		text, _ := p.Content.(string)
		switch {
		case p.Type == "function_call_output":
			v.result = p.Output
		case p.Role == "user":
			v.hear(text)
		}
	}
	return v, err
}

func writeOpenAI(s said, c cost) any {
	item := map[string]any{
		"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": s.text}},
	}
	if s.tool != "" {
		args, err := json.Marshal(s.args)
		if err != nil {
			args = []byte("{}") // numbers and words always encode
		}
		item = map[string]any{"type": "function_call", "call_id": s.id, "name": s.tool, "arguments": string(args)}
	}
	return map[string]any{
		"object": "response", "status": "completed", "output": []any{item},
		"usage": map[string]any{
			"input_tokens": c.input, "input_tokens_details": map[string]any{"cached_tokens": c.read}, "output_tokens": 10,
		},
	}
}

func readGemini(body []byte) (v view, err error) {
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
	if err := json.Unmarshal(body, &r); err != nil {
		return v, err
	}
	for _, t := range r.Tools {
		if _, err := v.take("tools", t.Declarations); err != nil {
			return v, err
		}
	}
	if _, err := v.take("system", r.System.Parts); err != nil {
		return v, err
	}
	for _, c := range r.Contents {
		pieces, err := v.take(c.Role, c.Parts)
		if err != nil {
			return v, err
		}
		for _, p := range pieces {
			switch {
			case c.Role != "user":
			case p.FunctionResponse != nil:
				v.result = p.FunctionResponse.Response.Output
			default:
				v.hear(p.Text)
			}
		}
	}
	return v, nil
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

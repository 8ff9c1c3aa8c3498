package main

import (
	"encoding/json"
	"net/http"
)

// part is one of a message of Gemini's API.
type part struct {
	Text     string `json:"text,omitempty"`
	Response *struct {
		Response map[string]any `json:"response"`
	} `json:"functionResponse,omitempty"`
	Call map[string]any `json:"functionCall,omitempty"`
}

// generate is Gemini's API, as a stream of one event.
func (m *model) generate(w http.ResponseWriter, r *http.Request) {
	var req struct {
		System   struct{ Parts []part } `json:"systemInstruction"`
		Contents []struct {
			Role  string `json:"role"`
			Parts []part `json:"parts"`
		} `json:"contents"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var items []item
	for _, p := range req.System.Parts {
		items = append(items, item{Role: "the system prompt", Text: p.Text})
	}
	for _, c := range req.Contents {
		for _, p := range c.Parts {
			if p.Response == nil {
				items = append(items, item{Role: c.Role, Text: p.Text})
				continue
			}
			items = append(items, item{Role: "tool", Text: textIn([]any{p.Response.Response["output"], p.Response.Response["error"]}), Result: true})
		}
	}
	said := part{Text: "done"}
	if !m.note(items) {
		said = part{Call: map[string]any{"name": "run_shell_command", "args": map[string]any{"command": m.command, "description": "Leave a marker"}}}
		if m.tool != "" {
			said.Call = map[string]any{"name": m.tool, "args": map[string]any{}}
		}
	}
	stream(w, map[string]any{
		"candidates":    []any{map[string]any{"content": map[string]any{"role": "model", "parts": []part{said}}, "finishReason": "STOP"}},
		"usageMetadata": map[string]int{"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120},
	})
}

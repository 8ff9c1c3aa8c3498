package main

import (
	"net/http"
	"slices"
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
	if !m.read(w, r, &req) {
		return
	}
	talk := &conversation{}
	for _, p := range req.System.Parts {
		talk.items = append(talk.items, item{Role: "the system prompt", Text: p.Text})
	}
	for _, c := range req.Contents {
		if slices.ContainsFunc(c.Parts, func(p part) bool { return p.Response != nil }) {
			talk.round++ // its calls have no ids
		}
		for _, p := range c.Parts {
			if p.Response == nil {
				talk.items = append(talk.items, item{Role: c.Role, Text: p.Text})
				continue
			}
			talk.items = append(talk.items, item{Role: "tool", Text: textIn([]any{p.Response.Response["output"], p.Response.Response["error"]}), Result: true})
		}
	}
	said := []part{{Text: "done"}}
	for n, call := range m.next(talk) {
		name, args := call.tool, call.args
		switch name {
		case shellTool:
			name, args = "run_shell_command", map[string]any{"command": args, "description": "Leave a marker"}
		case subagentTool:
			name, args = "invoke_agent", map[string]any{"agent_name": "generalist", "prompt": subtask}
		}
		said = append(said[:n], part{Call: map[string]any{"name": name, "args": args}})
	}
	stream(w, map[string]any{
		"candidates":    []any{map[string]any{"content": map[string]any{"role": "model", "parts": said}, "finishReason": "STOP"}},
		"usageMetadata": map[string]int{"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120},
	})
}

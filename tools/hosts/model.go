package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// item is one entry of a conversation, as a model gets it.
type item struct {
	Role   string `json:"role"` // the API's own word; "tool" for results
	Text   string `json:"text"`
	Result bool   `json:"result,omitempty"` // of a tool
}

// model is a fake of three APIs. It calls the shell once, and then says "done".
type model struct {
	server  *httptest.Server
	command string // for the shell
	tool    string // called instead of the shell
	file    string // for that tool

	mu       sync.Mutex
	requests [][]item
}

func newModel(command string) *model {
	m := &model{command: command}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/responses", m.responses)
	mux.HandleFunc("POST /v1beta/models/{call}", m.generate)
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"input_tokens":100}`)
	})
	m.server = httptest.NewServer(mux) // everything else is not found
	return m
}

// note keeps a request that continues the conversation, and reports whether the tool was called before.
func (m *model) note(items []item) (called bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, items)
	return slices.ContainsFunc(items, func(i item) bool { return i.Result })
}

// seen are the requests so far.
func (m *model) seen() [][]item {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// stream writes server-sent events.
func stream(w http.ResponseWriter, events ...map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			panic(err) // the events are made here
		}
		if e["type"] != nil { // Gemini's have no names
			_, _ = fmt.Fprintf(w, "event: %s\n", e["type"])
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	}
}

// messages is Anthropic's API. Requests without tools, such as for a title, are no part of the conversation.
func (m *model) messages(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Model    string `json:"model"`
		System   any    `json:"system"`
		Messages []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	called := true
	if len(req.Tools) > 0 {
		items := []item{{Role: "the system prompt", Text: textIn(req.System)}}
		for _, msg := range req.Messages {
			items = append(items, blocks(msg.Role, msg.Content)...)
		}
		called = m.note(items)
	}
	block, delta, stop := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": "done"}, "end_turn"
	if !called {
		name, arguments := "Bash", map[string]string{"command": m.command, "description": "Leave a marker"}
		for _, t := range req.Tools {
			if t.Name == "bash" { // opencode's
				name = t.Name
			}
		}
		if m.tool != "" {
			name, arguments = m.tool, toolArguments(m.file)[m.tool]
		}
		input, err := json.Marshal(arguments)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		stop = "tool_use"
		block = map[string]any{"type": stop, "id": "toolu_1", "name": name, "input": map[string]any{}}
		delta = map[string]any{"type": "input_json_delta", "partial_json": string(input)}
	}
	usage := map[string]any{"input_tokens": 100, "output_tokens": 1}
	stream(
		w,
		map[string]any{"type": "message_start", "message": map[string]any{
			"id": "msg_1", "type": "message", "role": "assistant", "model": req.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage,
		}},
		map[string]any{"type": "content_block_start", "index": 0, "content_block": block},
		map[string]any{"type": "content_block_delta", "index": 0, "delta": delta},
		map[string]any{"type": "content_block_stop", "index": 0},
		map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 20}},
		map[string]any{"type": "message_stop"},
	)
}

// toolArguments are those of Claude Code's tools besides the shell.
func toolArguments(file string) map[string]map[string]string {
	return map[string]map[string]string{
		"Read":  {"file_path": file},
		"Grep":  {"pattern": secret, "path": file, "output_mode": "content"},
		"Glob":  {"pattern": "*.txt"},
		"Write": {"file_path": file + ".new", "content": secret},
		mcpTool: {},
		ourTool: {},
	}
}

// blocks are the parts of one of Anthropic's messages.
func blocks(role string, content any) []item {
	list, ok := content.([]any)
	if !ok {
		return []item{{Role: role, Text: textIn(content)}}
	}
	var items []item
	for _, b := range list {
		fields, _ := b.(map[string]any)
		if fields["type"] == "tool_result" {
			items = append(items, item{Role: "tool", Text: textIn(fields["content"]), Result: true})
			continue
		}
		items = append(items, item{Role: role, Text: textIn(b)})
	}
	return items
}

// responses is OpenAI's API.
func (m *model) responses(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Instructions string           `json:"instructions"`
		Input        []map[string]any `json:"input"`
		Tools        []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	items := []item{{Role: "instructions", Text: req.Instructions}}
	for _, in := range req.Input {
		if out, ok := in["output"]; ok {
			items = append(items, item{Role: "tool", Text: textIn(out), Result: true})
			continue
		}
		role, _ := in["role"].(string)
		items = append(items, item{Role: role, Text: textIn(in["content"])})
	}
	said := map[string]any{"type": "message", "id": "msg_1", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": "done"}}}
	if !m.note(items) {
		call := map[string]any{}
		name := ""
		for _, t := range req.Tools {
			switch t.Name {
			case "exec_command":
				name, call["cmd"] = t.Name, m.command
			case "shell_command":
				name, call["command"] = t.Name, m.command
			case "shell":
				name, call["command"] = t.Name, []string{"bash", "-c", m.command}
			}
		}
		arguments, err := json.Marshal(call)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		said = map[string]any{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": string(arguments)}
		if server, tool, ok := cutLast(m.tool, "__"); ok { // tools of a server are a namespace
			said["name"], said["namespace"], said["arguments"] = tool, server, "{}"
		}
	}
	usage := map[string]any{
		"input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
		"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
	}
	stream(
		w,
		map[string]any{"type": "response.created", "response": map[string]any{"id": "resp_1"}},
		map[string]any{"type": "response.output_item.done", "output_index": 0, "item": said},
		map[string]any{"type": "response.completed", "response": map[string]any{"id": "resp_1", "usage": usage}},
	)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// textIn joins all texts of a value.
func textIn(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, textIn(e))
		}
		return strings.Join(parts, "\n")
	case map[string]any:
		if text, ok := v["text"].(string); ok {
			return text
		}
		if content, ok := v["content"]; ok {
			return textIn(content)
		}
	}
	return ""
}

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

// model is a fake of three APIs, which does what a script says.
type model struct {
	server *httptest.Server
	script script

	mu       sync.Mutex
	requests [][]item
	bodies   []string // of all requests, also those without tools
}

func newModel(s script) *model {
	m := &model{script: s}
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

// read keeps a request's body, and decodes it.
func (m *model) read(w http.ResponseWriter, r *http.Request, into any) bool {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		m.mu.Lock()
		m.bodies = append(m.bodies, string(body))
		m.mu.Unlock()
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

// next keeps a request that continues the conversation, and returns what the model calls.
func (m *model) next(c *conversation) []call {
	m.mu.Lock()
	m.requests = append(m.requests, c.items)
	m.mu.Unlock()
	return m.script(c)
}

// count is how many requests there were.
func (m *model) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.bodies)
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
	if !m.read(w, r, &req) {
		return
	}
	var calls []call
	c := &conversation{}
	if len(req.Tools) > 0 {
		c.items = []item{{Role: "the system prompt", Text: textIn(req.System)}}
		for _, msg := range req.Messages {
			items, round := blocks(msg.Role, msg.Content)
			c.items, c.round = append(c.items, items...), max(c.round, round)
		}
		for _, t := range req.Tools {
			c.tools = append(c.tools, t.Name)
		}
		calls = m.next(c)
	}
	usage := map[string]any{"input_tokens": 100, "output_tokens": 1}
	events := []map[string]any{{"type": "message_start", "message": map[string]any{
		"id": fmt.Sprint("msg_", m.count()), "type": "message", "role": "assistant", "model": req.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}}}
	stop := "end_turn"
	add := func(n int, block, delta map[string]any) {
		events = append(
			events,
			map[string]any{"type": "content_block_start", "index": n, "content_block": block},
			map[string]any{"type": "content_block_delta", "index": n, "delta": delta},
			map[string]any{"type": "content_block_stop", "index": n},
		)
	}
	if len(calls) == 0 {
		add(0, map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": "done"})
	}
	for n, call := range calls {
		name, arguments := claudeCall(call, c.tools)
		input, err := json.Marshal(arguments)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		stop = "tool_use"
		add(n, map[string]any{"type": stop, "id": callID(c.round, n), "name": name, "input": map[string]any{}},
			map[string]any{"type": "input_json_delta", "partial_json": string(input)})
	}
	stream(w, append(
		events,
		map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 20}},
		map[string]any{"type": "message_stop"},
	)...)
}

// blocks are the parts of one of Anthropic's messages, and the round that the calls in it are of.
func blocks(role string, content any) (items []item, round int) {
	list, ok := content.([]any)
	if !ok {
		return []item{{Role: role, Text: textIn(content)}}, 0
	}
	for _, b := range list {
		fields, _ := b.(map[string]any)
		if fields["type"] == "tool_result" {
			round = max(round, roundOf(fields["tool_use_id"]))
			items = append(items, item{Role: "tool", Text: textIn(fields["content"]), Result: true})
			continue
		}
		items = append(items, item{Role: role, Text: textIn(b)})
	}
	return items, round
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
	if !m.read(w, r, &req) {
		return
	}
	c := &conversation{items: []item{{Role: "instructions", Text: req.Instructions}}}
	for _, in := range req.Input {
		if out, ok := in["output"]; ok {
			c.items = append(c.items, item{Role: "tool", Text: textIn(out), Result: true})
			c.round = max(c.round, roundOf(in["call_id"]))
			continue
		}
		role, _ := in["role"].(string)
		c.items = append(c.items, item{Role: role, Text: textIn(in["content"])})
	}
	for _, t := range req.Tools {
		c.tools = append(c.tools, t.Name)
	}
	events := []map[string]any{{"type": "response.created", "response": map[string]any{"id": "resp_1"}}}
	add := func(n int, item map[string]any) {
		events = append(events, map[string]any{"type": "response.output_item.done", "output_index": n, "item": item})
	}
	calls := m.next(c)
	for n, call := range calls {
		said := codexCall(call, c.tools)
		said["id"], said["call_id"] = "fc_"+callID(c.round, n), callID(c.round, n)
		add(n, said)
	}
	if len(calls) == 0 {
		add(0, map[string]any{"type": "message", "id": "msg_1", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": "done"}}})
	}
	usage := map[string]any{
		"input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
		"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
	}
	stream(w, append(events, map[string]any{"type": "response.completed", "response": map[string]any{"id": "resp_1", "usage": usage}})...)
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

package openaihttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// model is a fake API. Its answers come from a script.
type model struct {
	t      *testing.T
	script func(n int, request dict) said
	// inStream is called before the end of a streamed answer.
	inStream func(r *http.Request)

	mu       sync.Mutex
	requests []dict
	bodies   []string
	headers  []http.Header
	*httptest.Server
}

func newModel(t *testing.T, script func(n int, request dict) said) *model {
	t.Helper()
	m := &model{t: t, script: script}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// script says one thing after another.
func script(all ...said) func(int, dict) said {
	return func(n int, _ dict) said {
		if n >= len(all) {
			return said{text: "That is all."}
		}
		return all[n]
	}
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	var request dict
	if err := decode(body, &request); err != nil && r.Method == http.MethodPost {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	n := len(m.requests)
	m.requests, m.bodies, m.headers = append(m.requests, request), append(m.bodies, string(body)), append(m.headers, r.Header)
	m.mu.Unlock()
	s := m.script(n, request)
	switch {
	case s.status != 0:
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, s.body)
	case s.body != "":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, s.body)
	case string(raw(request["stream"])) == "true":
		w.Header().Set("Content-Type", "text/event-stream")
		m.stream(w, r, n, s)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw(whole(r.URL.Path, n, s)))
	}
}

func (m *model) request(i int) dict {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i >= len(m.requests) {
		m.t.Fatalf("there were %d requests, want one more", len(m.requests))
	}
	return m.requests[i]
}

func (m *model) body(i int) string {
	m.request(i)
	return m.bodies[i]
}

func (m *model) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// args are arguments as an object.
func args(s string) any {
	var v any
	if decode([]byte(s), &v) != nil {
		return dict{}
	}
	return v
}

// whole is an answer in one piece.
func whole(path string, n int, s said) dict {
	switch path {
	case chatPath:
		message, finish := dict{"role": "assistant", "content": s.text, "vendor_field": 12345678901234567}, "stop"
		var calls list
		for _, c := range s.calls {
			calls, finish = append(calls, dict{"id": c.id, "type": "function", "function": dict{"name": c.name, "arguments": c.args}}), "tool_calls"
		}
		if calls != nil {
			message["tool_calls"] = calls
		}
		return dict{
			"id": fmt.Sprint("chat-", n), "object": "chat.completion", "created": 1, "model": "m",
			"choices": list{dict{"index": 0, "message": message, "finish_reason": finish}}, "usage": chatUsage(),
		}
	case responsesPath:
		return response(n, s, items(n, s))
	default:
		content, stop := list{}, "end_turn"
		if s.text != "" {
			content = append(content, dict{"type": "text", "text": s.text})
		}
		for _, c := range s.calls {
			content, stop = append(content, dict{"type": "tool_use", "id": c.id, "name": c.name, "input": args(c.args)}), "tool_use"
		}
		if s.tail != "" {
			content = append(content, dict{"type": "text", "text": s.tail})
		}
		return dict{
			"id": fmt.Sprint("msg-", n), "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": stop, "stop_sequence": nil,
			"usage": dict{"input_tokens": 70, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 10, "output_tokens": 5},
		}
	}
}

func chatUsage() dict {
	return dict{"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105, "prompt_tokens_details": dict{"cached_tokens": 20, "cache_write_tokens": 10}}
}

func response(n int, _ said, output list) dict {
	return dict{
		"id": fmt.Sprint("resp-", n), "object": "response", "created_at": 1, "status": "completed", "model": "m", "instructions": "as sent", "tools": list{dict{"type": "function", "name": "as sent"}},
		"output": output, "usage": dict{"input_tokens": 100, "output_tokens": 5, "total_tokens": 105, "input_tokens_details": dict{"cached_tokens": 20, "cache_write_tokens": 10}, "output_tokens_details": dict{"reasoning_tokens": 0}},
	}
}

func items(n int, s said) list {
	out := list{}
	text := func(id, text string) {
		if text != "" {
			out = append(out, dict{"type": "message", "id": id, "role": "assistant", "status": "completed", "content": list{dict{"type": "output_text", "text": text, "annotations": list{}}}})
		}
	}
	text(fmt.Sprint("item-", n), s.text)
	for _, c := range s.calls {
		out = append(out, dict{"type": "function_call", "id": "fc-" + c.id, "call_id": c.id, "name": c.name, "arguments": c.args, "status": "completed"})
	}
	text(fmt.Sprint("tail-", n), s.tail)
	return out
}

// halves cuts a text into two deltas.
func halves(s string) []string { return []string{s[:len(s)/2], s[len(s)/2:]} }

func (m *model) stream(w http.ResponseWriter, r *http.Request, n int, s said) {
	sequence := 0
	send := func(event dict) {
		if kind, ok := event["type"].(string); ok {
			_, _ = fmt.Fprintf(w, "event: %s\n", kind)
			if r.URL.Path == responsesPath {
				event["sequence_number"] = sequence
				sequence++
			}
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", raw(event))
		_ = http.NewResponseController(w).Flush()
	}
	_, _ = io.WriteString(w, ": hello\n\n")
	full := whole(r.URL.Path, n, s)
	switch r.URL.Path {
	case chatPath:
		m.streamChat(w, r, full, s, send)
	case responsesPath:
		begun := response(n, s, list{})
		send(dict{"type": "response.created", "response": begun})
		for i, it := range arr(full["output"]) {
			streamItem(i, obj(it), send)
		}
		m.pause(r)
		send(dict{"type": "response.completed", "response": full})
	default:
		start := whole(r.URL.Path, n, said{})
		send(dict{"type": "message_start", "message": start})
		send(dict{"type": "ping"})
		for i, b := range arr(full["content"]) {
			streamBlock(i, obj(b), send)
		}
		m.pause(r)
		send(dict{"type": "message_delta", "delta": dict{"stop_reason": full["stop_reason"], "stop_sequence": nil}, "usage": dict{"output_tokens": 5}})
		send(dict{"type": "message_stop"})
	}
}

func (m *model) pause(r *http.Request) {
	if m.inStream != nil {
		m.inStream(r)
	}
}

func (m *model) streamChat(w io.Writer, r *http.Request, full dict, s said, send func(dict)) {
	chunk := func(delta dict, finish any) {
		send(dict{"id": full["id"], "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": list{dict{"index": 0, "delta": delta, "finish_reason": finish}}, "usage": nil})
	}
	chunk(dict{"role": "assistant", "content": ""}, nil)
	if s.text != "" {
		for _, half := range halves(s.text) {
			chunk(dict{"content": half}, nil)
		}
	}
	finish := "stop"
	for i, c := range s.calls {
		finish = "tool_calls"
		chunk(dict{"tool_calls": list{dict{"index": i, "id": c.id, "type": "function", "function": dict{"name": c.name, "arguments": ""}}}}, nil)
		for _, half := range halves(c.args) {
			chunk(dict{"tool_calls": list{dict{"index": i, "function": dict{"arguments": half}}}}, nil)
		}
	}
	m.pause(r)
	chunk(dict{}, finish)
	send(dict{"id": full["id"], "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": list{}, "usage": full["usage"]})
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func streamItem(i int, it dict, send func(dict)) {
	about := func(kind string, more dict) {
		more["type"], more["output_index"], more["item_id"] = kind, i, it["id"]
		send(more)
	}
	if it["type"] == "function_call" {
		added := dict{"type": "function_call", "id": it["id"], "call_id": it["call_id"], "name": it["name"], "arguments": "", "status": "in_progress"}
		about("response.output_item.added", dict{"item": added})
		for _, half := range halves(str(it["arguments"])) {
			about("response.function_call_arguments.delta", dict{"delta": half})
		}
		about("response.function_call_arguments.done", dict{"arguments": it["arguments"]})
	} else {
		about("response.output_item.added", dict{"item": dict{"type": "message", "id": it["id"], "role": "assistant", "status": "in_progress", "content": list{}}})
		text := str(obj(arr(it["content"])[0])["text"])
		for _, half := range halves(text) {
			about("response.output_text.delta", dict{"content_index": 0, "delta": half, "logprobs": list{}})
		}
		about("response.output_text.done", dict{"content_index": 0, "text": text, "logprobs": list{}})
	}
	about("response.output_item.done", dict{"item": it})
}

func streamBlock(i int, block dict, send func(dict)) {
	if block["type"] == "tool_use" {
		send(dict{"type": "content_block_start", "index": i, "content_block": dict{"type": "tool_use", "id": block["id"], "name": block["name"], "input": dict{}}})
		for _, half := range halves(string(raw(block["input"]))) {
			send(dict{"type": "content_block_delta", "index": i, "delta": dict{"type": "input_json_delta", "partial_json": half}})
		}
	} else {
		send(dict{"type": "content_block_start", "index": i, "content_block": dict{"type": "text", "text": ""}})
		for _, half := range halves(str(block["text"])) {
			send(dict{"type": "content_block_delta", "index": i, "delta": dict{"type": "text_delta", "text": half}})
		}
	}
	send(dict{"type": "content_block_stop", "index": i})
}

package openaihttp_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// talk is a conversation that a client has over one API.
type talk struct {
	*world

	path   string
	stream bool
	header map[string]string
	items  list // messages or items
	more   dict // members of each request
}

// each runs a test over all APIs, streamed and not.
func each(t *testing.T, script func(int, dict) said, test func(t *testing.T, c *talk)) {
	t.Helper()
	for _, path := range []string{chatPath, responsesPath, messagesPath} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,stream=%v", path[4:], stream), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, script, nil)
				test(t, &talk{world: w, path: path, stream: stream})
			})
		}
	}
}

func (c *talk) user(text string) {
	c.items = append(c.items, dict{"role": "user", "content": text})
}

// result answers calls.
func (c *talk) result(results ...call) {
	var blocks list
	for _, r := range results {
		switch c.path {
		case chatPath:
			c.items = append(c.items, dict{"role": "tool", "tool_call_id": r.id, "content": r.args})
		case responsesPath:
			c.items = append(c.items, dict{"type": "function_call_output", "call_id": r.id, "output": r.args})
		default:
			blocks = append(blocks, dict{"type": "tool_result", "tool_use_id": r.id, "content": r.args})
		}
	}
	if blocks != nil {
		c.items = append(c.items, dict{"role": "user", "content": blocks})
	}
}

func (c *talk) request() dict {
	r := dict{"model": "m", map[string]string{chatPath: "messages", responsesPath: "input", messagesPath: "messages"}[c.path]: c.items}
	if c.path == messagesPath {
		r["max_tokens"] = 100
	}
	var tools list
	for _, name := range []string{"read", "shell", "edit", "fails"} {
		switch c.path {
		case chatPath:
			tools = append(tools, dict{"type": "function", "function": dict{"name": name, "parameters": dict{"type": "object"}}})
		case responsesPath:
			tools = append(tools, dict{"type": "function", "name": name, "parameters": dict{"type": "object"}, "strict": false})
		default:
			tools = append(tools, dict{"name": name, "input_schema": dict{"type": "object"}})
		}
	}
	r["tools"] = tools
	if c.stream {
		r["stream"] = true
	}
	maps.Copy(r, c.more)
	return r
}

func (c *talk) do(ctx context.Context, body []byte) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+c.path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer key")
	for name, v := range c.header {
		r.Header.Set(name, v)
	}
	res, err := c.Client().Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

// ask sends the conversation, and adds the answer to it.
func (c *talk) ask() said {
	c.t.Helper()
	return c.answer(c.do(c.t.Context(), raw(c.request()))) //nolint:bodyclose // answer closes it
}

func (c *talk) answer(res *http.Response) said {
	c.t.Helper()
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	s := said{status: res.StatusCode, body: string(body)}
	if res.StatusCode != http.StatusOK {
		return s
	}
	var echo list
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		echo = c.readStream(&s)
	} else {
		var doc dict
		if err := decode(body, &doc); err != nil {
			c.t.Fatalf("%v in %s", err, body)
		}
		echo = c.read(&s, doc)
	}
	c.items = append(c.items, echo...)
	return s
}

// read reads an answer in one piece, and returns what a client puts into its conversation.
func (c *talk) read(s *said, doc dict) list {
	switch c.path {
	case chatPath:
		message := obj(obj(arr(doc["choices"])[0])["message"])
		s.text, _ = message["content"].(string)
		calls, _ := message["tool_calls"].(list)
		for _, tc := range calls {
			f := obj(obj(tc)["function"])
			s.calls = append(s.calls, call{str(obj(tc)["id"]), str(f["name"]), str(f["arguments"])})
		}
		return list{message}
	case responsesPath:
		for _, it := range arr(doc["output"]) {
			it := obj(it)
			if it["type"] == "function_call" {
				s.calls = append(s.calls, call{str(it["call_id"]), str(it["name"]), str(it["arguments"])})
			} else {
				s.text += str(obj(arr(it["content"])[0])["text"])
			}
		}
		return arr(doc["output"])
	default:
		for _, b := range arr(doc["content"]) {
			b := obj(b)
			if b["type"] == "tool_use" {
				s.calls = append(s.calls, call{str(b["id"]), str(b["name"]), string(raw(b["input"]))})
			} else {
				s.text += str(b["text"])
			}
		}
		return list{dict{"role": "assistant", "content": doc["content"]}}
	}
}

// readStream makes one piece of the events, as a client does.
func (c *talk) readStream(s *said) list {
	c.t.Helper()
	doc, sequence := dict{}, 0
	message, content := dict{"role": "assistant", "content": ""}, list{}
	lines := bufio.NewScanner(strings.NewReader(s.body))
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var ev dict
		if err := decode([]byte(data), &ev); err != nil {
			c.t.Fatalf("%v in %s", err, data)
		}
		if ev["error"] != nil {
			s.status = -1
			return nil
		}
		switch c.path {
		case chatPath:
			choices := arr(ev["choices"])
			if len(choices) == 0 {
				continue
			}
			delta := obj(obj(choices[0])["delta"])
			if text, ok := delta["content"].(string); ok {
				message["content"] = str(message["content"]) + text
			}
			if calls, ok := delta["tool_calls"].(list); ok {
				was, _ := message["tool_calls"].(list)
				if at := number(obj(calls[0])["index"]); at != len(was) {
					c.t.Errorf("a call has the index %d, want %d", at, len(was))
				}
				message["tool_calls"] = append(was, calls...)
			}
			doc["choices"] = list{dict{"message": message}}
		case responsesPath:
			if number(ev["sequence_number"]) != sequence {
				c.t.Errorf("sequence number %v, want %v in %s", ev["sequence_number"], sequence, data)
			}
			sequence++
			if ev["type"] == "response.completed" {
				doc = obj(ev["response"])
			}
		default:
			at := number(ev["index"])
			switch ev["type"] {
			case "content_block_start":
				if at != len(content) {
					c.t.Errorf("a block has the index %v, want %d", at, len(content))
				}
				content = append(content, ev["content_block"])
			case "content_block_delta":
				block, delta := obj(content[at]), obj(ev["delta"])
				if more, ok := delta["text"].(string); ok {
					block["text"] = str(block["text"]) + more
				} else {
					was, _ := block["json"].(string)
					block["json"] = was + str(delta["partial_json"])
				}
			case "content_block_stop":
				if whole, ok := content[at].(dict)["json"].(string); ok {
					obj(content[at])["input"] = args(whole)
					delete(obj(content[at]), "json")
				}
			}
			doc["content"] = content
		}
	}
	return c.read(s, doc)
}

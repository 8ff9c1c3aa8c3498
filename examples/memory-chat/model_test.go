package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// server speaks the Chat Completions API on the loopback. Its model reads wishes and
// facts, as the plugin asks it to, or says something that makes no sense.
type server struct {
	nonsense bool

	mu sync.Mutex
	// asked counts the requests by the name of their schema.
	asked map[string]int
	// wrong is what was not as it should be in a request.
	wrong string
}

// request is the part of a request that matters here.
type request struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	Format struct {
		Schema struct {
			Name string `json:"name"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

// start serves until the test ends, and returns the base URL.
func (s *server) start(t *testing.T) string {
	t.Helper()
	s.asked = map[string]int{}
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	return listener.URL + "/v1"
}

// ServeHTTP answers one request.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var rq request
	err := json.NewDecoder(r.Body).Decode(&rq)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.wrong = err.Error()
	case r.URL.Path != "/v1/chat/completions", r.Header.Get("Authorization") != "Bearer not-a-key", rq.Model != "small", len(rq.Messages) != 2:
		s.wrong = r.URL.Path + " for " + rq.Model
	}
	if s.wrong != "" {
		http.Error(w, s.wrong, http.StatusBadRequest)
		return
	}
	s.asked[rq.Format.Schema.Name]++
	text := s.says(rq.Format.Schema.Name, rq.Messages[1].Content)
	w.Header().Set("Content-Type", "application/json")
	// A client that is gone has no use for the answer.
	_, _ = fmt.Fprintf(w, `{"object": "chat.completion", "model": "small-2026",
		"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": %s}}],
		"usage": {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320}}`, strconv.Quote(text))
}

// says is the model's answer to an input, which is JSON with the user's words.
func (s *server) says(schema, input string) string {
	var said struct {
		User string `json:"user"`
	}
	if err := json.Unmarshal([]byte(input), &said); err != nil {
		s.wrong = err.Error()
	}
	if s.nonsense {
		return "As a language model, I would rather talk about the sea."
	}
	answer := map[string]any{"facts": facts(said.User)}
	if schema == "memory_wishes" {
		answer = map[string]any{"wishes": wishes(said.User)}
	}
	data, err := json.Marshal(answer)
	if err != nil {
		s.wrong = err.Error()
	}
	return string(data)
}

// wishes are those of the script.
func wishes(user string) []any {
	wish := func(intent, target string) []any {
		return []any{map[string]any{"intent": intent, "confidence": 0.97, "target": target, "language": "en"}}
	}
	switch {
	case strings.HasPrefix(user, "Remember that "):
		return wish("remember", "")
	case strings.HasPrefix(user, "Forget that "):
		return wish("forget", wished(user, "Forget that "))
	case strings.Contains(user, "Don't use memory"):
		return wish("no_use", "")
	case strings.Contains(user, "Don't save this"):
		return wish("no_save", "")
	}
	return []any{}
}

// facts are all sentences that say something of the user.
func facts(user string) []any {
	all := []any{}
	for sentence := range strings.SplitSeq(strings.TrimSuffix(user, "."), ". ") {
		text, category, slot := wished(sentence, "Remember that "), "fact", ""
		switch {
		case strings.HasPrefix(text, "I live "):
			slot = "home"
		case strings.HasPrefix(text, "I prefer "):
			category = "preference"
		case !strings.HasPrefix(sentence, "Remember that "):
			continue
		}
		all = append(all, map[string]any{"category": category, "text": text, "evidence": text, "slot": slot, "explicit": text != sentence})
	}
	return all
}

// TestModel holds the talks with a model that reads wishes and facts. The memories are
// those of the rules; that it was the model who read them is in the reasons.
func TestModel(t *testing.T) {
	t.Parallel()

	s := &server{}
	var r runs
	got, err := r.run(t, "--model", s.start(t), "--model-name", "small")
	compare(t, "model.txt", got, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	// In chat mode nobody asks what the user wishes, and what may not be kept is not read.
	if diff := cmp.Diff(s.asked, map[string]int{"memory_wishes": 9, "memory_facts": 6}); s.wrong != "" || diff != "" {
		t.Errorf("%s; asked (-got +want):\n%s", s.wrong, diff)
	}
}

// TestNonsense: what a model says that makes no sense is left aside, and the rules
// answer.
func TestNonsense(t *testing.T) {
	t.Parallel()

	s := &server{nonsense: true}
	var r runs
	got, err := r.run(t, "--model", s.start(t), "--model-name", "small")
	compare(t, "nonsense.txt", got, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wrong != "" || s.asked["memory_wishes"] == 0 || s.asked["memory_facts"] == 0 {
		t.Errorf("%s; asked %v", s.wrong, s.asked)
	}
}

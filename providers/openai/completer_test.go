package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/grapnelhq/grapnel/phases"
)

// asked is a request as a fake server got it.
type asked struct {
	path, auth string
	body       map[string]any
}

// fake is a server of models on the loopback.
type fake struct {
	url  string
	mu   sync.Mutex
	sent []asked
}

// newFake starts a server that notes each request and answers by answer.
func newFake(tb testing.TB, answer http.HandlerFunc) *fake {
	tb.Helper()
	f := &fake{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		got := asked{path: r.URL.Path, auth: r.Header.Get("Authorization")}
		if err := errors.Join(err, json.Unmarshal(data, &got.body)); err != nil {
			tb.Errorf("the request: %v", err)
		}
		f.mu.Lock()
		f.sent = append(f.sent, got)
		f.mu.Unlock()
		answer(w, r)
	}))
	tb.Cleanup(server.Close)
	f.url = server.URL + "/v1"
	return f
}

// requests are those that came so far.
func (f *fake) requests() []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

// completer asks the fake.
func (f *fake) completer(tb testing.TB, o CompleterOptions) *Completer {
	tb.Helper()
	o.BaseURL, o.Model = f.url, "small"
	c, err := NewCompleter(o)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// says answers with a status and a body.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // who does not read it is the test's subject
	}
}

// chat is an answer with one choice.
func chat(message, reason string) string {
	return fmt.Sprintf(`{"id":"1","object":"chat.completion","model":"small-0625","choices":[{"index":0,"finish_reason":%s,"message":%s}],`+
		`"usage":{"prompt_tokens":30,"completion_tokens":5,"total_tokens":35,"prompt_tokens_details":{"cached_tokens":20}}}`, reason, message)
}

// TestCompleterSends: a request in the words of the API.
func TestCompleterSends(t *testing.T) {
	t.Parallel()

	messages := []any{map[string]any{"role": "system", "content": "Be brief."}, map[string]any{"role": "user", "content": "Ü"}}
	alone := messages[1:]
	schema := map[string]any{"type": "object", "required": []any{"a"}}
	tests := []struct {
		name string
		o    CompleterOptions
		rq   phases.CompletionRequest
		want asked
	}{
		{"the least", CompleterOptions{}, phases.CompletionRequest{Input: "Ü"}, asked{body: map[string]any{"model": "small", "messages": alone}}},
		{
			"everything",
			CompleterOptions{APIKey: "k", Extra: map[string]any{"temperature": 0, "seed": 7}},
			phases.CompletionRequest{System: "Be brief.", Input: "Ü", Schema: json.RawMessage(`{"type":"object","required":["a"]}`), SchemaName: "facts", MaxOutputTokens: 99, Purpose: "extract"},
			asked{auth: "Bearer k", body: map[string]any{
				"model": "small", "messages": messages, "max_completion_tokens": 99.0, "temperature": 0.0, "seed": 7.0,
				"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "facts", "strict": false, "schema": schema}},
			}},
		},
		{
			"a schema without a name, an old server",
			CompleterOptions{OldLimit: true},
			phases.CompletionRequest{Input: "Ü", Schema: json.RawMessage(`{"type":"object","required":["a"]}`), MaxOutputTokens: 1},
			asked{body: map[string]any{
				"model": "small", "messages": alone, "max_tokens": 1.0,
				"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "answer", "strict": false, "schema": schema}},
			}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			f := newFake(t, says(http.StatusOK, chat(`{"role":"assistant","content":"x"}`, `"stop"`)))
			if _, err := f.completer(t, tt.o).Complete(t.Context(), tt.rq); err != nil {
				t.Fatal(err)
			}
			tt.want.path = "/v1/chat/completions"
			if diff := cmp.Diff(f.requests(), []asked{tt.want}, cmp.AllowUnexported(asked{})); diff != "" {
				t.Errorf("sent (-got +want):\n%s", diff)
			}
		})
	}
}

// TestCompleterAnswers: what servers answer, good and bad.
func TestCompleterAnswers(t *testing.T) {
	t.Parallel()

	usage := phases.Usage{InputTokens: 30, OutputTokens: 5, CacheReadTokens: 20}
	answer := func(text string, stopped phases.Stop) phases.CompletionResponse {
		return phases.CompletionResponse{Text: text, Model: "small-0625", Usage: usage, Stopped: stopped}
	}
	plain := `{"role":"assistant","content":"{\"a\":1}"}`
	tests := []struct {
		name   string
		status int
		body   string
		want   phases.CompletionResponse
		err    phases.Error
	}{
		{name: "good", body: chat(plain, `"stop"`), want: answer(`{"a":1}`, phases.StoppedEnd)},
		{name: "cut off", body: chat(`{"content":"{\"a"}`, `"length"`), want: answer(`{"a`, phases.StoppedLength)},
		{name: "refusal", body: chat(`{"content":null,"refusal":"I cannot."}`, `"stop"`), want: answer("I cannot.", phases.StoppedRefusal)},
		{name: "filtered", body: chat(`{"content":""}`, `"content_filter"`), want: answer("", phases.StoppedRefusal)},
		{name: "calls a tool", body: chat(`{"content":null,"tool_calls":[]}`, `"tool_calls"`), want: answer("", phases.StoppedOther)},
		{name: "says little", body: `{"choices":[{"message":{"content":"x"}}]}`, want: phases.CompletionResponse{Text: "x", Model: "small", Stopped: phases.StoppedEnd}},
		{name: "the longest text", body: chat(`{"content":"`+strings.Repeat(`\u0041`, phases.MaxCompletionOutput)+`"}`, `"stop"`), want: answer(strings.Repeat("A", phases.MaxCompletionOutput), phases.StoppedEnd)},
		{name: "no choices", body: `{"choices":[]}`, err: phases.Error{Code: phases.CauseInvalidReply}},
		{name: "no JSON", body: `<html>hello</html>`, err: phases.Error{Code: phases.CauseInvalidReply}},
		{name: "10 MB", body: chat(`{"content":"`+strings.Repeat("x", 10<<20)+`"}`, `"stop"`), err: phases.Error{Code: phases.CauseOversizeReply}},
		{name: "429", status: 429, body: `{"error":{"message":"slow down","type":"x","code":"y","param":null}}`, err: phases.Error{Code: phases.CauseOverloaded, Retryable: true}},
		{name: "500", status: 500, body: `{"error":{"message":"key sk-1"}}`, err: phases.Error{Code: phases.CauseUnavailable, Retryable: true}},
		{name: "500 of 10 MB", status: 500, body: strings.Repeat("x", 10<<20), err: phases.Error{Code: phases.CauseUnavailable, Retryable: true}},
		{name: "401", status: 401, body: `{"error":{"message":"wrong key sk-1"}}`, err: phases.Error{Code: phases.CauseUnavailable}},
		{name: "413", status: 413, err: phases.Error{Code: phases.CauseOversizeRequest}},
		{name: "400", status: 400, body: `{"error":{"message":"response_format is not supported"}}`, err: phases.Error{Code: phases.CauseInvalidReply}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if tt.status == 0 {
				tt.status = http.StatusOK
			}
			f := newFake(t, says(tt.status, tt.body))
			got, err := f.completer(t, CompleterOptions{APIKey: "sk-1"}).Complete(t.Context(), phases.CompletionRequest{Input: "x"})
			checkError(t, err, tt.err)
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%.2000s", diff)
			}
			if n := len(f.requests()); n != 1 {
				t.Errorf("%d requests, want 1: who asks decides about another", n)
			}
		})
	}
}

// checkError compares code and retryability; a code of "" is no error.
func checkError(t *testing.T, err error, want phases.Error) {
	t.Helper()
	if want.Code == "" {
		if err != nil {
			t.Errorf("error %v", err)
		}
		return
	}
	got, ok := errors.AsType[*phases.Error](err)
	if !ok {
		t.Fatalf("error %v, want the code %s", err, want.Code)
	}
	if diff := cmp.Diff(*got, want, cmpopts.IgnoreFields(phases.Error{}, "Message", "Err")); diff != "" || got.Message == "" || strings.Contains(got.Message, "sk-1") {
		t.Errorf("error %q (-got +want):\n%s", got.Message, diff)
	}
}

// TestCompleterIsCancelled: a call ends with its context, and says which end it was.
func TestCompleterIsCancelled(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		body bool // the answer has begun
		want phases.Cause
	}{
		"no answer":                  {false, phases.CauseCancelled},
		"in the middle of an answer": {true, phases.CauseCancelled},
		"no answer in time":          {false, phases.CauseTimeout},
		"half an answer in time":     {true, phases.CauseTimeout},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			ctx, cancel := context.WithCancel(t.Context())
			if tt.want == phases.CauseTimeout {
				ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
			}
			defer cancel()
			here := make(chan struct{})
			f := newFake(t, func(w http.ResponseWriter, r *http.Request) {
				if tt.body {
					_, _ = io.WriteString(w, `{"choices":[`)
					_ = http.NewResponseController(w).Flush()
				}
				close(here)
				<-r.Context().Done() // the client has gone
			})
			go func() {
				<-here
				if tt.want == phases.CauseCancelled {
					cancel()
				}
			}()
			_, err := f.completer(t, CompleterOptions{}).Complete(ctx, phases.CompletionRequest{Input: "x"})
			checkError(t, err, phases.Error{Code: tt.want})
			if !errors.Is(err, ctx.Err()) {
				t.Errorf("%v does not wrap %v", err, ctx.Err())
			}
		})
	}
}

// TestCompleterWithoutServer: a server that is not there, and one that hangs up.
func TestCompleterWithoutServer(t *testing.T) {
	t.Parallel()

	hangup := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"choices":[`)
	}
	gone := newFake(t, hangup)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, base := range map[string]string{"hangs up": gone.url, "is not there": closed.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, err := NewCompleter(CompleterOptions{BaseURL: base, Model: "small"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Complete(t.Context(), phases.CompletionRequest{Input: "x"})
			checkError(t, err, phases.Error{Code: phases.CauseUnavailable, Retryable: true})
		})
	}
}

// TestCompleterTakesNothingFromTheEnvironment: another server must not be sent the
// key that a user has in the environment for OpenAI.
func TestCompleterTakesNothingFromTheEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-of-the-user")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/")
	t.Setenv("OPENAI_ORG_ID", "org")
	f := newFake(t, says(http.StatusOK, chat(`{"content":"x"}`, `"stop"`)))
	if _, err := f.completer(t, CompleterOptions{}).Complete(t.Context(), phases.CompletionRequest{Input: "x"}); err != nil {
		t.Fatal(err)
	}
	if sent := f.requests(); len(sent) != 1 || sent[0].auth != "" {
		t.Errorf("sent %+v", sent)
	}
}

func TestNewCompleter(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		o     CompleterOptions
		valid bool
	}{
		"OpenAI":         {CompleterOptions{Model: "m", APIKey: "k"}, true},
		"another server": {CompleterOptions{Model: "m", BaseURL: "http://127.0.0.1:8000/v1"}, true},
		"no model":       {CompleterOptions{BaseURL: "http://127.0.0.1:8000/v1"}, false},
		"no scheme":      {CompleterOptions{Model: "m", BaseURL: "127.0.0.1:8000"}, false},
		"a file":         {CompleterOptions{Model: "m", BaseURL: "file:///etc"}, false},
		"no URL":         {CompleterOptions{Model: "m", BaseURL: "http://[secret"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := NewCompleter(tt.o)
			if (err == nil) != tt.valid || err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("NewCompleter = %v", err)
			}
		})
	}
}

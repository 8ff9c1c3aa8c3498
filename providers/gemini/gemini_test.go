package gemini

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/internal/digest/digesttest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/internal/providerstest"
)

var update = flag.Bool("update", false, "write the expectations of testdata anew")

const model = "gemini-3.5-flash"

func client(t *testing.T, server *providerstest.Server) *genai.Client {
	t.Helper()
	c, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: server.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustBuild(t *testing.T, r providers.Request, o Options) Built {
	t.Helper()
	b, err := Build(r, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func codes(list []providers.Warning) string {
	var out []string
	for _, w := range list {
		out = append(out, string(w.Code))
	}
	return strings.Join(out, " ")
}

// encode is not the wire's form, which only the SDK's client makes.
func encode(b Built) ([]byte, error) {
	return json.Marshal(map[string]any{"contents": b.Contents, "config": b.Config})
}

func TestConformance(t *testing.T) {
	t.Parallel()

	build := func(o func(providers.Request) Options) func(providers.Request) ([]byte, error) {
		return func(r providers.Request) ([]byte, error) {
			b, err := Build(r, o(r))
			if err != nil {
				return nil, err
			}
			return encode(b)
		}
	}
	providerstest.Run(t, build(func(providers.Request) Options { return Options{} }))
}

// TestRequestAndResponse sends requests with the SDK's client, and what comes
// back once more as history.
func TestRequestAndResponse(t *testing.T) {
	t.Parallel()

	answer, err := os.ReadFile("testdata/response.json")
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := NewCache(providerstest.Sample(t, model), 0)
	if err != nil {
		t.Fatal(err)
	}
	cached := Options{Cache: Handle{Name: "cachedContents/one", Key: key}}
	for name, o := range map[string]Options{
		"request.json":        {},
		"request_cached.json": cached,
		"request_behind.json": cached,
	} {
		r := providerstest.Sample(t, model)
		if name == "request_behind.json" {
			r.AfterConversation = []string{"skills_runtime"}
		}
		server := providerstest.Serve(t, answer)
		built := mustBuild(t, r, o)
		if codes(built.Warnings) != "signature_missing" { // of the sample's calls, which were another model's
			t.Errorf("%s: warnings = %v", name, built.Warnings)
		}
		response, err := client(t, server).Models.GenerateContent(t.Context(), built.Model, built.Contents, built.Config)
		if err != nil {
			t.Fatal(err)
		}
		sent := server.Only(t)
		if sent.Path != "/v1beta/models/"+model+":generateContent" {
			t.Errorf("sent to %s", sent.Path)
		}
		providerstest.Golden(t, name, sent.Body, *update)

		wantUsage := phases.Usage{InputTokens: 2350, OutputTokens: 40, CacheReadTokens: 2000}
		if diff := cmp.Diff(Usage(response.UsageMetadata), wantUsage); diff != "" {
			t.Errorf("usage (-got +want):\n%s", diff)
		}
		checkReply(t, r, response, built.Names)
	}
}

func checkReply(t *testing.T, r providers.Request, response *genai.GenerateContentResponse, names providers.Names) {
	t.Helper()
	e, err := Reply(response, names, func() string { return "made-up" })
	if err != nil {
		t.Fatal(err)
	}
	if e.Text != "I search." || len(e.Calls) != 1 || e.Calls[0].ID != "made-up" || e.Calls[0].Tool != "memory.search" || string(e.Calls[0].Arguments) != `{"query":"plan"}` {
		t.Errorf("reply = %+v", e)
	}
	if id := response.Candidates[0].Content.Parts[2].FunctionCall.ID; id != "" {
		t.Errorf("the response was changed: id %q", id)
	}
	r.Turn = append(r.Turn, e, history.Entry{Role: history.RoleTool, Results: []history.Result{{CallID: "made-up", Text: "found"}}})
	body, err := encode(mustBuild(t, r, Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"thoughtSignature":"c2lnbmVk"`, `"functionResponse":{"id":"made-up","name":"memory.search","response":{"output":"found"}}`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("the reply is not sent back: no %s in %s", want, body)
		}
	}
	if strings.Count(string(body), `"made-up"`) != 2 {
		t.Errorf("the call is not there once: %s", body)
	}
}

// TestNewCache makes a cache with the SDK's client.
func TestNewCache(t *testing.T) {
	t.Parallel()

	r := providerstest.Sample(t, model)
	key, config, err := NewCache(r, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server := providerstest.Serve(t, []byte(`{"name": "cachedContents/one"}`))
	if _, err := client(t, server).Caches.Create(t.Context(), r.Model, config); err != nil {
		t.Fatal(err)
	}
	sent := strings.ReplaceAll(string(server.Only(t).Body), key, "KEY")
	providerstest.Golden(t, "cache.json", []byte(sent), *update)
}

// TestCacheKey: the key is that of what the cache holds, and of nothing else.
func TestCacheKey(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		change func(*providers.Request)
		same   bool
	}{
		{"nothing", func(*providers.Request) {}, true},
		{"dynamic part", func(r *providers.Request) { r.Prompt.DynamicText = "## Other\n\ntext" }, true},
		{"history", func(r *providers.Request) { r.History = history.Window{} }, true},
		{"stable part", func(r *providers.Request) { r.Prompt.StableText += "!" }, false},
		{"stable part of the same fingerprint", func(r *providers.Request) {
			lead := fmt.Sprintf("%d:%s%d:", len(r.Model), r.Model, len(r.Prompt.StableText))
			r.Prompt.StableText = digesttest.Collide(lead+r.Prompt.StableText, (len(lead)/8+1)*8)[len(lead):]
		}, false},
		{"model", func(r *providers.Request) { r.Model = "gemini-3-pro" }, false},
		{"tools", func(r *providers.Request) { r.Tools = r.Tools[1:] }, false},
	}
	r := providerstest.Sample(t, model)
	key, _, err := NewCache(r, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := providerstest.Sample(t, model)
			tt.change(&r)
			b := mustBuild(t, r, Options{Cache: Handle{Name: "cachedContents/one", Key: key}})
			if used := b.Config.CachedContent != ""; used != tt.same {
				t.Errorf("cache used: %v, want %v", used, tt.same)
			}
			if stale := strings.Contains(codes(b.Warnings), "cache_stale"); stale == tt.same {
				t.Errorf("warnings = %v", b.Warnings)
			}
			if (b.Config.SystemInstruction == nil) != tt.same || (b.Config.Tools == nil) != tt.same {
				t.Error("the cache and the request both have a system prompt and tools, or neither has")
			}
		})
	}
}

func TestBuildDetails(t *testing.T) {
	t.Parallel()

	r := providers.Request{
		Model: "gemini-of-the-future", CountTokens: func(string) int { return 10 },
		Turn: []history.Entry{
			{Role: history.RoleAssistant, Calls: []history.Call{{ID: "1", Tool: "t", Arguments: json.RawMessage(`[12345678901234567]`)}, {ID: "2", Tool: "t", Arguments: json.RawMessage(`{"n":12345678901234567}`)}}},
			{Role: history.RoleTool, Results: []history.Result{{CallID: "1", Text: "bad", IsError: true}, {CallID: "2"}}},
		},
	}
	b := mustBuild(t, r, Options{})
	body, err := encode(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"arguments":"[12345678901234567]"}`, `{"n":12345678901234567}`, `"name":"t","response":{"error":"bad"}`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if got := codes(b.Warnings); got != "arguments_wrapped below_cache_minimum" || !strings.Contains(b.Warnings[1].Message, "guess") {
		t.Errorf("warnings = %v", b.Warnings)
	}
}

func TestReplyWithoutContent(t *testing.T) {
	t.Parallel()

	if _, err := Reply(&genai.GenerateContentResponse{}, providers.Names{}, nil); err == nil {
		t.Error("no error")
	}
	if got := Usage(nil); got != (phases.Usage{}) {
		t.Errorf("usage of nothing = %+v", got)
	}
}

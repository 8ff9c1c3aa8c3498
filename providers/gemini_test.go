package providers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/internal/digest/digesttest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/gemini"
)

const geminiModel = "gemini-3.5-flash"

// TestNewCache makes a cache with the SDK's client.
func TestNewCache(t *testing.T) {
	t.Parallel()

	r := sample(t, geminiModel)
	key, config, err := gemini.NewCache(r, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	url, sent := serve(t, "/v1beta/cachedContents", []byte(`{"name": "cachedContents/one"}`))
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Caches.Create(t.Context(), r.Model, config); err != nil {
		t.Fatal(err)
	}
	golden(t, "gemini/testdata/cache.json", []byte(strings.ReplaceAll(string(<-sent), key, "KEY")))
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
	r := sample(t, geminiModel)
	key, _, err := gemini.NewCache(r, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := sample(t, geminiModel)
			tt.change(&r)
			b, err := gemini.Build(r, gemini.Options{Cache: gemini.Handle{Name: "cachedContents/one", Key: key}})
			if err != nil {
				t.Fatal(err)
			}
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

func TestGeminiDetails(t *testing.T) {
	t.Parallel()

	r := providers.Request{
		Model: "gemini-of-the-future", CountTokens: func(string) int { return 10 },
		Turn: []history.Entry{
			{Role: history.RoleAssistant, Calls: []history.Call{{ID: "1", Tool: "t", Arguments: json.RawMessage(`[12345678901234567]`)}, {ID: "2", Tool: "t", Arguments: json.RawMessage(`{"n":12345678901234567}`)}}},
			{Role: history.RoleTool, Results: []history.Result{{CallID: "1", Text: "bad", IsError: true}, {CallID: "2"}}},
		},
	}
	b := send(t, onGemini(gemini.Options{}), r)
	for _, want := range []string{`{"arguments":"[12345678901234567]"}`, `{"n":12345678901234567}`, `"name":"t","response":{"error":"bad"}`} {
		if !strings.Contains(string(b.body), want) {
			t.Errorf("no %s in %s", want, b.body)
		}
	}
	if got := codes(b.warnings); got != "arguments_wrapped below_cache_minimum" || !strings.Contains(b.warnings[1].Message, "guess") {
		t.Errorf("warnings = %v", b.warnings)
	}
}

func TestGeminiReplyWithoutContent(t *testing.T) {
	t.Parallel()

	if _, err := gemini.Reply(&genai.GenerateContentResponse{}, providers.Names{}, nil); err == nil {
		t.Error("no error")
	}
	if got := gemini.Usage(nil); got != (phases.Usage{}) {
		t.Errorf("usage of nothing = %+v", got)
	}
}

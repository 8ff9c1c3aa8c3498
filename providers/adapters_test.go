package providers_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	anthropicsdk "github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"
	openaisdk "github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"google.golang.org/genai"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/anthropic"
	"github.com/grapnelhq/grapnel/providers/gemini"
	"github.com/grapnelhq/grapnel/providers/openai"
)

// built is a request of any adapter.
type built struct {
	body     []byte // in JSON; for Gemini not as it is on the wire, which only the SDK's client makes
	warnings []providers.Warning
	changes  []providers.Change
	// ask sends it with the SDK's client, and reads the answer.
	ask func(ctx context.Context, url string) (history.Entry, phases.Usage, error)
}

func builtOf(params any, warnings []providers.Warning, changes []providers.Change, failed error) (built, error) {
	if failed != nil {
		return built{}, failed
	}
	body, err := json.Marshal(params)
	return built{body: body, warnings: warnings, changes: changes}, err
}

func onAnthropic(o anthropic.Options) func(providers.Request) (built, error) {
	return func(r providers.Request) (built, error) {
		b, err := anthropic.Build(r, o)
		out, err := builtOf(b.Params, b.Warnings, b.Changes, err)
		out.ask = func(ctx context.Context, url string) (e history.Entry, u phases.Usage, err error) {
			client := anthropicsdk.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("none"), anthropicoption.WithMaxRetries(0))
			message, err := client.Messages.New(ctx, b.Params)
			if err != nil {
				return e, u, err
			}
			e, err = anthropic.Reply(message, b.Names)
			return e, anthropic.Usage(message.Usage), err
		}
		return out, err
	}
}

func onOpenAI(o openai.Options) func(providers.Request) (built, error) {
	return func(r providers.Request) (built, error) {
		b, err := openai.Build(r, o)
		out, err := builtOf(b.Params, b.Warnings, b.Changes, err)
		out.ask = func(ctx context.Context, url string) (e history.Entry, u phases.Usage, err error) {
			client := openaisdk.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("none"), openaioption.WithMaxRetries(0))
			response, err := client.Responses.New(ctx, b.Params)
			if err != nil {
				return e, u, err
			}
			e, err = openai.Reply(response, b.Names)
			return e, openai.Usage(response.Usage), err
		}
		return out, err
	}
}

func onGemini(o gemini.Options) func(providers.Request) (built, error) {
	return func(r providers.Request) (built, error) {
		b, err := gemini.Build(r, o)
		out, err := builtOf(map[string]any{"contents": b.Contents, "config": b.Config}, b.Warnings, b.Changes, err)
		out.ask = func(ctx context.Context, url string) (e history.Entry, u phases.Usage, err error) {
			client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
			if err != nil {
				return e, u, err
			}
			response, err := client.Models.GenerateContent(ctx, b.Model, b.Contents, b.Config)
			if err != nil {
				return e, u, err
			}
			e, err = gemini.Reply(response, b.Names, func() string { return "made-up" })
			return e, gemini.Usage(response.UsageMetadata), err
		}
		return out, err
	}
}

// adapter is what the tests of all adapters need to know about one.
type adapter struct {
	model, path, warnings string
	build                 func(providers.Request) (built, error)
	// written is what the provider reports as written to its cache, and call the id of the call of its answer.
	written int
	call    string
	// sentBack are pieces of the request that has the answer in its history.
	sentBack []string
}

func adapters() map[string]adapter {
	return map[string]adapter{
		compiler.Anthropic: {
			"claude-opus-5", "/v1/messages", "tool_renamed", onAnthropic(anthropic.Options{}), 300, "toolu_1",
			[]string{`"signature":"c2lnbmVk"`, `"thinking":"The file is plan.go."`, `"name":"memory_search"`, `"tool_use_id":"toolu_1"`},
		},
		compiler.OpenAI: {
			"gpt-5.6-sol", "/v1/responses", "tool_renamed", onOpenAI(openai.Options{}), 300, "call_1",
			[]string{`"encrypted_content":"c2VhbGVk"`, `"name":"memory_search"`, `"I search."`},
		},
		compiler.Gemini: { // the sample's calls were another model's
			geminiModel, "/v1beta/models/" + geminiModel + ":generateContent", "signature_missing", onGemini(gemini.Options{}), 0, "made-up",
			[]string{`"thoughtSignature":"c2lnbmVk"`, `"functionResponse":{"id":"made-up","name":"memory.search","response":{"output":"found"}}`},
		},
	}
}

// TestRequestAndResponse sends requests with the SDKs' clients, and what comes back once more as history.
func TestRequestAndResponse(t *testing.T) {
	t.Parallel()

	key, _, err := gemini.NewCache(sample(t, geminiModel), 0)
	if err != nil {
		t.Fatal(err)
	}
	cached := onGemini(gemini.Options{Cache: gemini.Handle{Name: "cachedContents/one", Key: key}})
	conversation := anthropic.Options{CacheConversation: true}
	for _, tt := range []struct {
		provider, golden string
		build            func(providers.Request) (built, error)
		behind           bool
	}{
		{compiler.Anthropic, "request", onAnthropic(anthropic.Options{}), false},
		{compiler.Anthropic, "request_long", onAnthropic(anthropic.Options{LongThrough: manifest.AfterStable, CacheConversation: true}), false},
		{compiler.Anthropic, "request_behind", onAnthropic(conversation), true},
		{compiler.OpenAI, "request", onOpenAI(openai.Options{}), false},
		{compiler.OpenAI, "request_breakpoints", onOpenAI(openai.Options{Breakpoints: true, Lifetime: "12h"}), false},
		{compiler.OpenAI, "request_behind", onOpenAI(openai.Options{}), true},
		{compiler.Gemini, "request", onGemini(gemini.Options{}), false},
		{compiler.Gemini, "request_cached", cached, false},
		{compiler.Gemini, "request_behind", cached, true},
	} {
		t.Run(tt.provider+"/"+tt.golden, func(t *testing.T) {
			t.Parallel()

			a := adapters()[tt.provider]
			r := sample(t, a.model)
			if tt.behind {
				r.AfterConversation = []string{"skills_runtime"}
			}
			b, err := tt.build(r)
			if err != nil || codes(b.warnings) != a.warnings {
				t.Fatalf("warnings %s, %v", codes(b.warnings), err)
			}
			answer, err := os.ReadFile(tt.provider + "/testdata/response.json")
			if err != nil {
				t.Fatal(err)
			}
			url, sent := serve(t, a.path, answer)
			reply, usage, err := b.ask(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, tt.provider+"/testdata/"+tt.golden+".json", <-sent)
			want := phases.Usage{InputTokens: 2350, OutputTokens: 40, CacheReadTokens: 2000, CacheWriteTokens: a.written}
			if diff := cmp.Diff(usage, want); diff != "" {
				t.Errorf("usage (-got +want):\n%s", diff)
			}
			a.wantReply(t, r, reply)
		})
	}
}

// serve starts a server that gives the answer to one request, and returns the body of that.
func serve(t *testing.T, path string, answer []byte) (url string, sent <-chan []byte) {
	t.Helper()
	bodies := make(chan []byte, 1)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != path {
			t.Errorf("sent to %s, %v", r.URL.Path, err)
		}
		bodies <- body
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer) // a client that is gone is the test's failure
	}))
	t.Cleanup(h.Close)
	return h.URL, bodies
}

// wantReply checks the entry of testdata/response.json, and that it is sent back as the provider wants it.
func (a adapter) wantReply(t *testing.T, r providers.Request, e history.Entry) {
	t.Helper()
	if e.Text != "I search." || len(e.Calls) != 1 || e.Calls[0].ID != a.call || e.Calls[0].Tool != "memory.search" || !strings.Contains(string(e.Calls[0].Arguments), "plan") {
		t.Errorf("reply = %+v", e)
	}
	r.Turn = append(r.Turn, e, history.Entry{Role: history.RoleTool, Results: []history.Result{{CallID: a.call, Text: "found"}}})
	b, err := a.build(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range a.sentBack {
		if !strings.Contains(string(b.body), want) {
			t.Errorf("the reply is not sent back: no %s in %s", want, b.body)
		}
	}
	if strings.Count(string(b.body), `"`+a.call+`"`) != 2 {
		t.Errorf("the call is not there once: %s", b.body)
	}
}

func codes(list []providers.Warning) string {
	var out []string
	for _, w := range list {
		out = append(out, w.Code)
	}
	return strings.Join(out, " ")
}

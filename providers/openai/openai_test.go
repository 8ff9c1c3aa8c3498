package openai

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/internal/providerstest"
)

var update = flag.Bool("update", false, "write the expectations of testdata anew")

func mustBuild(t *testing.T, r providers.Request, o Options) Built {
	t.Helper()
	b, err := Build(r, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func encode(t *testing.T, b Built) string {
	t.Helper()
	body, err := json.Marshal(b.Params)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func codes(list []providers.Warning) string {
	var out []string
	for _, w := range list {
		out = append(out, string(w.Code))
	}
	return strings.Join(out, " ")
}

func TestConformance(t *testing.T) {
	t.Parallel()

	providerstest.Run(t, func(r providers.Request) ([]byte, error) {
		b, err := Build(r, Options{})
		if err != nil {
			return nil, err
		}
		return json.Marshal(b.Params)
	})
}

// TestRequestAndResponse sends requests with the SDK's client, and what comes
// back once more as history.
func TestRequestAndResponse(t *testing.T) {
	t.Parallel()

	answer, err := os.ReadFile("testdata/response.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"request.json":             {},
		"request_breakpoints.json": {Breakpoints: true, Lifetime: "12h"},
		"request_behind.json":      {},
	} {
		r := providerstest.Sample(t, "gpt-5.6-sol")
		if name == "request_behind.json" {
			r.AfterConversation = []string{"skills_runtime"}
		}
		server := providerstest.Serve(t, answer)
		built := mustBuild(t, r, o)
		if got := codes(built.Warnings); got != "tool_renamed" {
			t.Errorf("%s: warnings = %s, want tool_renamed", name, got)
		}
		c := sdk.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
		response, err := c.Responses.New(t.Context(), built.Params)
		if err != nil {
			t.Fatal(err)
		}
		sent := server.Only(t)
		if sent.Path != "/v1/responses" {
			t.Errorf("sent to %s", sent.Path)
		}
		providerstest.Golden(t, name, sent.Body, *update)

		wantUsage := phases.Usage{InputTokens: 2350, OutputTokens: 40, CacheReadTokens: 2000, CacheWriteTokens: 300}
		if diff := cmp.Diff(Usage(response.Usage), wantUsage); diff != "" {
			t.Errorf("usage (-got +want):\n%s", diff)
		}
		checkReply(t, r, response, built.Names)
	}
}

func checkReply(t *testing.T, r providers.Request, response *responses.Response, names providers.Names) {
	t.Helper()
	e, err := Reply(response, names)
	if err != nil {
		t.Fatal(err)
	}
	if e.Text != "I search." || len(e.Calls) != 1 || e.Calls[0].Tool != "memory.search" || string(e.Calls[0].Arguments) != `{"query": "plan"}` {
		t.Errorf("reply = %+v", e)
	}
	r.Turn = append(r.Turn, e, history.Entry{Role: history.RoleTool, Results: []history.Result{{CallID: "call_1", Text: "found"}}})
	body := encode(t, mustBuild(t, r, Options{}))
	for _, want := range []string{`"encrypted_content":"c2VhbGVk"`, `"name":"memory_search"`, `"I search."`} {
		if !strings.Contains(body, want) {
			t.Errorf("the reply is not sent back: no %s in %s", want, body)
		}
	}
	if strings.Count(body, `"call_1"`) != 2 {
		t.Errorf("the call is not there once: %s", body)
	}
}

// TestParams looks at the request in the SDK's own types.
func TestParams(t *testing.T) {
	t.Parallel()

	params := mustBuild(t, providerstest.Sample(t, "gpt-5.6-sol"), Options{Breakpoints: true}).Params
	system := params.Input.OfInputItemList[0].OfMessage
	if system == nil || system.Role != "system" || len(system.Content.OfInputItemContentList) != 4 {
		t.Errorf("first item = %+v, want the system prompt in 4 pieces", system)
	}
	if !strings.HasPrefix(params.PromptCacheKey.Value, "xxh64:") {
		t.Errorf("prompt_cache_key = %q", params.PromptCacheKey.Value)
	}
	if tool := params.Tools[2].OfFunction; tool == nil || tool.Name != "read_file" || tool.Strict.Value {
		t.Errorf("last tool = %+v", tool)
	}
}

func TestBuildOptions(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, model string
		o           Options
		marks       int
		warnings    string
	}{
		{"none wanted", "gpt-5.6-sol", Options{}, 0, "tool_renamed"},
		{"wanted", "gpt-6-sol", Options{Breakpoints: true}, 2, "tool_renamed"},
		{"not taken", "gpt-5", Options{Breakpoints: true}, 0, "tool_renamed breakpoint_omitted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := mustBuild(t, providerstest.Sample(t, tt.model), tt.o)
			if n := strings.Count(encode(t, b), `"prompt_cache_breakpoint"`); n != tt.marks {
				t.Errorf("%d breakpoints, want %d", n, tt.marks)
			}
			if got := codes(b.Warnings); got != tt.warnings {
				t.Errorf("warnings = %s, want %s", got, tt.warnings)
			}
		})
	}
	if _, err := Build(providers.Request{Model: "gpt-5"}, Options{Breakpoints: true, Lifetime: "12h"}); err == nil {
		t.Error("a lifetime that the model does not have gave no error")
	}
}

func TestBuildDetails(t *testing.T) {
	t.Parallel()

	r := providers.Request{
		Model: "gpt-5", CountTokens: func(string) int { return 10 },
		Turn: []history.Entry{
			{Role: history.RoleAssistant, Calls: []history.Call{{ID: "1", Tool: "t", Arguments: json.RawMessage(`"oops`)}}},
			{Role: history.RoleTool, Results: []history.Result{{CallID: "1", Text: ""}}},
			{Role: history.RoleAssistant, Text: "plain", Native: &history.Native{Provider: "gemini", Data: json.RawMessage(`{}`)}},
		},
	}
	b := mustBuild(t, r, Options{})
	body := encode(t, b)
	for _, want := range []string{`"arguments":"\"oops"`, `"output":""`, `"plain"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if got := codes(b.Warnings); got != "below_cache_minimum" {
		t.Errorf("warnings = %s", got)
	}
}

func TestReplyOddities(t *testing.T) {
	t.Parallel()

	var r responses.Response
	if err := json.Unmarshal([]byte(`{"output": [
		{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
		{"type": "function_call", "call_id": "c", "name": "made_up", "arguments": "{broken"}]}`), &r); err != nil {
		t.Fatal(err)
	}
	e, err := Reply(&r, providers.Names{})
	if err != nil {
		t.Fatal(err)
	}
	want := history.Entry{Role: history.RoleAssistant, Text: "No.", Calls: []history.Call{{ID: "c", Tool: "made_up", Arguments: json.RawMessage(`"{broken"`)}}}
	if diff := cmp.Diff(e, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

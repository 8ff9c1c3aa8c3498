package providers_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/responses"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/openai"
)

func TestOpenAIOptions(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, model string
		o           openai.Options
		marks       int
		warnings    string
	}{
		{"none wanted", "gpt-5.6-sol", openai.Options{}, 0, "tool_renamed"},
		{"wanted", "gpt-6-sol", openai.Options{Breakpoints: true}, 2, "tool_renamed"},
		{"not taken", "gpt-5", openai.Options{Breakpoints: true}, 0, "tool_renamed breakpoint_omitted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := send(t, onOpenAI(tt.o), sample(t, tt.model))
			if n := strings.Count(string(b.body), `"prompt_cache_breakpoint"`); n != tt.marks {
				t.Errorf("%d breakpoints, want %d", n, tt.marks)
			}
			if got := codes(b.warnings); got != tt.warnings {
				t.Errorf("warnings = %s, want %s", got, tt.warnings)
			}
		})
	}
	if _, err := openai.Build(providers.Request{Model: "gpt-5"}, openai.Options{Breakpoints: true, Lifetime: "12h"}); err == nil {
		t.Error("a lifetime that the model does not have gave no error")
	}
}

func TestOpenAIDetails(t *testing.T) {
	t.Parallel()

	r := providers.Request{
		Model: "gpt-5", CountTokens: func(string) int { return 10 },
		Turn: []history.Entry{
			{Role: history.RoleAssistant, Calls: []history.Call{{ID: "1", Tool: "t", Arguments: json.RawMessage(`"oops`)}}},
			{Role: history.RoleTool, Results: []history.Result{{CallID: "1", Text: ""}}},
			{Role: history.RoleAssistant, Text: "plain", Native: &history.Native{Provider: "gemini", Data: json.RawMessage(`{}`)}},
		},
	}
	b := send(t, onOpenAI(openai.Options{}), r)
	for _, want := range []string{`"arguments":"\"oops"`, `"output":""`, `"plain"`} {
		if !strings.Contains(string(b.body), want) {
			t.Errorf("no %s in %s", want, b.body)
		}
	}
	if got := codes(b.warnings); got != "below_cache_minimum" {
		t.Errorf("warnings = %s", got)
	}
}

func TestOpenAIReplyOddities(t *testing.T) {
	t.Parallel()

	var r responses.Response
	if err := json.Unmarshal([]byte(`{"output": [
		{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
		{"type": "function_call", "call_id": "c", "name": "made_up", "arguments": "{broken"}]}`), &r); err != nil {
		t.Fatal(err)
	}
	e, err := openai.Reply(&r, providers.Names{})
	if err != nil {
		t.Fatal(err)
	}
	want := history.Entry{Role: history.RoleAssistant, Text: "No.", Calls: []history.Call{{ID: "c", Tool: "made_up", Arguments: json.RawMessage(`"{broken"`)}}}
	if diff := cmp.Diff(e, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// modelHost answers every call alike and notes what it was asked.
type modelHost struct {
	answer string
	err    error
	asked  []string
}

func (h *modelHost) Call(_ context.Context, service, method string, params json.RawMessage) (json.RawMessage, error) {
	h.asked = append(h.asked, service+" "+method+" "+string(params))
	return json.RawMessage(h.answer), h.err
}

func (*modelHost) Invalidate(context.Context, phases.Invalidation) error { return nil }

func TestComplete(t *testing.T) {
	t.Parallel()
	full := phases.CompletionRequest{
		System: "s", Input: "i", Schema: json.RawMessage(`{"type":"object"}`), SchemaName: "n", MaxOutputTokens: 9, Purpose: "p",
	}
	tests := []struct {
		name  string
		rq    phases.CompletionRequest
		host  *modelHost
		asked string
		want  *phases.CompletionResponse
		code  phases.Cause
	}{
		{
			"the least",
			phases.CompletionRequest{Input: "i"},
			&modelHost{answer: `{"text":"t","model":"m","stopped":"length"}`},
			`model complete {"input":"i"}`, &phases.CompletionResponse{Text: "t", Model: "m", Stopped: phases.StoppedLength}, "",
		},
		{
			"everything", full, &modelHost{answer: `{"text":"t","model":"m","stopped":"end","usage":{"input_tokens":3,"output_tokens":4},"later":1}`},
			`model complete {"system":"s","input":"i","schema":{"type":"object"},"schema_name":"n","max_output_tokens":9,"purpose":"p"}`,
			&phases.CompletionResponse{Text: "t", Model: "m", Stopped: phases.StoppedEnd, Usage: phases.Usage{InputTokens: 3, OutputTokens: 4}}, "",
		},
		{
			"refused",
			phases.CompletionRequest{Input: "i"},
			&modelHost{err: phases.Errorf(phases.CauseBudgetExhausted, "no more")},
			`model complete {"input":"i"}`, nil, phases.CauseBudgetExhausted,
		},
		{"nonsense of the host", phases.CompletionRequest{Input: "i"}, &modelHost{answer: `"x"`}, `model complete {"input":"i"}`, nil, phases.CauseInvalidReply},
		{"a schema that is none", phases.CompletionRequest{Input: "i", Schema: json.RawMessage(`{`)}, &modelHost{}, "", nil, phases.CauseInvalidReply},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := sdk.Complete(t.Context(), tt.host, tt.rq)
			if phases.CodeOf(err) != tt.code {
				t.Errorf("error %v, want the code %q", err, tt.code)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
			if asked := strings.Join(tt.host.asked, "\n"); asked != tt.asked {
				t.Errorf("asked %s, want %s", asked, tt.asked)
			}
		})
	}
	if _, err := sdk.Complete(t.Context(), nil, full); phases.CodeOf(err) != phases.CauseUnavailable {
		t.Errorf("without a host: %v", err)
	}
}

// A plugin asks the host's model, and does without where that gives nothing.
func ExampleComplete() {
	urgent := func(ctx context.Context, host phases.Host, text string) bool {
		res, err := sdk.Complete(ctx, host, phases.CompletionRequest{
			System: "Is the message urgent?", Input: text, MaxOutputTokens: 20, Purpose: "classify",
			Schema: json.RawMessage(`{"type": "object", "properties": {"urgent": {"type": "boolean"}}, "required": ["urgent"]}`),
		})
		var answer struct {
			Urgent *bool `json:"urgent"`
		}
		if err != nil || json.Unmarshal([]byte(res.Text), &answer) != nil || answer.Urgent == nil {
			return strings.Contains(text, "!")
		}
		return *answer.Urgent
	}
	ctx := context.Background()
	model := &modelHost{answer: `{"text": "{\"urgent\": true}", "model": "small", "stopped": "end"}`}
	fmt.Println(urgent(ctx, model, "The house burns."))
	fmt.Println(urgent(ctx, &modelHost{err: phases.Errorf(phases.CauseUnavailable, "no model here")}, "The house burns."))
	// Output:
	// true
	// false
}

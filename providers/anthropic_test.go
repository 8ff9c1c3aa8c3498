package providers_test

import (
	"encoding/json"
	"strings"
	"testing"

	anthropicsdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/anthropic"
)

// TestAnthropicBreakpoints counts the marks and looks at their order.
func TestAnthropicBreakpoints(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		o        anthropic.Options
		plan     func([]manifest.Breakpoint) []manifest.Breakpoint
		want     string
		warnings string
	}{
		{name: "all short", want: "5m 5m 5m"},
		{name: "tools long", o: anthropic.Options{LongThrough: manifest.AfterTools}, want: "1h 5m 5m"},
		{name: "stable long", o: anthropic.Options{LongThrough: manifest.AfterStable}, want: "1h 1h 5m"},
		{name: "dynamic long", o: anthropic.Options{LongThrough: manifest.AfterDynamic}, want: "1h 1h 1h"},
		{name: "with the conversation", o: anthropic.Options{LongThrough: manifest.AfterDynamic, CacheConversation: true}, want: "1h 1h 1h 5m"},
		{
			name: "no plan", plan: func([]manifest.Breakpoint) []manifest.Breakpoint { return nil },
		},
		{
			name: "a plan with too many", o: anthropic.Options{CacheConversation: true},
			plan: func(b []manifest.Breakpoint) []manifest.Breakpoint {
				return append(b, manifest.Breakpoint{After: manifest.AfterDynamic, SectionID: "extra_system"})
			},
			want: "5m 5m 5m 5m", warnings: " breakpoint_omitted",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := sample(t, "claude-opus-5")
			if tt.plan != nil {
				r.Prompt.CachePlan.Breakpoints = tt.plan(r.Prompt.CachePlan.Breakpoints)
			}
			b, err := anthropic.Build(r, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Join(marks(b.Params), " "), tt.want); diff != "" {
				t.Errorf("marks (-got +want):\n%s", diff)
			}
			if w := codes(b.Warnings); w != "tool_renamed"+tt.warnings {
				t.Errorf("warnings = %s", w)
			}
		})
	}
}

// marks are the lifetimes of breakpoints in the order of the prefix.
func marks(p anthropicsdk.MessageNewParams) []string {
	var out []string
	add := func(c *anthropicsdk.CacheControlEphemeralParam) {
		switch {
		case c == nil || c.Type == "":
		case c.TTL == "":
			out = append(out, "5m")
		default:
			out = append(out, string(c.TTL))
		}
	}
	for _, tool := range p.Tools {
		add(tool.GetCacheControl())
	}
	for i := range p.System {
		add(&p.System[i].CacheControl)
	}
	for _, m := range p.Messages {
		for _, c := range m.Content {
			add(c.GetCacheControl())
		}
	}
	return out
}

func TestAnthropicWarnings(t *testing.T) {
	t.Parallel()

	words := func(s string) int { return len(strings.Fields(s)) }
	broken := []history.Entry{
		{Role: history.RoleAssistant, Calls: []history.Call{{ID: "1", Tool: "t", Arguments: json.RawMessage(`"oops"`)}}},
		{Role: history.RoleTool, Results: []history.Result{{CallID: "1"}}},
	}
	native := []history.Entry{{Role: history.RoleAssistant, Text: "x", Native: &history.Native{Provider: "anthropic", Data: json.RawMessage(`{}`)}}}
	tests := []struct {
		name   string
		change func(*providers.Request)
		o      anthropic.Options
		want   string
	}{
		{"too short", func(r *providers.Request) { r.CountTokens = words }, anthropic.Options{}, "tool_renamed below_cache_minimum below_cache_minimum below_cache_minimum"},
		{"arguments", func(r *providers.Request) { r.Turn = broken }, anthropic.Options{}, "tool_renamed arguments_wrapped"},
		{"native form", func(r *providers.Request) { r.Turn = native }, anthropic.Options{}, "tool_renamed native_ignored"},
		{"no conversation", func(r *providers.Request) {
			r.Turn, r.History, r.Prompt.UserMessages = nil, history.Window{}, nil
		}, anthropic.Options{CacheConversation: true}, "tool_renamed breakpoint_omitted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := sample(t, "claude-opus-5")
			tt.change(&r)
			if got := codes(send(t, onAnthropic(tt.o), r).warnings); got != tt.want {
				t.Errorf("warnings = %s, want %s", got, tt.want)
			}
		})
	}
	if _, err := anthropic.Build(providers.Request{}, anthropic.Options{LongThrough: "everything"}); err == nil {
		t.Error("an unknown place gave no error")
	}
}

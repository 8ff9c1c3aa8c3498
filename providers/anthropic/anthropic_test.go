package anthropic

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/internal/providerstest"
)

var update = flag.Bool("update", false, "write the expectations of testdata anew")

func client(server *providerstest.Server) sdk.Client {
	return sdk.NewClient(option.WithBaseURL(server.URL), option.WithAPIKey("none"), option.WithMaxRetries(0))
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

func TestConformance(t *testing.T) {
	t.Parallel()

	providerstest.Run(t, func(r providers.Request) ([]byte, error) {
		b, err := Build(r, Options{CacheConversation: len(r.Turn) > 0})
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
		"request.json":        {},
		"request_long.json":   {LongThrough: manifest.AfterStable, CacheConversation: true},
		"request_behind.json": {CacheConversation: true},
	} {
		r := providerstest.Sample(t, "claude-opus-5")
		if name == "request_behind.json" {
			r.AfterConversation = []string{"skills_runtime"}
		}
		server := providerstest.Serve(t, answer)
		built := mustBuild(t, r, o)
		if got := codes(built.Warnings); got != "tool_renamed" {
			t.Errorf("%s: warnings = %s, want tool_renamed", name, got)
		}
		c := client(server)
		message, err := c.Messages.New(t.Context(), built.Params)
		if err != nil {
			t.Fatal(err)
		}
		sent := server.Only(t)
		if sent.Path != "/v1/messages" {
			t.Errorf("sent to %s", sent.Path)
		}
		providerstest.Golden(t, name, sent.Body, *update)

		wantUsage := phases.Usage{InputTokens: 2350, OutputTokens: 40, CacheReadTokens: 2000, CacheWriteTokens: 300}
		if diff := cmp.Diff(Usage(message.Usage), wantUsage); diff != "" {
			t.Errorf("usage (-got +want):\n%s", diff)
		}
		checkReply(t, r, message, built.Names)
	}
}

func checkReply(t *testing.T, r providers.Request, message *sdk.Message, names providers.Names) {
	t.Helper()
	e, err := Reply(message, names)
	if err != nil {
		t.Fatal(err)
	}
	if e.Text != "I search." || len(e.Calls) != 1 || e.Calls[0].Tool != "memory.search" || string(e.Calls[0].Arguments) != `{"query": "plan"}` {
		t.Errorf("reply = %+v", e)
	}
	r.Turn = append(r.Turn, e, history.Entry{Role: history.RoleTool, Results: []history.Result{{CallID: "toolu_1", Text: "found"}}})
	body, err := json.Marshal(mustBuild(t, r, Options{CacheConversation: true}).Params)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"signature":"c2lnbmVk"`, `"thinking":"The file is plan.go."`, `"name":"memory_search"`, `"tool_use_id":"toolu_1"`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("the reply is not sent back: no %s in %s", want, body)
		}
	}
	if strings.Count(string(body), `"toolu_1"`) != 2 {
		t.Errorf("the call is there twice: %s", body)
	}
}

// TestParamsAreTheSDKs reads what is sent with the SDK's own types.
func TestParamsAreTheSDKs(t *testing.T) {
	t.Parallel()

	body, err := json.Marshal(mustBuild(t, providerstest.Sample(t, "claude-opus-5"), Options{}).Params)
	if err != nil {
		t.Fatal(err)
	}
	var params sdk.MessageNewParams
	if err := json.Unmarshal(body, &params); err != nil {
		t.Fatal(err)
	}
	last := params.Tools[len(params.Tools)-1].OfTool
	if last == nil || last.Name != "read_file" || last.CacheControl.Type != "ephemeral" || last.InputSchema.Required[0] != "path" {
		t.Errorf("last tool = %+v", last)
	}
	again, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, again), decode(t, body)); diff != "" {
		t.Errorf("the SDK loses something (-again +sent):\n%s", diff)
	}
}

func decode(t *testing.T, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestBreakpoints counts the marks and looks at their order.
func TestBreakpoints(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		o        Options
		plan     func([]manifest.Breakpoint) []manifest.Breakpoint
		want     string
		warnings string
	}{
		{name: "all short", want: "5m 5m 5m"},
		{name: "tools long", o: Options{LongThrough: manifest.AfterTools}, want: "1h 5m 5m"},
		{name: "stable long", o: Options{LongThrough: manifest.AfterStable}, want: "1h 1h 5m"},
		{name: "dynamic long", o: Options{LongThrough: manifest.AfterDynamic}, want: "1h 1h 1h"},
		{name: "with the conversation", o: Options{LongThrough: manifest.AfterDynamic, CacheConversation: true}, want: "1h 1h 1h 5m"},
		{
			name: "no plan", plan: func([]manifest.Breakpoint) []manifest.Breakpoint { return nil },
		},
		{
			name: "a plan with too many", o: Options{CacheConversation: true},
			plan: func(b []manifest.Breakpoint) []manifest.Breakpoint {
				return append(b, manifest.Breakpoint{After: manifest.AfterDynamic, SectionID: "extra_system"})
			},
			want: "5m 5m 5m 5m", warnings: " breakpoint_omitted",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := providerstest.Sample(t, "claude-opus-5")
			if tt.plan != nil {
				r.Prompt.CachePlan.Breakpoints = tt.plan(r.Prompt.CachePlan.Breakpoints)
			}
			b := mustBuild(t, r, tt.o)
			var got []string
			got = append(got, marks(b.Params)...)
			if diff := cmp.Diff(strings.Join(got, " "), tt.want); diff != "" {
				t.Errorf("marks (-got +want):\n%s", diff)
			}
			if w := codes(b.Warnings); w != "tool_renamed"+tt.warnings {
				t.Errorf("warnings = %s", w)
			}
		})
	}
}

// marks are the lifetimes of breakpoints in the order of the prefix.
func marks(p sdk.MessageNewParams) []string {
	var out []string
	add := func(c *sdk.CacheControlEphemeralParam) {
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

func TestBuildWarnings(t *testing.T) {
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
		o      Options
		want   string
	}{
		{"too short", func(r *providers.Request) { r.CountTokens = words }, Options{}, "tool_renamed below_cache_minimum below_cache_minimum below_cache_minimum"},
		{"arguments", func(r *providers.Request) { r.Turn = broken }, Options{}, "tool_renamed arguments_wrapped"},
		{"native form", func(r *providers.Request) { r.Turn = native }, Options{}, "tool_renamed native_ignored"},
		{"no conversation", func(r *providers.Request) {
			r.Turn, r.History, r.Prompt.UserMessages = nil, history.Window{}, nil
		}, Options{CacheConversation: true}, "tool_renamed breakpoint_omitted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := providerstest.Sample(t, "claude-opus-5")
			tt.change(&r)
			if got := codes(mustBuild(t, r, tt.o).Warnings); got != tt.want {
				t.Errorf("warnings = %s, want %s", got, tt.want)
			}
		})
	}
	if _, err := Build(providers.Request{}, Options{LongThrough: "everything"}); err == nil {
		t.Error("an unknown place gave no error")
	}
}

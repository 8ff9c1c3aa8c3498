package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// eraser is the only plugin: it replaces every result, and denies calls whose arguments have a word.
func eraser() *sdk.Plugin {
	return &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{
		{
			Name: "results", Role: phases.RoleTransform, Kinds: []phases.Kind{phases.KindRewrite}, Needs: []string{"result"},
			ToolPostCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.Rewrite{Value: json.RawMessage(`"[gone]"`)})
			},
		},
		{
			Name: "calls", Role: phases.RoleValidate, Kinds: []phases.Kind{phases.KindDecision}, Needs: []string{"arguments"},
			ToolPreCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
				if strings.Contains(string(in.Arguments), "secret") {
					return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no secrets"})
				}
				return nil, nil
			},
		},
	}}
}

// TestPayloadsAreRepaired: a text that no JSON of Grapnel may hold keeps no plugin from judging a call and replacing its
// result, wherever it stands; and what was judged is what runs.
func TestPayloadsAreRepaired(t *testing.T) {
	t.Parallel()

	log, tree := logStore(t), storetest.Tree(t, time.Now)
	s := serve(t, Options{Tree: tree, Engine: engineWith(t, tree, log, time.Now, eraser()), Log: log})
	p := s.post(t, "")
	deep := strings.Repeat(`[`, 200) + strings.Repeat(`]`, 200)
	for host, tt := range map[string]struct{ pre, post, response string }{
		"claude-code": {"PreToolUse", "PostToolUse", `"tool_response":{"stdout":"secret %s","stderr":""}`},
		"codex":       {"PreToolUse", "PostToolUse", `"tool_response":"secret %s"`},
		"gemini":      {"BeforeTool", "AfterTool", `"tool_response":{"llmContent":"secret %s"}`},
		"copilot":     {"PreToolUse", "PostToolUse", `"tool_result":{"text_result_for_llm":"secret %s"}`},
		"vscode":      {"PreToolUse", "PostToolUse", `"tool_response":"secret %s"`},
		"cursor":      {"preToolUse", "postToolUse", `"tool_output":"secret %s"`},
		"opencode":    {"PreToolUse", "PostToolUse", `"tool_response":"secret %s"`},
		"amp":         {"PreToolUse", "PostToolUse", `"tool_response":"secret %s"`},
	} {
		send := func(event, tool, fields string) string {
			session := host
			if strings.Contains(fields, `"s\u0000"`) {
				session += `\u0000`
			}
			status, got := p.hook(t, host, fmt.Sprintf(`{"session_id":"%s","hook_event_name":%q,"tool_name":"%s","tool_use_id":"c",%s}`, session, event, tool, fields))
			if status != http.StatusOK {
				t.Errorf("%s %s, %q: status %d: %s", host, event, fields, status, got)
			}
			return got
		}
		texts := []string{`\u0000`, `\ud800`, `\udc00x`, "\xff", "\xed\xa0\x80", "\ufffd", ""}
		if host != "claude-code" && !storetest.Long() {
			texts = texts[:1]
		}
		for _, bad := range texts {
			if got := send(tt.post, "Bash", `"tool_input":{"command":"cat a.out"},`+fmt.Sprintf(tt.response, bad)); !strings.Contains(got, "[gone]") || strings.Contains(got, "secret") {
				t.Errorf("%s, %q: the result stays: %s", host, bad, got)
			}
			if got := send(tt.pre, "Bash", `"tool_input":{"command":"cat secret `+bad+`"}`); !strings.Contains(got, "no secrets") {
				t.Errorf("%s, %q: the call is not denied: %s", host, bad, got)
			}
			if got := send(tt.pre, "Bash", `"tool_input":{"command":"cat a `+bad+`"}`); strings.Contains(got, "cat a \ufffd") != (bad != "" && bad != "\ufffd") {
				t.Errorf("%s, %q: what runs is not what was judged: %s", host, bad, got)
			}
			send(tt.pre, "Bash"+bad, `"tool_input":{"command":"ls"}`)
			if got := send(tt.post, "Bash"+bad, `"tool_input":{"command":"ls","x`+bad+`":["`+bad+`"]},"s`+bad+`":1,`+fmt.Sprintf(tt.response, "")); !strings.Contains(got, "[gone]") {
				t.Errorf("%s, %q: the result of a call with it stays: %s", host, bad, got)
			}
		}
		if got := send(tt.post, "Bash", `"tool_input":{"command":"ls"},"more":`+deep+`,`+fmt.Sprintf(tt.response, "")); !strings.Contains(got, "[gone]") {
			t.Errorf("%s: the result of a deep payload stays: %s", host, got)
		}
		send(tt.post, "Bash", `"s":"s\u0000","tool_input":{},`+fmt.Sprintf(tt.response, ""))
	}
	if status, got := p.hook(t, "codex", "{\"session_id\":\"s\",\n\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"x\",\"tool_input\":{},\n\"tool_input\":{}}"); status == http.StatusOK || !strings.Contains(got, `line 3: the name "tool_input" is there twice, first in line 2`) {
		t.Errorf("a name twice: %d: %s", status, got)
	}
	p.hook(t, "claude-code", `{"session_id":"claude-code","hook_event_name":"SessionEnd","reason":"other"}`)
	counted := 0
	for _, m := range records(t, log, "claude-code") {
		for _, d := range m.Diagnostics {
			if d.Code == "text_replaced" && strings.HasSuffix(d.Message, "in the payload of PostToolUse: 1 times") {
				counted++
			}
		}
	}
	if counted == 0 {
		t.Error("no diagnostic of a record counts them")
	}
}

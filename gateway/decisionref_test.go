package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store"
)

// joined finds the record that an agent's answer names. The answer's reason must end with it, and the record must be that of
// a prompt, stored under the number that the answer has.
func joined(t *testing.T, log *store.Store, answer string) *manifest.Manifest {
	t.Helper()
	found := decisionRef.FindStringSubmatch(answer)
	if found == nil || !strings.Contains(answer, found[0]+`"`) {
		t.Fatalf("no reason ends with a decision_ref: %s", answer)
	}
	return recordOf(t, log, &phases.DecisionRef{ManifestID: found[1], Seq: must(strconv.ParseUint(found[2], 10, 64))(t)})
}

func recordOf(t *testing.T, log *store.Store, ref *phases.DecisionRef) *manifest.Manifest {
	t.Helper()
	if ref == nil {
		t.Fatal("there is no decision_ref")
	}
	m := must(log.Get(t.Context(), ref.ManifestID))(t)
	if m.Seq != ref.Seq || m.Kind != manifest.KindPrompt || m.Blocked {
		t.Fatalf("%s names the record %d, kind %q, blocked %v", ref, m.Seq, m.Kind, m.Blocked)
	}
	return m
}

// doorman refuses prompts that ask for it.
func doorman() *sdk.Plugin {
	return &sdk.Plugin{Name: "doorman", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "door", Kinds: []phases.Kind{phases.KindDecision},
		PrePolicy: func(_ context.Context, _ *sdk.Call, in *phases.PrePolicyInput) ([]phases.Contribution, error) {
			if in.UserText.Value == "deny me" {
				return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "as you like"})
			}
			return nil, nil
		},
	}}}
}

// TestDecisionRefOfHooks: from the text of each refusal that an agent gets, its record leads to what the model had been told:
// by the prompt of the turn, for a refused prompt by the one before, and after a restart of the gateway by the last one kept.
func TestDecisionRefOfHooks(t *testing.T) {
	t.Parallel()

	for _, host := range []string{"claude-code", "codex", "opencode"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()

			log := logStore(t)
			start := func() func(event string) string {
				tree := storetest.Tree(t, time.Now)
				p := serve(t, Options{Tree: tree, Engine: looptest.Host(t, log, doorman(), (&coach{text: "Be kind."}).plugin()), Log: log}).post(t, "")
				return func(event string) string {
					t.Helper()
					_, got := p.hook(t, host, `{"session_id":"s",`+event+`}`)
					return got
				}
			}
			const prompt, rm = `"hook_event_name":"UserPromptSubmit","prompt":"%s","turn_id":"%[2]d","prompt_id":"%[2]d"`,
				`"hook_event_name":"PreToolUse","turn_id":"%d","prompt_id":"%[1]d","tool_name":"rm","tool_use_id":"c","tool_input":{}`
			send := start()
			if got := send(fmt.Sprintf(prompt, "deny me", 1)); decisionRef.MatchString(got) || !strings.Contains(got, "as you like") {
				t.Errorf("a prompt was refused before there was one: %s", got)
			}
			send(fmt.Sprintf(prompt, "hi", 2))
			first := joined(t, log, send(fmt.Sprintf(rm, 2)))
			if first.TurnID != "2" || len(first.Sections) == 0 {
				t.Errorf("the call of turn 2 leads to turn %s, %d sections", first.TurnID, len(first.Sections))
			}
			if m := joined(t, log, send(fmt.Sprintf(prompt, "deny me", 3))); m.ManifestID != first.ManifestID {
				t.Errorf("the refused prompt leads to turn %s, not to the prompt before", m.TurnID)
			}
			send(fmt.Sprintf(prompt, "again", 4))
			second := joined(t, log, send(fmt.Sprintf(rm, 4)))
			if second.TurnID != "4" || second.Seq <= first.Seq {
				t.Errorf("the call of turn 4 leads to turn %s, number %d after %d", second.TurnID, second.Seq, first.Seq)
			}
			send = start()
			if m := joined(t, log, send(fmt.Sprintf(rm, 4))); m.ManifestID != second.ManifestID {
				t.Errorf("after a restart the call leads to turn %s", m.TurnID)
			}
			send(fmt.Sprintf(prompt, "more", 5))
			if m := joined(t, log, send(fmt.Sprintf(rm, 5))); m.TurnID != "5" || m.Seq <= second.Seq {
				t.Errorf("the call of turn 5 leads to turn %s, number %d after %d", m.TurnID, m.Seq, second.Seq)
			}
		})
	}
}

// TestDecisionRefHasRoom: the reference counts for the limit of a refusal's text.
func TestDecisionRefHasRoom(t *testing.T) {
	t.Parallel()

	const long, most = 9_930, 10_000 // the reminder would fit without the reference
	p := &sdk.Plugin{Name: "guard", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "calls", Kinds: []phases.Kind{phases.KindDecision, phases.KindReminder}, Needs: []string{phases.NeedsNothing},
		ToolPreCall: func(context.Context, *sdk.Call, *phases.ToolPreCallInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: strings.Repeat("x", long)}, &phases.Reminder{Type: "bin", Text: "use the bin"})
		},
	}}}
	log := logStore(t)
	c := serve(t, Options{Tree: storetest.Tree(t, time.Now), Engine: looptest.Host(t, log, p), Log: log}).post(t, "")
	c.hook(t, "claude-code", `{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"hi"}`)
	_, got := c.hook(t, "claude-code", `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"rm","tool_use_id":"c","tool_input":{}}`)
	joined(t, log, got)
	var answer struct {
		Specific struct {
			Reason string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal([]byte(got), &answer); err != nil || len(answer.Specific.Reason) > most || strings.Contains(got, "use the bin") {
		t.Errorf("a reason of %d bytes (%v), with the reminder %v", len(answer.Specific.Reason), err, strings.Contains(got, "use the bin"))
	}
}

// TestDecisionRefOfCalls: clients that keep turns get the reference with each outcome and each answer about a call.
func TestDecisionRefOfCalls(t *testing.T) {
	t.Parallel()

	c, handle, log, _ := watched(t, nil)
	check := func(tool string) checkedCall {
		t.Helper()
		return do[checkedCall](t, c, "tool/check", object{"handle": handle, "call_id": "1", "tool": tool})
	}
	if got := check("rm"); got.Refused == nil || got.DecisionRef != nil {
		t.Errorf("before there is a prompt: %+v", got)
	}
	for range 2 {
		prompt := do[compiledTurn](t, c, "turn/compile", object{"handle": handle, "input": object{"user_text": "Hi!", "tool_calling": true}}).Manifest
		called := do[calledTool](t, c, "tool/call", object{"handle": handle, "call_id": "3", "tool": "rm"})
		out := do[checkedCall](t, c, "turn/dispatch", object{"handle": handle, "phase": "tool.pre_call", "input": object{"tool": "rm"}})
		for what, ref := range map[string]*phases.DecisionRef{"tool/check": check("rm").DecisionRef, "tool/call": called.DecisionRef, "turn/dispatch": out.DecisionRef} {
			if m := recordOf(t, log, ref); m.ManifestID != prompt.ManifestID {
				t.Errorf("%s leads to the record %d, not %d", what, m.Seq, prompt.Seq)
			}
		}
	}
	if got := check("list"); got.DecisionRef != nil {
		t.Errorf("no hook decided: %+v", got)
	}
}

// TestDecisionRefOfMCP: the result of a tool over MCP names the prompt of the agent that is at work, if a hook judged the call.
func TestDecisionRefOfMCP(t *testing.T) {
	t.Parallel()

	be := "" // what the guard makes of the next call
	guard := &sdk.Plugin{Name: "guard", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "calls", Kinds: []phases.Kind{phases.KindDecision}, Needs: []string{phases.NeedsNothing},
		ToolPreCall: func(context.Context, *sdk.Call, *phases.ToolPreCallInput) ([]phases.Contribution, error) {
			switch be {
			case "judged":
				return sdk.Reply(&phases.Decision{Verdict: phases.VerdictAllow})
			case "refused":
				return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no"})
			}
			return nil, nil
		},
	}}}
	log, tree := logStore(t), storetest.Tree(t, time.Now)
	s := serve(t, Options{Tree: tree, Engine: engine(t, tree, log, guard), Log: log})
	p, session := s.post(t, ""), must(mcpSession(t, s, "", "", ""))(t)
	ref := func(next string) *phases.DecisionRef {
		t.Helper()
		be = next
		res := must(session.CallTool(t.Context(), &mcp.CallToolParams{Name: "measure"}))(t)
		if res.IsError != (be == "refused") {
			t.Errorf("%s: %+v", be, res)
		}
		var meta struct {
			Ref *phases.DecisionRef `json:"io.grapnel/decision_ref"`
		}
		if err := json.Unmarshal(must(json.Marshal(res.Meta))(t), &meta); err != nil {
			t.Errorf("%s: %v", be, err)
		}
		return meta.Ref
	}
	if got := ref("refused"); got != nil {
		t.Errorf("without an agent the call leads to %s", got)
	}
	for _, turn := range []string{"1", "2"} {
		p.hook(t, "claude-code", `{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"hi","prompt_id":"`+turn+`"}`)
		for _, be := range []string{"refused", "judged"} {
			if m := recordOf(t, log, ref(be)); m.ThreadID != "s" || m.TurnID != turn {
				t.Errorf("turn %s, %s: leads to the turn %s of the thread %s", turn, be, m.TurnID, m.ThreadID)
			}
		}
	}
	if got := ref("seen"); got != nil {
		t.Errorf("a call that nobody judged leads to %s", got)
	}
	p.hook(t, "claude-code", `{"session_id":"other","hook_event_name":"UserPromptSubmit","prompt":"hi"}`)
	if got := ref("refused"); got != nil {
		t.Errorf("of two agents, the call leads to %s", got)
	}
}

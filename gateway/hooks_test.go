package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store"
)

// hook posts a payload as an agent does.
func (p *caller) hook(t testing.TB, host, payload string) (int, string) {
	t.Helper()
	req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+hookPath+host, strings.NewReader(payload)))(t)
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	resp, err := p.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	return resp.StatusCode, strings.TrimSpace(string(must(io.ReadAll(resp.Body))(t)))
}

// decisionRef is a decision_ref at the end of a reason, with the id and the number of the record.
var decisionRef = regexp.MustCompile(` \(decision_ref ([0-9A-Z]{26})/(\d+)\)`)

// TestHooks goes through a session of an agent: what plugins bring reaches it, a denied message is blocked, and manifests
// say what was given.
func TestHooks(t *testing.T) {
	t.Parallel()

	log, tree := logStore(t), storetest.Tree(t, time.Now)
	s := serve(t, Options{Tree: tree, Engine: engine(t, tree, log), Log: log})
	p := s.post(t, "")
	for _, step := range []struct{ event, want string }{
		{`"hook_event_name":"SessionStart","source":"startup"`, ""},
		{`"hook_event_name":"UserPromptSubmit","prompt":"hi","prompt_id":"1"`, `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"## House Rules\n\nBe brief."}}`},
		{`"hook_event_name":"PreToolUse","prompt_id":"1","tool_name":"Bash","tool_use_id":"c","tool_input":{"command":"ls"}`, ""},
		{`"hook_event_name":"PostToolUse","prompt_id":"1","tool_name":"Bash","tool_use_id":"c","tool_input":{"command":"ls"},"tool_response":{"stdout":"a"}`, ""},
		{`"hook_event_name":"Stop","last_assistant_message":"done"`, `{"decision":"block","reason":"not yet"}`},
		{`"hook_event_name":"UserPromptSubmit","prompt":"deny me","prompt_id":"2"`, `{"decision":"block","reason":"as you like"}`},
		{`"hook_event_name":"PreToolUse","prompt_id":"3","tool_name":"Bash","tool_use_id":"d","tool_input":{}`, ""}, // of a turn that nobody announced
		{`"hook_event_name":"Stop","last_assistant_message":"done"`, ""},
		{`"hook_event_name":"Notification","message":"hm"`, ""},
		{`"hook_event_name":"SessionEnd","reason":"other"`, ""},
	} {
		status, got := p.hook(t, "claude-code", `{"session_id":"s",`+step.event+`}`)
		if status != http.StatusOK || decisionRef.ReplaceAllString(got, "") != step.want {
			t.Errorf("%s: status %d: %s, want %s", step.event, status, got, step.want)
		}
	}
	m := records(t, log, "s")[0]
	reasons := map[string]string{}
	for _, o := range m.Omitted {
		reasons[o.ID] = o.Reason
	}
	if len(m.Sections) != 1 || m.Sections[0].SectionID != "house_rules" || reasons["identity"] != "host_cannot" || reasons["measure"] != "host_cannot" {
		t.Errorf("the first manifest has %v, and omits %v", m.SectionIDs, reasons)
	}
}

// patientSink keeps what the engine has waited for in vain, too: a busy machine is slower than the engine waits.
type patientSink struct {
	*store.Store

	mu    sync.Mutex
	calls sync.WaitGroup
}

func (s *patientSink) Append(ctx context.Context, m *manifest.Manifest, texts []manifest.Text) error {
	return s.do(func() error { return s.Store.Append(context.WithoutCancel(ctx), m, texts) })
}

func (s *patientSink) Report(ctx context.Context, u manifest.Usage) error {
	return s.do(func() error { return s.Store.Report(context.WithoutCancel(ctx), u) })
}

func (s *patientSink) do(call func() error) error {
	s.calls.Add(1)
	defer s.calls.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	return call()
}

// TestHooksOfALongTurn: an agent that makes so many calls for one prompt that the ledger of the turn is full goes on in
// another turn, judged as before, as is its end. Each call is on record, and the usage with its prompt.
func TestHooksOfALongTurn(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills a ledger of 4 MiB")
	}
	t.Parallel()

	over := make(chan phases.PostTurnInput, 10)
	guard := &sdk.Plugin{Name: "guard", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "end", PostTurn: func(_ context.Context, _ *sdk.Call, in *phases.PostTurnInput) ([]phases.Contribution, error) {
			over <- *in
			return nil, nil
		},
	}}}
	const hooks, calls = 20, 200 // each decision is more than 1,200 bytes of the ledger
	for i := range hooks {
		guard.Hooks = append(guard.Hooks, sdk.Hook{
			Name: fmt.Sprint("calls", i), Kinds: []phases.Kind{phases.KindDecision}, Role: phases.RoleValidate, Needs: []string{phases.NeedsNothing},
			ToolPreCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
				d := &phases.Decision{Verdict: phases.VerdictAllow, Reason: "fine"}
				if in.Tool == "rm" {
					d = &phases.Decision{Verdict: phases.VerdictDeny, Reason: "no rm"}
				}
				return sdk.Reply(d)
			},
		})
	}
	log, tree := &patientSink{Store: logStore(t)}, storetest.Tree(t, time.Now)
	p := serve(t, Options{Tree: tree, Engine: engine(t, tree, log, guard), Log: log}).post(t, "")
	send := func(event string) string {
		status, got := p.hook(t, "codex", `{"session_id":"s","turn_id":"1",`+event+`}`)
		if status != http.StatusOK {
			t.Fatalf("%s: status %d: %s", event, status, got)
		}
		return got
	}
	call := func(id int, tool, agent string) string {
		return send(fmt.Sprintf(`%s"hook_event_name":"PreToolUse","tool_name":%q,"tool_use_id":"%d","tool_input":{"n":%[3]d}`, agent, tool, id))
	}
	send(`"hook_event_name":"UserPromptSubmit","prompt":"hi"`)
	used := func() { send(`"hook_event_name":"PostModelRequest","token_usage":{"input_tokens":100}`) }
	used()
	for i := range calls {
		call(i, "ls", []string{"", `"agent_id":"a",`}[i%2])
	}
	if got := call(calls, "rm", ""); !strings.Contains(got, "no rm") {
		t.Errorf("a guard allows: %s", got)
	}
	used()
	send(`"hook_event_name":"Stop","last_assistant_message":"done"`)
	send(`"hook_event_name":"SessionEnd"`)
	log.calls.Wait()
	turns, recorded, requests := map[string]bool{}, map[phases.Phase]map[string]bool{phases.ToolPreCall: {}, phases.PreEnd: {}}, 0
	for _, m := range records(t, log.Store, "s") {
		turns[m.TurnID] = true
		for _, c := range m.Calls {
			recorded[c.Phase][c.Came] = true // twice where the time of its phase ran out before
		}
		for _, r := range m.Requests { // of the usage
			if u, err := log.Usage(t.Context(), r.ManifestID); err != nil || len(u) != 2 || u[1].InputTokens != 200 || u[1].Rounds != 2 {
				t.Errorf("the usage of the prompt is %+v, %v", u, err)
			}
			requests++
		}
	}
	if len(turns) < 2 || len(recorded[phases.ToolPreCall]) != calls+1 || len(recorded[phases.PreEnd]) == 0 || requests == 0 {
		t.Errorf("%d calls, %d ends and %d requests in %d turns are on record", len(recorded[phases.ToolPreCall]), len(recorded[phases.PreEnd]), requests, len(turns))
	}
}

// TestUndeliveredReminders: what no answer has had room for when the agent's session ends is on record.
func TestUndeliveredReminders(t *testing.T) {
	t.Parallel()

	log := logStore(t)
	p := coached(t, &coach{text: "Be brief.", again: "Read the plan again."}, log)
	for session, events := range map[string]string{"compacted": "PostCompact SessionEnd", "resumed": "PostCompact SessionEnd SessionStart SessionEnd", "stopped": "UserPromptSubmit PostCompact Stop SessionEnd"} {
		for event := range strings.FieldsSeq(events) {
			p.hook(t, "claude-code", `{"session_id":"`+session+`","hook_event_name":"`+event+`","source":"resume","prompt":"hi"}`)
		}
		var said []manifest.Diagnostic
		for _, m := range records(t, log, session) {
			said = append(said, slices.DeleteFunc(m.Diagnostics, func(d manifest.Diagnostic) bool { return d.Code == phases.CodeNotDelivered })...) // a section
		}
		if len(said) != 1 || said[0].Code != "reminders_undelivered" {
			t.Errorf("%s: the records have %+v", session, said)
		}
	}
}

// TestToolsOfRenewedTurns: an agent that has the gateway's MCP server has it in each turn of its session, also in those
// that no prompt begins.
func TestToolsOfRenewedTurns(t *testing.T) {
	t.Parallel()

	house := &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "tools", Kinds: []phases.Kind{phases.KindToolBundle},
		PreTools: func(context.Context, *sdk.Call, *phases.PreToolsInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.ToolBundle{BundleID: "b", Tools: []phases.Tool{{Name: "look"}}})
		},
	}}}
	log, tree, sub := logStore(t), storetest.Tree(t, time.Now), t.TempDir() // below, a project's files are not found
	eng := engineWith(t, tree, log, time.Now, house)
	p := serve(t, Options{Tree: tree, Engine: eng, Log: log, Roots: []string{sub}, HasTools: func(e *agent.Event) bool { return e.Dir == "" }}).post(t, "")
	for session, events := range map[string]string{
		"renewed": "UserPromptSubmit reload PreToolUse reload PostToolUse PostCompact", "without a prompt": "PreCompact SessionStart PreToolUse PostCompact", "between turns": "UserPromptSubmit Stop PreToolUse PostCompact",
	} {
		for event := range strings.FieldsSeq(events) {
			dir := map[bool]string{true: sub}[strings.Contains(event, "ToolUse")]
			if event == "reload" {
				if err := eng.Reload(t.Context(), eng.Config()); err != nil {
					t.Fatal(err)
				}
			} else if status, got := p.hook(t, "claude-code", `{"session_id":"`+session+`","cwd":"`+dir+`","hook_event_name":"`+event+`","source":"startup","prompt":"hi","tool_name":"x","tool_use_id":"c","tool_input":{},"tool_response":"x"}`); status != http.StatusOK {
				t.Fatalf("%s: status %d: %s", event, status, got)
			}
		}
		for _, m := range slices.DeleteFunc(records(t, log, session), func(m *manifest.Manifest) bool { return m.Kind == manifest.KindEvents }) {
			if len(m.Tools) != 1 {
				t.Errorf("%s: a prompt has the tools %+v, omitted are %+v", session, m.Tools, m.Omitted)
			}
		}
	}
}

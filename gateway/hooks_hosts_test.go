package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store"
)

// coach brings a section, reminds after each call of a tool, lets no subagent end at once, and notes sessions.
type coach struct {
	text string
	// sessions is told of sessions that begin and end, if it is there.
	sessions chan string
	// ends is how often it lets no turn end.
	ends int
	// again is what it reminds of after a compaction.
	again string
}

func (c *coach) note(what string, at *phases.Context) {
	if c.sessions != nil {
		c.sessions <- strings.Join([]string{what, at.SessionID, at.ParentSessionID, at.Conversation(), at.AgentID}, " ")
	}
}

func (c *coach) plugin() *sdk.Plugin {
	return &sdk.Plugin{
		Name: "coach", Version: "1.0.0",
		Hooks: []sdk.Hook{
			{
				Name: "rules", Kinds: []phases.Kind{phases.KindPromptSection},
				PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
					if c.text == "" {
						return nil, nil
					}
					return sdk.Reply(&phases.PromptSection{SectionID: "rules", Title: "Rules", Content: c.text}, &phases.PromptSection{SectionID: "more_rules", Title: "More Rules", Content: c.text})
				},
			},
			{
				Name: "lint", Kinds: []phases.Kind{phases.KindReminder},
				ToolPostCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPostCallInput) ([]phases.Contribution, error) {
					return sdk.Reply(&phases.Reminder{Type: "lint", Text: "lint " + in.Tool})
				},
			},
			{
				Name: "no_rm", Kinds: []phases.Kind{phases.KindDecision, phases.KindReminder}, Needs: []string{phases.NeedsNothing},
				ToolPreCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
					if in.Tool != "rm" {
						return nil, nil
					}
					return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "no rm"}, &phases.Reminder{Type: "bin", Text: "use the bin"})
				},
			},
			{
				Name: "end", Kinds: []phases.Kind{phases.KindDecision}, Needs: []string{"forced"},
				PreEnd: func(_ context.Context, call *sdk.Call, in *phases.PreEndInput) ([]phases.Contribution, error) {
					if call.Context.AgentID != "" && in.Forced == 0 {
						return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "look again"})
					}
					if call.Context.AgentID == "" && in.Forced < c.ends {
						return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "the tests fail"})
					}
					return nil, nil
				},
			},
			{
				Name: "again", Kinds: []phases.Kind{phases.KindReminder},
				PostCompaction: func(context.Context, *sdk.Call, *phases.PostCompactionInput) ([]phases.Contribution, error) {
					if c.again == "" {
						return nil, nil
					}
					return sdk.Reply(&phases.Reminder{Type: "again", Text: c.again})
				},
			},
			{
				Name: "start", SessionStart: func(_ context.Context, call *sdk.Call, _ *phases.SessionStartInput) ([]phases.Contribution, error) {
					c.note("start", &call.Context)
					return nil, nil
				},
			},
			{
				Name: "stop", SessionEnd: func(_ context.Context, call *sdk.Call, _ *phases.SessionEndInput) ([]phases.Contribution, error) {
					c.note("end", &call.Context)
					return nil, nil
				},
			},
		},
	}
}

// coached serves an engine with a coach alone.
func coached(tb testing.TB, c *coach, log *store.Store) *caller {
	tb.Helper()
	var sink runtime.Sink
	if log != nil {
		sink = log
	}
	eng := looptest.Host(tb, sink, c.plugin())
	return serve(tb, Options{Tree: storetest.Tree(tb, time.Now), Engine: eng, Log: log}).post(tb, "")
}

// records are all records of a thread, oldest first.
func records(t *testing.T, log *store.Store, thread string) []*manifest.Manifest {
	t.Helper()
	var all []*manifest.Manifest
	for _, index := range must(log.List(t.Context(), store.Filter{Workspace: hookWorkspace, Thread: thread, Limit: 500}))(t) {
		all = append(all, must(log.Get(t.Context(), index.ManifestID))(t))
	}
	slices.SortFunc(all, func(a, b *manifest.Manifest) int { return int(a.Seq) - int(b.Seq) })
	if v, err := log.Verify(t.Context(), store.Filter{}, manifest.VerifyOptions{}); err != nil || !v.OK {
		t.Errorf("verify: %+v, %v", v, err)
	}
	return all
}

// TestDenialIsToldOnce: what is said about a denied call is in its own answer, and not in that to the next one.
func TestDenialIsToldOnce(t *testing.T) {
	t.Parallel()

	log := logStore(t)
	p := coached(t, &coach{text: "Be brief."}, log)
	const call = `{"session_id":"s","turn_id":"1","prompt_id":"1","hook_event_name":"PreToolUse","tool_name":"%s","tool_use_id":"%[1]s","tool_input":{}}`
	for _, host := range []string{"claude-code", "codex", "opencode"} {
		if _, got := p.hook(t, host, fmt.Sprintf(call, "rm")); !strings.Contains(got, `no rm\n\nReminder (type=\"bin\"):\nuse the bin"`) {
			t.Errorf("%s: the denied call: %s", host, got)
		}
		if _, got := p.hook(t, host, fmt.Sprintf(call, "ls")); got != "" {
			t.Errorf("%s: the next call: %s", host, got)
		}
	}
}

// TestGoingOnIsOneTurn: Gemini CLI 0.61.0 sends the reason that it was given to go on as a message. It belongs to the turn
// that goes on, so that plugins and the bound of a turn end it; other words begin a turn.
func TestGoingOnIsOneTurn(t *testing.T) {
	t.Parallel()

	log := logStore(t)
	p := coached(t, &coach{text: "Be brief.", ends: 2}, log)
	const before, after = `{"session_id":"s","hook_event_name":"BeforeAgent","prompt":"%s"}`, `{"session_id":"s","hook_event_name":"AfterAgent","prompt":"hi","prompt_response":"done"}`
	reason := "" // as the agent has it
	for i, step := range []struct{ payload, want string }{
		{fmt.Sprintf(before, "hi"), "Be brief."},
		{after, "the tests fail"},
		{fmt.Sprintf(before, "the tests fail"), ""},
		{after, "the tests fail"},
		{fmt.Sprintf(before, "the tests fail"), ""},
		{after, ""},
		{fmt.Sprintf(before, "the tests fail"), ""}, // a person says it
		{after, "the tests fail"},
		{fmt.Sprintf(before, "something else"), ""},
	} {
		status, got := p.hook(t, "gemini", strings.ReplaceAll(step.payload, "the tests fail", cmp.Or(reason, "the tests fail")))
		if ref := decisionRef.FindString(got); ref != "" {
			reason = "the tests fail" + ref
		}
		if status != http.StatusOK || !strings.Contains(got, step.want) || step.want == "" && got != "" {
			t.Errorf("%d: %s: status %d: %s", i, step.payload, status, got)
		}
	}
	turns, held, all := map[string]bool{}, 0, records(t, log, "s")
	for _, m := range all {
		turns[m.TurnID] = true
		for _, r := range m.Requests {
			held += len(slices.DeleteFunc(r.Changes, func(c manifest.RequestChange) bool {
				return c != manifest.RequestChange{Kind: manifest.RequestHeld, ID: all[0].Sections[0].SectionID, Manifest: all[0].ManifestID}
			}))
		}
	}
	if len(turns) != 3 || held != 1 {
		t.Errorf("there were %d turns, want 3, and %d of those that ended say that the model has the text of the first, want 1", len(turns), held)
	}
}

// TestRevokedText: that the model was told of a section's replacement or end is on record.
func TestRevokedText(t *testing.T) {
	t.Parallel()

	log, c := logStore(t), &coach{text: "Be brief."}
	p := coached(t, c, log)
	for _, step := range []struct{ text, host, want string }{
		{"Be brief.", "codex", "Be brief."}, {"Be long.", "codex", "What follows replaces"}, {"", "codex", "no longer applies"}, {"", "codex", ""},
	} {
		c.text = step.text
		if _, got := p.hook(t, step.host, `{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"hi"}`); !strings.Contains(got, step.want) || step.want == "" && got != "" {
			t.Errorf("%q: %s", step.text, got)
		}
	}
	var kinds []manifest.RequestChangeKind
	for _, m := range records(t, log, "s") {
		for _, r := range m.Requests {
			for _, c := range r.Changes {
				kinds = append(kinds, c.Kind)
			}
		}
	}
	if want := []manifest.RequestChangeKind{manifest.RequestReplaced, manifest.RequestReplaced, manifest.RequestRevoked, manifest.RequestRevoked}; !slices.Equal(kinds, want) {
		t.Errorf("on record are %q, want %q", kinds, want)
	}
}

// TestRoomOfHosts: what a host has no room for is cut, and the record has the cut; a host that takes no text with a prompt
// gets it with the next answer that has room.
func TestRoomOfHosts(t *testing.T) {
	t.Parallel()

	log := logStore(t)
	p := coached(t, &coach{text: strings.Repeat("é is a letter, \U0001F600 is more.\n", 350)}, log)
	status, got := p.hook(t, "claude-code", `{"session_id":"claude","hook_event_name":"UserPromptSubmit","prompt":"hi","prompt_id":"1"}`)
	var answer struct {
		Specific struct {
			Context string `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal([]byte(got), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("status %d: %s: %v", status, got, err)
	}
	context := answer.Specific.Context
	if n := len([]rune(context)) + strings.Count(context, "\U0001F600"); n > 10_000 || n < 9_000 || !strings.Contains(context, "[cut: ") {
		t.Errorf("the context has %d characters of JavaScript's", n)
	}
	p.hook(t, "claude-code", `{"session_id":"claude","hook_event_name":"Stop"}`)
	if all := records(t, log, "claude"); len(all) != 2 || len(all[1].Requests) != 1 || all[1].Requests[0].ManifestID != all[0].ManifestID || all[1].Requests[0].Changes[0].Kind != manifest.RequestCut {
		t.Errorf("the records do not have the cut: %+v", all)
	}

	const prompt = `{"sessionId":"code","hookEventName":"UserPromptSubmit","prompt":"hi"}`
	if _, got := p.hook(t, "vscode", prompt); got != "" {
		t.Errorf("the answer to a prompt of VS Code is %.80s", got)
	}
	call := `{"sessionId":"code","hookEventName":"PreToolUse","tool_name":"x","tool_use_id":"c","tool_input":{}}`
	if _, got := p.hook(t, "vscode", call); !strings.Contains(got, "is a letter") {
		t.Errorf("the first call has %.80q", got)
	}
	if _, got := p.hook(t, "vscode", call); got != "" {
		t.Errorf("the second call has %.80q", got)
	}
	for _, event := range []string{"Stop", "PreCompact", "UserPromptSubmit", "Stop", "UserPromptSubmit", "Stop"} { // and no call: it is lost twice
		p.hook(t, "vscode", `{"sessionId":"code","hookEventName":"`+event+`","prompt":"hi"}`)
	}
	var changes []string
	for _, m := range records(t, log, "code") {
		for _, r := range m.Requests {
			for _, c := range r.Changes {
				changes = append(changes, string(c.Kind)+" "+c.Sent)
			}
		}
	}
	if want := []string{"placement tool.pre_call", "cut 0", "cut 0"}; !slices.Equal(changes, want) {
		t.Errorf("the changes are %q, want %q", changes, want)
	}
}

// TestCompactions: whatever a host says of a compaction, it is one, on record, and the next answer with room has the
// sections and the plugins' reminders once more. What a host got is no prompt of which nothing is known.
func TestCompactions(t *testing.T) {
	t.Parallel()

	claude, gemini := "UserPromptSubmit Stop PreCompact PostCompact SessionStart UserPromptSubmit Stop", "BeforeAgent AfterAgent PreCompress BeforeAgent AfterAgent"
	for name, events := range map[string]string{
		"claude-code between turns": claude, "codex between turns": claude, "gemini between turns": gemini,
		"claude-code in a turn": "UserPromptSubmit PostCompact SessionStart PostToolUse Stop", "gemini in a turn": "BeforeAgent PreCompress AfterTool AfterAgent",
		"claude-code in a turn without a call": "UserPromptSubmit PostCompact SessionStart Stop UserPromptSubmit Stop", "gemini in a turn without a call": "BeforeAgent PreCompress AfterAgent BeforeAgent AfterAgent",
		"vscode in a turn without a call": "UserPromptSubmit PreToolUse PreCompact Stop UserPromptSubmit PostToolUse Stop",
		"cursor between turns":            "beforeSubmitPrompt stop preCompact beforeSubmitPrompt stop",
		"vscode between turns":            "UserPromptSubmit PreToolUse Stop PreCompact UserPromptSubmit PostToolUse Stop", // its prompts have no room
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			log, c := logStore(t), &coach{text: "Be brief.", again: "Read the plan again."}
			p := coached(t, c, log)
			send := func(event string) string {
				status, got := p.hook(t, strings.Fields(name)[0], `{"session_id":"s","sessionId":"s","conversation_id":"s","hook_event_name":"`+event+`","source":"compact","prompt":"hi","tool_name":"x","tool_use_id":"c","tool_input":{},"tool_response":{"llmContent":"x"}}`)
				if status != http.StatusOK {
					t.Errorf("%s: status %d: %s", event, status, got)
				}
				return got
			}
			var answers []string
			for event := range strings.FieldsSeq(events) {
				answers = append(answers, send(event))
			}
			all := strings.Join(answers, "\n")
			if strings.Count(all, "Be brief.") != 4 || strings.Count(all, c.again) != 1 || strings.Contains(all, "system-reminder") {
				t.Errorf("the model has %s", all)
			}
			runs, prompts, epoch := 0, 0, 0
			for _, m := range records(t, log, "s") {
				if slices.ContainsFunc(m.Runs[m.RunsBefore:], func(r phases.Run) bool { return r.Phase == phases.PostCompaction }) {
					epoch = 1
				}
				if m.Epoch != epoch {
					t.Errorf("a record of the epoch %d, want %d: %+v", m.Epoch, epoch, m.Runs)
				}
				for _, d := range m.Diagnostics {
					if d.Code != phases.CodeNotDelivered || !strings.Contains(name, " without") {
						t.Errorf("a diagnostic: %+v", d)
					}
				}
				for _, r := range m.Runs {
					if r.Phase == phases.PostCompaction {
						runs++
					}
				}
				if len(m.Sections) > 0 {
					prompts++
				}
			}
			if want := 2 + strings.Count(name, " without"); runs != 1 || prompts != want {
				t.Errorf("%d runs and %d prompts are on record", runs, prompts)
			}
		})
	}
}

// TestNoBreaksBehindHooks: nobody but the agent knows what its request was. No record of its turns claims a broken cache.
func TestNoBreaksBehindHooks(t *testing.T) {
	t.Parallel()

	log, c := logStore(t), &coach{text: "Be brief."}
	p := coached(t, c, log)
	for turn, text := range []string{"Be brief.", "Be long."} {
		c.text = text
		for _, event := range []string{`UserPromptSubmit","prompt":"hi`, `PostModelRequest","token_usage":{"input_tokens":9000},"x":"`, `Stop`} {
			p.hook(t, "codex", fmt.Sprintf(`{"session_id":"s","turn_id":"%d","hook_event_name":"%s"}`, turn, event))
		}
	}
	m := records(t, log, "s")[2]
	if _, err := log.Judge(t.Context(), m); err != nil || !m.Sent() || !m.Cache.OfAgent || m.Cache.Break != (manifest.Break{}) || m.Cache.Predicted != nil || len(m.Cache.Plan.Breakpoints) > 0 {
		t.Errorf("the record says %+v of the cache: %v", m.Cache, err)
	}
	for row, err := range manifest.Blame(log.Entries(t.Context(), store.Filter{Workspace: hookWorkspace, Thread: "s"})) {
		if err != nil || !row.OfAgent || row.Broke() || row.Break != (manifest.Break{}) {
			t.Errorf("blame: %+v, %v", row, err)
		}
	}
	stats, err := log.Stats(t.Context(), store.Filter{}, time.Time{}, time.Time{}, func() {})
	if err != nil || stats.Days[0].Breaks > 0 {
		t.Errorf("stats: %+v, %v", stats.Days, err)
	}
}

// TestSubagents: a subagent has a session of its own with a prompt, calls, usage and an end, all of it a child of its
// host's session.
func TestSubagents(t *testing.T) {
	t.Parallel()

	log, c := logStore(t), &coach{text: "Be brief.", sessions: make(chan string, 16)}
	p := coached(t, c, log)
	for _, step := range []struct{ event, want string }{
		{`"hook_event_name":"SessionStart","source":"startup"`, ""},
		{`"hook_event_name":"UserPromptSubmit","prompt":"hi","turn_id":"1"`, "Be brief."},
		{`"hook_event_name":"SubagentStop","agent_id":"x","turn_id":"1"`, ""}, // nobody saw it begin
		{`"hook_event_name":"SubagentStart","agent_id":"a","agent_type":"explore","turn_id":"1"`, "Be brief."},
		{`"hook_event_name":"PostToolUse","agent_id":"a","turn_id":"9","tool_name":"Bash","tool_use_id":"c","tool_input":{},"tool_response":"x"`, "lint Bash"},
		{`"hook_event_name":"PostModelRequest","agent_id":"a","turn_id":"9","token_usage":{"input_tokens":7,"output_tokens":2}`, ""},
		{`"hook_event_name":"PostModelRequest","turn_id":"1","token_usage":{"input_tokens":100,"output_tokens":50}`, ""},
		{`"hook_event_name":"PostModelRequest","turn_id":"1","token_usage":{"input_tokens":160,"output_tokens":5,"cached_input_tokens":90}`, ""},
		{`"hook_event_name":"SubagentStop","agent_id":"a","turn_id":"9","last_assistant_message":"found"`, `{"decision":"block","reason":"look again"}`},
		{`"hook_event_name":"SubagentStop","agent_id":"a","turn_id":"9","last_assistant_message":"found"`, ""},
		{`"hook_event_name":"PreToolUse","turn_id":"1","tool_name":"Bash","tool_use_id":"d","tool_input":{}`, ""},
		{`"hook_event_name":"Stop","turn_id":"1","last_assistant_message":"done"`, ""},
		{`"hook_event_name":"SessionEnd","reason":"other"`, ""},
	} {
		status, got := p.hook(t, "codex", `{"session_id":"s",`+step.event+`}`)
		if status != http.StatusOK || !strings.Contains(decisionRef.ReplaceAllString(got, ""), step.want) || step.want == "" && got != "" {
			t.Errorf("%s: status %d: %s, want %s", step.event, status, got, step.want)
		}
	}
	child := records(t, log, "s/a")
	if len(child) != 2 || child[0].AgentID != "a" || len(child[1].Runs) == 0 || !child[1].TurnEnded {
		t.Fatalf("the subagent's records are %+v", child)
	}
	for thread, want := range map[string]phases.Usage{"s/a": {InputTokens: 7, OutputTokens: 2}, "s": {InputTokens: 260, OutputTokens: 55, CacheReadTokens: 90}} {
		u, err := log.Usage(t.Context(), records(t, log, thread)[0].ManifestID)
		if n := len(u); err != nil || n == 0 || u[n-1].Usage != want || u[n-1].Rounds != n {
			t.Errorf("the usage of %s is %+v, %v", thread, u, err)
		}
	}
	var sessions []string
	for range 4 {
		select {
		case what := <-c.sessions:
			sessions = append(sessions, what)
		case <-time.After(time.Minute):
			t.Fatalf("the sessions were %q", sessions)
		}
	}
	slices.Sort(sessions)
	//nolint:dupword // a session may be its own thread
	if want := []string{"end s  s ", "end s/a s s a", "start s  s ", "start s/a s s a"}; !slices.Equal(sessions, want) {
		t.Errorf("the sessions were %q, want %q", sessions, want)
	}
}

// TestTaskOfOpencode: the session of a task is a child of its parent's: the plugins see that, and its thread stands below.
func TestTaskOfOpencode(t *testing.T) {
	t.Parallel()

	seen := make(chan phases.Context, 10)
	tree, log := storetest.Tree(t, time.Now), logStore(t)
	house := &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "seen", Kinds: []phases.Kind{phases.KindPolicy}, Needs: []string{phases.NeedsNothing},
		PrePolicy: func(_ context.Context, c *sdk.Call, _ *phases.PrePolicyInput) ([]phases.Contribution, error) {
			seen <- c.Context
			return nil, nil
		},
	}}}
	p := serve(t, Options{Tree: tree, Engine: engineWith(t, tree, log, time.Now, house), Log: log}).post(t, "")
	for _, event := range []string{
		`"session_id":"p","hook_event_name":"UserPromptSubmit","prompt":"hi","turn_id":"1"`,
		`"session_id":"c","parent_session_id":"p","hook_event_name":"UserPromptSubmit","prompt":"look","turn_id":"2"`,
		`"session_id":"c","parent_session_id":"p","hook_event_name":"Stop"`,
		`"session_id":"c","parent_session_id":"p","hook_event_name":"UserPromptSubmit","prompt":"go on","turn_id":"3"`,
		`"session_id":"p","hook_event_name":"Stop"`,
	} {
		if status, got := p.hook(t, "opencode", `{`+event+`}`); status != http.StatusOK {
			t.Fatalf("%s: status %d: %s", event, status, got)
		}
	}
	for _, want := range []string{"p  ", "p/c p p", "p/c p p"} {
		c := <-seen
		if got := c.ThreadID + " " + c.ConversationThreadID + " " + c.ParentSessionID; got != want {
			t.Errorf("a turn of %q, want %q", got, want)
		}
	}
	if len(records(t, log, "p/c")) == 0 {
		t.Error("the task has no records")
	}
}

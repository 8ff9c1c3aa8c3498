package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/store"
)

// tenant has a stable section, which names its revision, one about the prompt, and a guard that counts what it judges.
type tenant struct{ revision, judged atomic.Int32 }

func (n *tenant) plugin() *sdk.Plugin {
	return &sdk.Plugin{
		Name: "house", Version: "1.0.0",
		Hooks: []sdk.Hook{
			{
				Name: "rules", Kinds: []phases.Kind{phases.KindPromptSection},
				PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
					return sdk.Reply(
						&phases.PromptSection{SectionID: "lease", Title: "Lease", Stability: phases.StabilityStable, Content: fmt.Sprintf("Revision %d.", n.revision.Load())},
						&phases.PromptSection{SectionID: "weather", Title: "Weather", Content: "It rains."},
					)
				},
			},
			{
				Name: "guard", Kinds: []phases.Kind{phases.KindDecision}, Role: phases.RoleValidate, Needs: []string{"arguments"},
				ToolPreCall: func(_ context.Context, _ *sdk.Call, in *phases.ToolPreCallInput) ([]phases.Contribution, error) {
					n.judged.Add(1)
					if strings.Contains(string(in.Arguments), "secret") {
						return sdk.Reply(&phases.Decision{Verdict: phases.VerdictDeny, Reason: "a secret"})
					}
					return nil, nil
				},
			},
			{
				Name: "counter", Kinds: []phases.Kind{phases.KindDecision}, Role: phases.RoleValidate,
				PrePolicy: func(context.Context, *sdk.Call, *phases.PrePolicyInput) ([]phases.Contribution, error) {
					n.judged.Add(1)
					return nil, nil
				},
			},
		},
	}
}

// modded is a session of Claude Code with our mod.
type modded struct {
	*caller
	t       *testing.T
	session string
}

func (m *modded) send(event string, more map[string]any) string {
	m.t.Helper()
	payload := map[string]any{"session_id": m.session, "cwd": "", "hook_event_name": event}
	maps.Copy(payload, more)
	status, got := m.hook(m.t, "claude-code?event="+event, string(must(json.Marshal(payload))(m.t)))
	if status != http.StatusOK {
		m.t.Fatalf("%s: status %d: %s", event, status, got)
	}
	return got
}

// asked is what Claude Code sends: a system prompt, tools, and messages that only grow unless somebody changes them.
type asked struct {
	System   string           `json:"-"`
	Tools    []map[string]any `json:"tools"`
	Messages []map[string]any `json:"messages"`
}

func (a *asked) say(role string, content any) {
	a.Messages = append(a.Messages, map[string]any{"role": role, "content": content})
}

func (m *modded) request(a *asked, more map[string]any) {
	m.t.Helper()
	cached := map[string]any{"type": "text", "text": a.System, "cache_control": map[string]any{"type": "ephemeral"}}
	messages := slices.Clone(a.Messages)
	last := messages[len(messages)-1]
	messages[len(messages)-1] = map[string]any{"role": last["role"], "content": []any{map[string]any{"type": "text", "text": last["content"], "cache_control": map[string]any{"type": "ephemeral"}}}}
	all := map[string]any{"request": map[string]any{"model": "claude-sonnet-5-5", "system": []any{cached}, "tools": a.Tools, "messages": messages}}
	maps.Copy(all, more)
	m.send("http.fetch", all)
}

// observedOf are the records of requests, in order.
func observedOf(t *testing.T, log *store.Store, thread string) []*manifest.Manifest {
	t.Helper()
	return slices.DeleteFunc(records(t, log, thread), func(m *manifest.Manifest) bool { return m.Observed == "" })
}

// TestRequestsOfAnAgent: what an agent sends to its model is on record with its owners, each message once, and what broke the
// provider's cache is named with whoever did it.
func TestRequestsOfAnAgent(t *testing.T) {
	t.Parallel()

	log, tree, n := logStore(t), storetest.Tree(t, time.Now), &tenant{}
	p := serve(t, Options{Tree: tree, Engine: engineWith(t, tree, log, time.Now, n.plugin()), Log: log}).post(t, "")
	m := &modded{p, t, "s"}
	m.send("SessionStart", map[string]any{"source": "startup"})

	const lease = `{"sections":[{"id":"lease","text":"## Lease\n\nRevision 0."}]}`
	if got := m.send("prompt.compose", nil); got != lease {
		t.Fatalf("for the system prompt: %s", got)
	}
	n.revision.Add(1) // the system prompt stays what the provider keeps: a change comes with the prompt
	if got := m.send("prompt.compose", nil); got != lease {
		t.Errorf("for the system prompt, again: %s", got)
	}
	prompt := map[string]any{"prompt": "look", "mod": true}
	told := m.send("UserPromptSubmit", prompt)
	if !strings.Contains(told, "replaces the text") || !strings.Contains(told, "Revision 1.") || !strings.Contains(told, "It rains.") {
		t.Errorf("with the prompt: %s", told)
	}
	judged := n.judged.Load()
	if again := m.send("UserPromptSubmit", map[string]any{"prompt": "look", "prompt_id": "p1", "source": "user"}); again != told || n.judged.Load() != judged {
		t.Errorf("the hook asks about the same prompt: %s, judged %d times more", again, n.judged.Load()-judged)
	}

	var context struct {
		Specific struct {
			Context string `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal([]byte(told), &context); err != nil {
		t.Fatal(err)
	}
	a := &asked{System: "Be an agent.\n\n## Lease\n\nRevision 0.\n\nBe tidy.", Tools: []map[string]any{{"name": "Bash"}, {"name": "mcp__probe__tell"}}}
	labels := map[string]any{
		"sections": []any{
			map[string]any{"id": "grapnel:lease", "owner": "grapnel", "text": "## Lease\n\nRevision 0."},
			map[string]any{"id": "tidy:style", "owner": "mod:tidy", "text": "Be tidy."},
		},
		"files":  []any{map[string]any{"path": "/w/CLAUDE.md", "content": "Say MANGO."}},
		"labels": []any{map[string]any{"kind": "prompt", "id": "u", "owner": "user", "text": "look"}},
	}
	a.say("user", "<system-reminder>\nContents of /w/CLAUDE.md:\n\nSay MANGO.\n</system-reminder>")
	a.say("user", "<system-reminder>\n"+context.Specific.Context+"\n</system-reminder>")
	a.say("user", "look")
	m.request(a, labels)
	use := func(read, write int) {
		m.send("turn.step", map[string]any{"usage": map[string]any{"input_tokens": 10 + read + write, "output_tokens": 5, "cache_read_tokens": read, "cache_write_tokens": write}})
	}
	use(0, 5000)
	a.say("assistant", "hm")
	a.say("user", "go on")
	m.request(a, map[string]any{"sections": labels["sections"]}) // nothing broke, though the parts have other bounds
	use(5000, 100)
	a.Tools[1]["description"] = "tells more"
	m.request(a, labels)
	use(0, 5100)
	a.Messages[0]["content"] = "<system-reminder>\nContents of /w/CLAUDE.md:\n\nSay PAPAYA.\n</system-reminder>"
	labels["files"] = []any{map[string]any{"path": "/w/CLAUDE.md", "content": "Say PAPAYA."}}
	m.request(a, labels)
	use(3000, 2100)
	a.System = strings.ReplaceAll(a.System, "Be tidy.", "Be very tidy.")
	sections := []any{map[string]any{"id": "grapnel:lease", "owner": "grapnel", "text": "## Lease\n\nRevision 0."}, map[string]any{"id": "tidy:style", "owner": "mod:tidy", "text": "Be very tidy."}}
	labels["sections"] = sections
	m.request(a, labels)
	m.send("Stop", map[string]any{"prompt_id": "p1"})

	all := observedOf(t, log, "s")
	if len(all) != 5 {
		t.Fatalf("%d records of requests, want 5", len(all))
	}
	var owners []string
	for _, s := range all[0].Sections {
		owners = append(owners, s.SectionID+"="+s.Owner)
	}
	for _, tool := range all[0].HostTools {
		owners = append(owners, tool.Name+"="+tool.Owner)
	}
	for _, part := range all[0].History.Added {
		owners = append(owners, fmt.Sprintf("%d %s=%s", part.Message, cmp.Or(part.ID, part.Kind), part.Owner))
	}
	first := records(t, log, "s")
	given := first[slices.IndexFunc(first, func(m *manifest.Manifest) bool {
		return slices.Contains(m.SectionIDs, "weather") && m.TurnID != first[0].TurnID
	})]
	want := []string{
		"system=claude-code", "lease=house", "tidy:style=mod:tidy", "Bash=claude-code", "mcp__probe__tell=mcp:probe",
		"0 reminder=claude-code", "0 /w/CLAUDE.md=claude-code", "0 reminder=claude-code", "1 reminder=claude-code", "1 " + given.ManifestID + "=grapnel", "1 reminder=claude-code", "2 u=user",
	}
	if !slices.Equal(owners, want) {
		t.Errorf("owners:\n%s\nwant\n%s", strings.Join(owners, "\n"), strings.Join(want, "\n"))
	}
	if h := all[1].History; h.Previous != all[0].ManifestID || h.Same != 3 || h.Entries != 5 || len(h.Added) != 2 {
		t.Errorf("the second request: %+v", h)
	}
	if all[0].HashFull != manifest.Hash(strings.ReplaceAll(a.System, "very ", ""), nil) {
		t.Error("hash_full is not that of the system prompt as it was sent")
	}

	var breaks []string
	for row, err := range manifest.Blame(log.Entries(t.Context(), store.Filter{Workspace: hookWorkspace, Thread: "s"})) {
		if err != nil {
			t.Fatal(err)
		}
		if !row.OfAgent {
			breaks = append(breaks, strings.TrimSpace(fmt.Sprintln(row.Cause, cmp.Or(row.BrokeAt, row.Tool), row.Owner, row.TokensLost)))
		}
	}
	wantBreaks := []string{"0", "0", "host_tools mcp__probe__tell mcp:probe 5110", "history_edited /w/CLAUDE.md claude-code 2110", "section_text tidy:style mod:tidy 5110"}
	for i := range breaks {
		breaks[i] = strings.TrimSpace(breaks[i])
	}
	if !slices.Equal(breaks, wantBreaks) {
		t.Errorf("what broke the cache:\n%s\nwant\n%s", strings.Join(breaks, "\n"), strings.Join(wantBreaks, "\n"))
	}
}

// TestSystemPromptBehindPrompt: an agent that asks for its system prompt behind the prompt gets the stable sections there, and one
// that never asks gets them with the next prompt.
func TestSystemPromptBehindPrompt(t *testing.T) {
	t.Parallel()

	log, tree, n := logStore(t), storetest.Tree(t, time.Now), &tenant{}
	p := serve(t, Options{Tree: tree, Engine: engineWith(t, tree, log, time.Now, n.plugin()), Log: log}).post(t, "")
	for _, asks := range []bool{true, false} {
		m := &modded{p, t, fmt.Sprint("s", asks)}
		m.send("SessionStart", map[string]any{"source": "startup"})
		for i := range 3 {
			told := m.send("UserPromptSubmit", map[string]any{"prompt": "look", "mod": true})
			if want := !asks && i == 1; strings.Contains(told, "Revision 0.") != want {
				t.Errorf("asks %t, prompt %d: %s", asks, i, told)
			}
			if asks && !strings.Contains(m.send("prompt.compose", nil), "Revision 0.") {
				t.Errorf("prompt %d: the system prompt lacks the section", i)
			}
		}
	}
}

// TestOneVerdict: what our mod has asked about is not judged again when a hook asks, unless it is another call by then.
func TestOneVerdict(t *testing.T) {
	t.Parallel()

	log, tree, n := logStore(t), storetest.Tree(t, time.Now), &tenant{}
	m := &modded{serve(t, Options{Tree: tree, Engine: engineWith(t, tree, log, time.Now, n.plugin()), Log: log}).post(t, ""), t, "s"}
	m.send("UserPromptSubmit", map[string]any{"prompt": "look", "prompt_id": "p1"})
	before := n.judged.Load()
	for i, tt := range []struct {
		command string
		mod     bool
		denied  bool
		judged  int32
	}{
		{"cat secret", true, true, 1},
		{"cat secret", false, true, 1}, // the hook gets what the mod got
		{"cat secret", false, true, 2}, // and once
		{"cat open", true, false, 3},
		{"cat secret2", false, true, 4}, // somebody has changed it
		{"cat secret2", true, true, 4},  // the mod asks behind the hook
	} {
		got := m.send("PreToolUse", map[string]any{"prompt_id": "p1", "tool_name": "Bash", "tool_use_id": "t1", "tool_input": map[string]any{"command": tt.command}, "mod": tt.mod})
		if strings.Contains(got, `"deny"`) != tt.denied || n.judged.Load()-before != tt.judged {
			t.Errorf("%d. %s: %s, judged %d times, want %d", i, tt.command, got, n.judged.Load()-before, tt.judged)
		}
	}
}

// TestRequestsElsewhere: a request between turns, of a subagent that nobody announced, behind a compaction, and after the
// gateway was started again is on record, and no break is made up.
func TestRequestsElsewhere(t *testing.T) {
	t.Parallel()

	log, tree, n := logStore(t), storetest.Tree(t, time.Now), &tenant{}
	m := &modded{serve(t, Options{Tree: tree, Engine: engineWith(t, tree, log, time.Now, n.plugin()), Log: log}).post(t, ""), t, "s"}
	a := &asked{System: "Be an agent."}
	a.say("user", "hi")
	m.request(a, nil)
	m.request(a, map[string]any{"agent_id": "sub"})
	m.send("UserPromptSubmit", map[string]any{"prompt": "hi", "prompt_id": "p1"})
	a.say("assistant", "ho")
	m.request(a, nil)
	m.send("PostCompact", map[string]any{"trigger": "manual", "compact_summary": "they said hi"})
	short := &asked{System: a.System}
	short.say("user", "they said hi")
	m.request(short, nil)
	m = &modded{serve(t, Options{Tree: tree, Engine: engineWith(t, tree, log, time.Now, n.plugin()), Log: log}).post(t, ""), t, "s"}
	short.say("assistant", "yes")
	m.request(short, nil)

	all := observedOf(t, log, "s")
	if len(all) != 4 || len(observedOf(t, log, "s/sub")) != 1 {
		t.Fatalf("%d records of requests, and %d of the subagent", len(all), len(observedOf(t, log, "s/sub")))
	}
	for i, want := range []string{"1 of 1 new", "1 of 2 new", "1 of 1 new", "2 of 2 new"} {
		h := all[i].History
		if got := fmt.Sprintf("%d of %d new", len(h.Added), h.Entries); got != want {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
		if _, err := log.Judge(t.Context(), all[i]); err != nil || all[i].Cache.Cause != "" && all[i].Cache.Cause != manifest.CauseEpoch {
			t.Errorf("request %d: %+v, %v", i, all[i].Cache.Break, err)
		}
	}
}

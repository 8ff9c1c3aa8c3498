package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// conversation is one agent's session, as far as its model has been given something.
type conversation struct {
	*home

	agent, id, dir string
	reads          string            // the file that the agent reads by itself
	events         map[string]string // the agent's own names
	prompts        int
	// given are the contexts since the last compaction, or since another gateway was started, which gives all once more.
	given []string
	texts map[string][]string // of each file, the newest last
}

// events are the names that the agents have for what happens.
func events(agent string) map[string]string {
	names := map[string]string{"prompt": "UserPromptSubmit", "stop": "Stop", "compact": "PreCompact", "compacted": "PostCompact", "call": "PreToolUse", "result": "PostToolUse"}
	if agent == "gemini" {
		names = map[string]string{"prompt": "BeforeAgent", "stop": "AfterAgent", "compact": "PreCompress", "call": "BeforeTool", "result": "AfterTool"}
	}
	names["start"], names["end"] = "SessionStart", "SessionEnd"
	return names
}

// send sends an event with members of its own, and keeps the context of its answer.
func (c *conversation) send(t *testing.T, event, more string) {
	t.Helper()
	name := c.events[event]
	if name == "" {
		return
	}
	payload := fmt.Sprintf(`{"hook_event_name":%q,"session_id":%q,"cwd":%q%s}`, name, c.id, c.dir, more)
	code, out, errs := c.hook(t, strings.NewReader(payload), c.agent, name)
	if code != exitAllowed {
		t.Fatalf("%s: exit code %d: %s", payload, code, errs)
	}
	var answer struct {
		Context  string `json:"context"` // of our plugin files
		Specific struct {
			Context string `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal([]byte(out), &answer); out != "" && err != nil {
		t.Fatal(err, out)
	}
	c.given = append(c.given, answer.Context+answer.Specific.Context)
}

// write gives a file another text.
func (c *conversation) write(t *testing.T, name string) {
	t.Helper()
	text := fmt.Sprintf("%s of %s, version %d.", name, c.id, len(c.texts[name]))
	c.texts[name] = append(c.texts[name], text)
	c.home.write(t, c.id+"/"+name, text+"\n", 0o600)
}

func (c *conversation) do(t *testing.T, step string) {
	t.Helper()
	call := `,"tool_name":"Bash","tool_use_id":"c","tool_input":{"command":"ls"}`
	switch step {
	case "prompt":
		c.prompts++
		c.send(t, "prompt", fmt.Sprintf(`,"prompt":"hi","prompt_id":"%d","turn_id":"%d"`, c.prompts, c.prompts))
		c.check(t)
		c.send(t, "stop", "")
	case "edit":
		for name := range c.texts {
			c.write(t, name)
		}
	case "compact":
		c.send(t, "compact", `,"trigger":"manual"`)
		c.send(t, "compacted", `,"trigger":"manual"`)
		c.given = nil
	case "compact in a turn":
		c.do(t, "prompt")
		c.prompts++
		c.send(t, "prompt", fmt.Sprintf(`,"prompt":"more","prompt_id":"%d","turn_id":"%d"`, c.prompts, c.prompts))
		c.send(t, "call", call)
		c.do(t, "compact")
		c.send(t, "result", call+map[bool]string{true: `,"tool_response":{"llmContent":"x"}`, false: `,"tool_response":"x"`}[c.agent == "gemini"])
		c.check(t)
		c.send(t, "stop", "")
	case "end and resume":
		c.send(t, "end", `,"reason":"other"`)
		c.send(t, "start", `,"source":"resume"`)
	case "restart", "kill": // all others are in the same gateway
		c.given = nil
	}
}

// check compares what the model has with the files: the newest text of one that it does not read by itself once, behind
// all older ones, and never one that it reads.
func (c *conversation) check(t *testing.T) {
	t.Helper()
	all := strings.Join(c.given, "\n")
	for name, texts := range c.texts {
		newest := texts[len(texts)-1]
		want := 1
		if name == c.reads {
			want = 0
		}
		if n := strings.Count(all, newest); n != want {
			t.Errorf("%q is there %d times, want %d:\n%s", newest, n, want, all)
		}
		for _, old := range texts[:len(texts)-1] {
			at := strings.LastIndex(all, old)
			if at >= 0 && (want == 0 || at > strings.Index(all, newest) || !strings.Contains(all[at:], `replaces the text that Grapnel's hooks gave before under the heading "## AGENTS.md" (not a file that you read yourself).`)) {
				t.Errorf("%q is there, and nothing replaces it:\n%s", old, all)
			}
		}
	}
	if strings.Contains(all, "Nothing has changed") {
		t.Errorf("an assurance:\n%s", all)
	}
}

// newConversation is a session in a repository of its own.
func newConversation(h *home, agent, id, reads string) *conversation {
	return &conversation{home: h, agent: agent, id: id, dir: filepath.Join(h.dir, id), reads: reads, events: events(agent), texts: map[string][]string{}}
}

// TestInstructions has all agents behind one gateway, which brings instruction files.
func TestInstructions(t *testing.T) {
	t.Parallel()

	h := newUser(t, `  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section, reminder], sections: [agents_md], see: [touched_paths, state], host: [state]}
    env: {pass: [HOME, XDG_CONFIG_HOME]}
  - name: house
    builtin: scripted
    grants: {contribute: [decision]}
    config: {hooks: [{id: guard, phase: tool.pre_call, when: 'tool.name == "Forbidden"', respond: [{kind: decision, verdict: deny, reason: no shell}]}]}
`)
	h.wake(t)
	// One after the other: the last ones end the gateway.
	t.Run("names of events", func(t *testing.T) { checkNames(t, h) })
	for _, agent := range []string{"gemini", "opencode"} {
		t.Run("touched files, "+agent, func(t *testing.T) { checkTouched(t, newConversation(h, agent, agent, "none")) })
	}
	orders := 2
	if os.Getenv("GRAPNEL_LONG") == "1" {
		orders = 10
	}
	for n := range orders {
		t.Run("order "+strconv.Itoa(n), func(t *testing.T) { checkOrder(t, h, n) })
	}
}

// checkNames: no spelling of an event's name lets a call past the guard, and an event that nobody knows is said so, once.
func checkNames(t *testing.T, h *home) {
	t.Helper()
	for _, tt := range []struct {
		args, named string
		code        int
		want        string
	}{
		{"gemini BeforeTool", `"BeforeTool"`, exitAllowed, "no shell"},
		{"gemini BeforeTool", `"beforeTool"`, exitBlocked, "which is written BeforeTool"},
		{"gemini BeforeTool", `"PreToolUse"`, exitBlocked, "which amp, claude-code, codex"},
		{"gemini BeforeTool", `"BeforeToolCall"`, exitBlocked, "installed for BeforeTool"},
		{"gemini BeforeTool", `"AfterModel"`, exitBlocked, "installed for BeforeTool"},
		{"gemini BeforeTool", `""`, exitBlocked, "names no event"},
		{"gemini BeforeTool", `7`, exitBlocked, "decided nothing"},
		{"gemini SessionStart", `"BeforeTool"`, exitBlocked, "installed for SessionStart"},
		{"--on-failure allow gemini SessionStart", `"BeforeTool"`, exitAllowed, "installed for SessionStart"},
		{"gemini SessionStart", `"SessionEnd"`, exitAllowed, "installed for SessionStart"},
		{"gemini", `"before_tool"`, exitBlocked, "which is written BeforeTool"},
		{"cursor", `"PreToolUse"`, exitBlocked, "which is written preToolUse"},
		{"codex", `"notification"`, exitAllowed, ""},
		{"opencode", `"tool.execute.before"`, exitBlocked, "Grapnel's plugin file sends there, PreToolUse"},
		{"opencode", `"PreToolUse"`, exitAllowed, "no shell"},
		{"gemini NewEvent", `"NewEvent"`, exitAllowed, ""},
		{"gemini NewEvent", `"NewEvent"`, exitAllowed, ""},
		{"gemini SessionEnd", `"SessionEnd"`, exitAllowed, ""},
	} {
		payload := fmt.Sprintf(`{"hook_event_name":%s,"session_id":"n","conversation_id":"n","cwd":%q,"tool_name":"Forbidden","tool_input":{}}`, tt.named, h.dir)
		code, out, errs := h.hook(t, strings.NewReader(payload), strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(out+errs, tt.want) || tt.want == "" && out+errs != "" {
			t.Errorf("%s, named %s: exit code %d, want %d: %s%s", tt.args, tt.named, code, tt.code, out, errs)
		}
	}
	log, err := os.ReadFile(filepath.Join(filepath.Dir(h.socket), "hook.log"))
	if err != nil || strings.Count(string(log), "NewEvent") != 1 {
		t.Errorf("%v: %s", err, log)
	}
	if shown, refused := h.grapnel(t, h.dir, "", "manifest", "show", "latest", "--thread", "n", "--json"); !strings.Contains(shown, "no event that this version of Grapnel knows") {
		t.Error(shown, refused)
	}
}

// checkTouched: behind an agent, what is said of a touched directory's files is what is on disk, and nothing that the agent has
// is said again or in other words.
func checkTouched(t *testing.T, c *conversation) {
	t.Helper()
	of := func(gemini, opencode string) string {
		return map[string]string{"gemini": gemini, "opencode": opencode}[c.agent]
	}
	read := `,"tool_name":"read_file","tool_use_id":"c","tool_input":{"file_path":"` + c.dir + `/sub/x.go"},"tool_response":` + of(`{"llmContent":"x"}`, `"x"`)
	c.home.write(t, c.id+"/.git/HEAD", "ref: refs/heads/main\n", 0o600)
	c.write(t, "AGENTS.local.md")
	c.write(t, "sub/AGENTS.local.md")
	for _, step := range []struct {
		before      func()
		event, more string
		want        []string // and with ! what is not wanted
	}{
		{nil, "start", `,"source":"startup"`, nil},
		{nil, "prompt", `,"prompt":"hi"`, []string{"AGENTS.local.md of"}},
		{nil, "result", read, []string{"sub/AGENTS.local.md of " + c.agent + ", version 0", "!updated"}},
		{nil, "compact", `,"trigger":"auto"`, nil},
		{nil, "compacted", `,"trigger":"auto"`, nil},
		{nil, "result", read, []string{"sub/AGENTS.local.md of " + c.agent + ", version 0", of("", "!") + "\nAGENTS.local.md of"}},
		{func() { c.write(t, "sub/AGENTS.local.md") }, "result", read, []string{"version 1", "(updated", "does not apply any more"}},
		{func() { c.remove(t, "AGENTS.local.md") }, "prompt", `,"prompt":"more"`, []string{"!Look again", "!has changed", of("no longer applies", "!AGENTS.local.md of")}},
		{func() { c.remove(t, "sub") }, "result", read, []string{"(removed)", "does not apply any more"}},
		{nil, "result", read, []string{"!removed"}},
	} {
		if step.before != nil {
			step.before()
		}
		c.send(t, step.event, step.more)
		got := c.given[len(c.given)-1]
		for _, w := range step.want {
			if not, is := strings.CutPrefix(w, "!"); strings.Contains(got, not) == is {
				t.Errorf("%s, %s: want %q: %s", c.agent, step.event, w, got)
			}
		}
	}
}

func (c *conversation) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// checkOrder: in any order of what may happen to a session, what the model has of the files is what is on disk, once. Codex reads
// AGENTS.md by itself, Claude Code where there is no CLAUDE.md, Gemini CLI never, and none reads AGENTS.local.md.
func checkOrder(t *testing.T, h *home, n int) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(n), 36))
	order := []string{"edit", "compact", "end and resume", "restart", "kill", "compact in a turn", "edit"}
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for i := range order { // prompts between some of them
		if n%2 == 0 || random.IntN(2) == 0 {
			order[i] += ", prompt"
		}
	}
	order = strings.Split("prompt, "+strings.Join(order, ", ")+", prompt, prompt", ", ")
	var all []*conversation
	for i, reads := range [][2]string{{"claude-code", "AGENTS.md"}, {"claude-code", "CLAUDE.md"}, {"codex", "AGENTS.md"}, {"gemini", "GEMINI.md"}} {
		c := newConversation(h, reads[0], fmt.Sprintf("%d-%d", n, i), reads[1])
		h.write(t, c.id+"/.git/HEAD", "ref: refs/heads/main\n", 0o600)
		c.write(t, c.reads)
		c.write(t, "AGENTS.md")
		c.write(t, "AGENTS.local.md")
		c.send(t, "start", `,"source":"startup"`)
		all = append(all, c)
	}
	for _, step := range order {
		if signal := map[string]syscall.Signal{"restart": syscall.SIGTERM, "kill": syscall.SIGKILL}[step]; signal != 0 {
			h.end(t, signal)
			h.wake(t)
		}
		for _, c := range all {
			if c.do(t, step); t.Failed() {
				t.Fatalf("%s, at %q of %q", c.agent, step, order)
			}
		}
	}
}

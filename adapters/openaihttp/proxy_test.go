package openaihttp_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// system is the system text of a request.
func (c *talk) system(i int) string {
	c.t.Helper()
	r := c.model.request(i)
	switch c.path {
	case chatPath:
		first := obj(arr(r["messages"])[0])
		return str(first["role"]) + ": " + str(first["content"])
	case responsesPath:
		text, _ := r["instructions"].(string)
		return "system: " + text
	default:
		text, _ := r["system"].(string)
		return "system: " + text
	}
}

// conversation is a request's conversation in short.
func (c *talk) conversation(i int) string {
	c.t.Helper()
	r := c.model.request(i)
	messages, _ := r["messages"].(list)
	if c.path == responsesPath {
		messages, _ = r["input"].(list)
	}
	var out []string
	var walk func(role string, v any)
	walk = func(role string, v any) {
		switch v := v.(type) {
		case string:
			if v != "" && role != "system" && role != "developer" {
				out = append(out, role+" "+v)
			}
		case list:
			for _, e := range v {
				walk(role, e)
			}
		case dict:
			if r, ok := v["role"].(string); ok {
				role = r
			}
			f, ok := v["function"].(dict)
			switch {
			case ok:
				out = append(out, "call "+str(v["id"])+" "+str(f["name"])+" "+str(f["arguments"]))
			case v["type"] == "function_call":
				out = append(out, "call "+str(v["call_id"])+" "+str(v["name"])+" "+str(v["arguments"]))
			case v["type"] == "tool_use":
				out = append(out, "call "+str(v["id"])+" "+str(v["name"])+" "+string(raw(v["input"])))
			case v["type"] == "tool_result":
				out = append(out, "result "+str(v["tool_use_id"])+" "+plain(v["content"]))
			case role == "tool":
				out = append(out, "result "+str(v["tool_call_id"])+" "+plain(v["content"]))
			case v["type"] == "function_call_output":
				out = append(out, "result "+str(v["call_id"])+" "+str(v["output"]))
			case v["text"] != nil:
				walk(role, v["text"])
			default:
				walk(role, v["content"])
				walk(role, v["tool_calls"])
			}
		}
	}
	for _, m := range messages {
		walk("", m)
	}
	return strings.Join(out, "\n")
}

// plain is a text, or the first part's.
func plain(v any) string {
	if parts, ok := v.(list); ok && len(parts) > 0 {
		v = obj(parts[0])["text"]
	}
	text, _ := v.(string)
	return text
}

func (c *talk) wantConversation(i int, want ...string) {
	c.t.Helper()
	got := strings.Split(c.conversation(i), "\n")
	if c.path == responsesPath { // results stand beside their calls
		got, want = sorted(got), sorted(want)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		c.t.Errorf("request %d:\n%s\nwant:\n%s", i, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPromptPlaced(t *testing.T) {
	t.Parallel()
	each(t, script(said{text: "Hello."}), func(t *testing.T, c *talk) {
		t.Helper()
		switch c.path {
		case chatPath:
			c.items = append(c.items, dict{"role": "developer", "content": "You are the client's."})
		case responsesPath:
			c.more = dict{"instructions": "You are the client's."}
		default:
			c.more = dict{"system": "You are the client's."}
		}
		c.user("Hi.")
		if s := c.ask(); s.text != "Hello." || len(s.calls) > 0 {
			t.Errorf("the client got %+v", s)
		}
		system := c.system(0)
		for _, want := range []string{rulesText, "## Instructions of the Client\n\nYou are the client's."} {
			if strings.Count(system, want) != 1 {
				t.Errorf("%q is not once in %s", want, system)
			}
		}
		if want := map[string]string{chatPath: "developer"}[c.path]; want != "" && !strings.HasPrefix(system, want) {
			t.Errorf("the message has another role: %s", system)
		}
		c.wantConversation(0, "user Hi.")
		if end := c.ended(); end.Status != phases.TurnSucceeded || end.AssistantText.Text != "Hello." || end.UserText.Text != "Hi." {
			t.Errorf("the turn ended with %+v", end)
		}
		m := c.sink.Prompts()[0]
		if !strings.Contains(strings.Join(m.SectionIDs, " "), "client_instructions") || m.Cache.Model != "m" {
			t.Errorf("the manifest has the sections %q", m.SectionIDs)
		}
	})
}

// toolNames are the tools of a request.
func (c *talk) toolNames(i int) string {
	tools, _ := c.model.request(i)["tools"].(list)
	var names []string
	for _, tool := range tools {
		tool := obj(tool)
		if f, ok := tool["function"].(dict); ok {
			tool = f
		}
		names = append(names, str(tool["name"]))
	}
	return strings.Join(names, " ")
}

func TestPluginToolCalled(t *testing.T) {
	t.Parallel()
	each(t, script(said{text: "Let me see. ", calls: []call{{"a", "desk_add", `{"n":` + bigNumber + `}`}}}, said{text: "It is done."}), func(t *testing.T, c *talk) {
		t.Helper()
		c.user("Add.")
		s := c.ask()
		if s.text != "Let me see. It is done." || len(s.calls) > 0 || strings.Contains(s.body, "desk_add") {
			t.Errorf("the client got %q, %v in %s", s.text, s.calls, s.body)
		}
		if got, want := c.toolNames(0), "read shell edit fails desk_add huge panics slow"; got != want {
			t.Errorf("tools %q, want %q", got, want)
		}
		for _, n := range []string{c.model.body(1), c.conversation(1)} {
			if c.path != messagesPath && !strings.Contains(n, bigNumber) {
				t.Errorf("the number has changed in %s", n)
			}
		}
		if !strings.Contains(c.model.body(1), bigNumber) || !strings.Contains(c.conversation(1), "result a the sum of") {
			t.Errorf("request 1: %s", c.model.body(1))
		}
		end := c.ended()
		if end.Status != phases.TurnSucceeded || len(end.ToolEvents) != 1 || end.ToolEvents[0].Tool != "desk.add" {
			t.Errorf("the turn ended with %+v", end)
		}
		prompts := c.sink.Prompts()
		if len(prompts) != 2 || prompts[0].TurnID != prompts[1].TurnID {
			t.Fatalf("%d prompts", len(prompts))
		}
		if want := (phases.Usage{InputTokens: 200, OutputTokens: 10, CacheReadTokens: 40, CacheWriteTokens: 20}); end.Usage != want {
			t.Errorf("usage of the turn %+v, want %+v", end.Usage, want)
		}
		if used := c.sink.Usage(); len(used) != 2 || used[0].ManifestID != prompts[0].ManifestID || used[1].ManifestID != prompts[1].ManifestID || used[1].InputTokens != 100 {
			t.Errorf("reported %+v", used)
		}
		if c.path == chatPath && c.stream && strings.Contains(s.body, "usage") {
			t.Errorf("the client did not ask for the usage in %s", s.body)
		}
	})
}

// TestDeniedTool: calls that a guard denies or cannot judge do not reach the client.
func TestDeniedTool(t *testing.T) {
	t.Parallel()
	each(t, script(said{calls: []call{{"a", "shell", `{"command":"rm"}`}, {"b", "fails", `{}`}}}, said{text: "I may not."}), func(t *testing.T, c *talk) {
		t.Helper()
		c.user("Remove it.")
		s := c.ask()
		if s.text != "I may not." || len(s.calls) > 0 || strings.Contains(s.body, "rm") {
			t.Errorf("the client got %+v", s)
		}
		if got := c.conversation(1); !strings.Contains(got, `result a the call of the tool "shell" was refused by desk.guard: no shell here`) ||
			!strings.Contains(got, "result b ") || !strings.Contains(got, "permission.decision") {
			t.Errorf("request 1:\n%s", got)
		}
		if end := c.ended(); end.Status != phases.TurnSucceeded || end.ToolEvents[0].Outcome != "denied" || end.ToolEvents[1].Outcome != "denied" {
			t.Errorf("the turn ended with %+v", end)
		}
	})
}

func TestRewrittenCallAndResult(t *testing.T) {
	t.Parallel()
	each(t, script(
		said{text: "I edit.", calls: []call{{"a", "edit", `{"path":"/etc","n":` + bigNumber + `}`}}},
		said{calls: []call{{"b", "read", `{}`}}}, said{text: "Done."},
		said{text: "Again."},
	), func(t *testing.T, c *talk) {
		t.Helper()
		c.user("Edit.")
		s := c.ask()
		if len(s.calls) != 1 || !strings.Contains(s.calls[0].args, `"/safe"`) || strings.Contains(s.body, "/etc") || !strings.Contains(s.body, bigNumber) {
			t.Errorf("the client got %v in %s", s.calls, s.body)
		}
		c.result(call{id: "a", args: "the secret is 42"})
		if s := c.ask(); len(s.calls) != 1 || s.calls[0].id != "b" {
			t.Errorf("the client got %+v", s)
		}
		c.result(call{id: "b", args: "all is well"})
		if s := c.ask(); s.text != "Done." {
			t.Errorf("the client got %+v", s)
		}
		end := c.ended()
		if len(end.ToolEvents) != 2 || end.ToolEvents[0].Tool != "edit" || end.ToolEvents[1].Tool != "read" {
			t.Errorf("tool events %+v", end.ToolEvents)
		}
		c.user("And now?")
		c.ask()
		c.ended()
		for i := 1; i < 4; i++ {
			if got := c.conversation(i); !strings.Contains(got, "result a [redacted]") || strings.Contains(got, "secret") {
				t.Errorf("request %d:\n%s", i, got)
			}
		}
		if got := c.conversation(3); !strings.Contains(got, "result b all is well") {
			t.Errorf("request 3:\n%s", got)
		}
	})
}

// TestMixedCalls: a plugin's call, a denied one and two of the client's in one answer. The client sees its own two;
// the model gets all results, at the place of its calls, in this request and all later ones of the turn.
func TestMixedCalls(t *testing.T) {
	t.Parallel()
	first := said{text: "All at once.", calls: []call{
		{"p", "desk_add", `{"n":1}`}, {"r", "read", `{"f":1}`}, {"d", "shell", `{}`}, {"s", "read", `{"f":2}`},
	}}
	each(t, script(first, said{calls: []call{{"t", "read", `{"f":3}`}}}, said{text: "Done."}), func(t *testing.T, c *talk) {
		t.Helper()
		c.user("Do.")
		s := c.ask()
		if s.text != "All at once." || len(s.calls) != 2 || s.calls[0] != (call{"r", "read", `{"f":1}`}) || s.calls[1] != (call{"s", "read", `{"f":2}`}) {
			t.Errorf("the client got %+v", s)
		}
		c.result(call{id: "r", args: "one"}, call{id: "s", args: "two"})
		c.ask()
		c.result(call{id: "t", args: "three"})
		if s := c.ask(); s.text != "Done." {
			t.Errorf("the client got %+v", s)
		}
		want := []string{
			"user Do.", "assistant All at once.", `call p desk_add {"n":1}`, "call d shell {}", `call r read {"f":1}`, `call s read {"f":2}`,
			`result p the sum of {"n":1}`, `result d the call of the tool "shell" was refused by desk.guard: no shell here`, "result r one", "result s two",
		}
		for i := 1; i < 3; i++ {
			got := c.conversation(i)
			if c.path != responsesPath && !strings.HasPrefix(got, strings.Join(want, "\n")) || !strings.Contains(got, "\nuser <") {
				t.Errorf("request %d:\n%s", i, got)
			}
			for _, line := range want {
				if strings.Count(got, line) != 1 {
					t.Errorf("request %d: %q is not once in\n%s", i, line, got)
				}
			}
		}
		if got, all := c.conversation(1), c.conversation(2); !strings.HasPrefix(all, got) {
			t.Errorf("the second request does not begin with the first:\n%s\n\n%s", got, all)
		}
		if end := c.ended(); len(end.ToolEvents) != 5 || end.Status != phases.TurnSucceeded {
			t.Errorf("the turn ended with %+v", end)
		}
	})
}

// TestReminder: it stands behind the conversation, and at its place in all later requests, of a named thread also those
// of later turns.
func TestReminder(t *testing.T) {
	t.Parallel()
	for _, thread := range []string{"", "one"} {
		t.Run("thread="+thread, func(t *testing.T) {
			t.Parallel()
			each(t, script(said{calls: []call{{"a", "read", `{}`}}}, said{calls: []call{{"x", "desk_add", `{}`}}}, said{text: "Done."}, said{text: "Again."}), func(t *testing.T, c *talk) {
				t.Helper()
				c.header = map[string]string{"X-Grapnel-Thread": thread}
				c.user("Please remind me.")
				c.ask()
				c.result(call{id: "a", args: "one"})
				c.ask()
				c.ended()
				c.user("And now?")
				c.ask()
				c.ended()
				reminder := strings.TrimPrefix(c.conversation(0), "user Please remind me.\n")
				if !strings.HasPrefix(reminder, "user <") || !strings.Contains(reminder, "Do not forget.") {
					t.Fatalf("request 0:\n%s", c.conversation(0))
				}
				if thread == "" {
					c.wantConversation(3, "user Please remind me.", "call a read {}", "result a one", "assistant Done.", "user And now?")
					return
				}
				for i := 1; i < 4; i++ {
					if before, got := c.model.request(i-1), c.conversation(i); !strings.HasPrefix(got, c.conversation(i-1)) {
						t.Errorf("request %d does not begin as the one before:\n%s\n\n%s", i, got, show(before))
					}
				}
				m := c.sink.Prompts()[0]
				if len(m.Reminders) != 1 || m.ThreadID != "one" {
					t.Errorf("the manifest of thread %q has the reminders %+v", m.ThreadID, m.Reminders)
				}
			})
		})
	}
}

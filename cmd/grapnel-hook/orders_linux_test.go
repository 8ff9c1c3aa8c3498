package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
	code, out, errs := c.hook(t, strings.NewReader(payload), "--config", filepath.Join(c.home.dir, "c.yaml"), c.agent, name)
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
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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

// newInstructions is a user whose gateway brings instruction files.
func newInstructions(t *testing.T) *home {
	t.Helper()
	h := newHome(t, "grapnel")
	t.Cleanup(func() { h.end(t, syscall.SIGKILL) })
	config := `version: 1
store: sqlite:` + filepath.Join(h.dir, "grapnel.db") + `
plugins:
  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section, reminder], sections: [agents_md], see: [touched_paths, state], host: [state]}
    env: {pass: [HOME, XDG_CONFIG_HOME]}
`
	if err := os.WriteFile(filepath.Join(h.dir, "c.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	h.wake(t, "--config", filepath.Join(h.dir, "c.yaml"))
	return h
}

// TestTouchedFilesAreCurrent: behind an agent, what is said of a touched directory's files is what is on disk, and nothing that
// the agent has is said again or in other words.
func TestTouchedFilesAreCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the gateway")
	}
	t.Parallel()

	h := newInstructions(t)
	for _, agent := range []string{"gemini", "opencode"} {
		c := &conversation{home: h, agent: agent, id: agent, reads: "none", events: events(agent), texts: map[string][]string{}, dir: filepath.Join(h.dir, agent)}
		read := `,"tool_name":"read_file","tool_use_id":"c","tool_input":{"file_path":"` + c.dir + `/sub/x.go"},"tool_response":` + map[string]string{"gemini": `{"llmContent":"x"}`, "opencode": `"x"`}[agent]
		said := func(event, more string, want ...string) {
			t.Helper()
			c.send(t, event, more)
			got := c.given[len(c.given)-1]
			for _, w := range want {
				if not, is := strings.CutPrefix(w, "!"); strings.Contains(got, not) == is {
					t.Errorf("%s, %s: want %q: %s", agent, event, w, got)
				}
			}
		}
		if err := os.MkdirAll(filepath.Join(c.dir, ".git"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(c.dir, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
		c.write(t, "AGENTS.local.md")
		c.write(t, "sub/AGENTS.local.md")
		said("start", `,"source":"startup"`)
		said("prompt", `,"prompt":"hi"`, "AGENTS.local.md of")
		said("result", read, "sub/AGENTS.local.md of "+agent+", version 0", "!updated")
		said("compact", `,"trigger":"auto"`)
		said("compacted", `,"trigger":"auto"`)
		said("result", read, "sub/AGENTS.local.md of "+agent+", version 0", map[string]string{"gemini": "\nAGENTS.local.md of", "opencode": "!\nAGENTS.local.md of"}[agent])
		c.write(t, "sub/AGENTS.local.md")
		said("result", read, "version 1", "(updated", "does not apply any more")
		if err := os.Remove(filepath.Join(c.dir, "AGENTS.local.md")); err != nil {
			t.Fatal(err)
		}
		said("prompt", `,"prompt":"more"`, "!Look again", "!has changed", map[string]string{"gemini": "no longer applies", "opencode": "!AGENTS.local.md of"}[agent])
		if err := os.RemoveAll(filepath.Join(c.dir, "sub")); err != nil {
			t.Fatal(err)
		}
		said("result", read, "(removed)", "does not apply any more")
		said("result", read, "!removed")
	}
}

// TestInstructionsOnceAndCurrent: in ten orders of what may happen to a session, what the model has of the files is what is
// on disk, once. Codex reads AGENTS.md by itself, Claude Code where there is no CLAUDE.md, Gemini CLI never, and none reads
// AGENTS.local.md.
func TestInstructionsOnceAndCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the gateway")
	}
	t.Parallel()

	h := newInstructions(t)
	steps := []string{"edit", "compact", "end and resume", "restart", "kill", "compact in a turn", "edit"}
	for n := range 10 {
		random := rand.New(rand.NewPCG(uint64(n), 36))
		order := slices.Clone(steps)
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for i := range order { // prompts between some of them
			if n < 5 || random.IntN(2) == 0 {
				order[i] += ", prompt"
			}
		}
		order = strings.Split("prompt, "+strings.Join(order, ", ")+", prompt, prompt", ", ")
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			var all []*conversation
			for i, reads := range [][2]string{{"claude-code", "AGENTS.md"}, {"claude-code", "CLAUDE.md"}, {"codex", "AGENTS.md"}, {"gemini", "GEMINI.md"}} {
				c := &conversation{home: h, agent: reads[0], id: fmt.Sprintf("%d-%d", n, i), reads: reads[1], events: events(reads[0]), texts: map[string][]string{}}
				c.dir = filepath.Join(h.dir, c.id)
				if err := os.MkdirAll(filepath.Join(c.dir, ".git"), 0o700); err != nil {
					t.Fatal(err)
				}
				c.write(t, c.reads)
				c.write(t, "AGENTS.md")
				c.write(t, "AGENTS.local.md")
				c.send(t, "start", `,"source":"startup"`)
				all = append(all, c)
			}
			for _, step := range order {
				if signal := map[string]syscall.Signal{"restart": syscall.SIGTERM, "kill": syscall.SIGKILL}[step]; signal != 0 {
					h.end(t, signal)
					h.wake(t, "--config", filepath.Join(h.dir, "c.yaml"))
				}
				for _, c := range all {
					if c.do(t, step); t.Failed() {
						t.Fatalf("%s, at %q of %q", c.agent, step, order)
					}
				}
			}
		})
	}
}

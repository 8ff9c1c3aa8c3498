package install

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

// TestEvents: only what somebody subscribes to is registered, and what that depends on.
func TestEvents(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		host       string
		subscribed []string
		want       []string
	}{
		{"claude-code", nil, nil},
		{"claude-code", []string{"tool.pre_call"}, []string{"PreToolUse", "UserPromptExpansion", "PreSkillShellCommand", "ConfigChange"}},
		{"codex", []string{"turn.pre_prompt_compile", "session.end"}, []string{"UserPromptSubmit", "SubagentStart", "PostModelRequest", "PostCompact", "SessionEnd"}},
		{"claude-code", []string{"turn.post_turn"}, []string{
			"UserPromptSubmit", "SubagentStart", "Stop", "SubagentStop", "StopFailure",
			"InstructionsLoaded", "PreModelSwitch", "PostModelSwitch", "PermissionDenied", "ConfigChange",
		}},
		{"cursor", []string{"tool.pre_call"}, []string{"preToolUse"}},
		{"claude-code", []string{"session.start", "tool.post_call"}, []string{"SessionStart", "PostToolUse", "PostToolUseFailure", "ConfigChange"}},
	} {
		got := Lookup(tt.host).WantedEvents(func(p string) bool { return slices.Contains(tt.subscribed, p) })
		if len(got)+len(tt.want) > 0 && !slices.Equal(got, tt.want) {
			t.Errorf("%s with %v: %v, want %v", tt.host, tt.subscribed, got, tt.want)
		}
	}
}

var update = flag.Bool("update", false, "write what came out into testdata")

// TestWritten pins what is written for each host, which the schemas of their vendors take: hooks, by command, and the MCP server.
func TestWritten(t *testing.T) {
	t.Parallel()

	var got bytes.Buffer
	for _, a := range agents.All() {
		h := &Host{a}
		if h.Plugin != "" {
			continue
		}
		for _, c := range []*agent.Command{
			{Program: "/g/grapnel-hook", URL: "http://127.0.0.1:1/"},
			{Program: "/a b/grapnel-hook", Socket: "/s", Config: "/c.yaml", NoStart: true, OnFailure: "allow", Timeout: time.Minute},
		} {
			for _, e := range h.Entries(c, slices.Sorted(maps.Keys(h.Events))) {
				if m := h.Events[e.Event]; m.Step == agent.StepSessionStart || m.Step == agent.StepConfig || m.Step == agent.StepPrompt || m.Step == agent.StepToolCall {
					fmt.Fprintf(&got, "%s %s %s\n", h.Name, e.Event, e.value)
				}
			}
		}
		fmt.Fprintf(&got, "%s server %s\n", h.Name, agent.Marshal(server(h)))
	}
	const golden = "testdata/written.txt"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestQuote: a shell gives a word back as it was, and the first word of a command is found as a shell finds it.
func TestQuote(t *testing.T) {
	t.Parallel()

	for _, word := range []string{"/plain/grapnel-hook", "", "/it's me/x", "a\nb", `$HOME "x" \ ; & | *`, "~/x", "-n", "é"} {
		line := agent.Quote(word) + " next"
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "printf '%s|' "+line).Output()
		if err != nil || string(out) != word+"|next|" {
			t.Errorf("%q as %s: %q, %v", word, line, out, err)
		}
		if got := firstWord(line); got != word {
			t.Errorf("the first word of %s is %q", line, got)
		}
	}
	for line, want := range map[string]string{
		`"/a b"/x y`: "/a b/x", `a\ b c`: "a b", "x;y": "x", "  x": "x", "": "",
		"\"/\\$a\\`b\\\"\\\\\\c\"/x y": "/$a`b\"\\\\c/x", `"/a b/x y`: "/a b/x y", `/a/'x y`: "/a/x y", "/a\\\n/x y": "/a/x",
	} {
		if got := firstWord(line); got != want {
			t.Errorf("the first word of %q is %q, want %q", line, got, want)
		}
	}
}

// TestPaths: each scope has its file, and a variable of the host moves the user's.
func TestPaths(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		host        string
		scope       agent.Scope
		moved, want string
	}{
		{"claude-code", agent.User, "", "/h/.claude/settings.json"},
		{"claude-code", agent.User, "/moved", "/moved/settings.json"},
		{"claude-code", agent.Project, "/moved", "/p/.claude/settings.json"},
		{"claude-code", agent.Local, "", "/p/.claude/settings.local.json"},
		{"codex", agent.User, "/moved", "/moved/hooks.json"},
	} {
		env := func(name string) string {
			return map[string]string{"CODEX_HOME": tt.moved, "CLAUDE_CONFIG_DIR": tt.moved}[name]
		}
		if got := Lookup(tt.host).Path(tt.scope, "/h", "/p", env); got != tt.want {
			t.Errorf("%s, %s: %s, want %s", tt.host, tt.scope, got, tt.want)
		}
	}
	if got := Lookup("codex").ConfigPath("/h", func(string) string { return "/moved" }); got != "/moved/config.toml" {
		t.Errorf("Codex's configuration is %s", got)
	}
}

// TestSynthetic: what is made up is what the agent's codec takes for the event.
func TestSynthetic(t *testing.T) {
	t.Parallel()

	for _, name := range agents.Names() {
		for event, m := range Lookup(name).Events {
			payload, order := Lookup(name).Synthetic(event, "s", "/d")
			if e, err := agents.Decode(name, payload); order > 0 && m.Step != agent.StepNone && (err != nil || e.Step != m.Step && m.Step != agent.StepToolFailed || e.Dir != "/d" || e.SessionID != "s") {
				t.Errorf("%s, %s: %+v, %v", name, event, e, err)
			}
		}
	}
}

// TestRead: what hosts make of what hooks give. The rules of each agent for scripts are tested in plugins/commandhooks.
func TestRead(t *testing.T) {
	t.Parallel()

	const (
		deny    = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`
		ask     = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"hm"}}`
		rewrite = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"ls"}}}`
		context = `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"hello"}}`
	)
	of := func(text, event string) Run {
		return Run{Stdout: regexp.MustCompile("PreToolUse|UserPromptSubmit").ReplaceAllString(text, event)}
	}
	for _, tt := range []struct {
		host, event string
		run         Run
		want        Effect
	}{
		{"claude-code", "PreToolUse", Run{Stdout: `{"foo":1,` + deny[1:]}, Blocked},
		{"codex", "PreToolUse", Run{Stdout: `{"foo":1,` + deny[1:]}, Failed},
		{"claude-code", "PreToolUse", Run{Stdout: ask}, Asks},
		{"codex", "PreToolUse", Run{Stdout: rewrite}, Rewrites},
		{"codex", "PostToolUse", Run{Stdout: `{"decision":"block","reason":"x"}`}, Rewrites},
		{"claude-code", "UserPromptSubmit", Run{Stdout: context}, Context},
		{"claude-code", "PreSkillShellCommand", of(deny, "PreSkillShellCommand"), Blocked},
		{"claude-code", "PreSkillShellCommand", of(ask, "PreSkillShellCommand"), Blocked},
		{"claude-code", "PreSkillShellCommand", of(rewrite, "PreSkillShellCommand"), Blocked},
		{"claude-code", "UserPromptExpansion", Run{Stdout: `{"decision":"block","reason":"no"}`}, Blocked},
		{"claude-code", "UserPromptExpansion", of(context, "UserPromptExpansion"), Context},
		{"codex", "PreToolUse", Run{Failed: "no such file"}, Failed},
		{"claude-code", "PreToolUse", Run{ExitCode: 1, Stderr: "oh"}, Failed},
		{"claude-code", "PreToolUse", Run{}, GoesOn},
		{"copilot", "PreToolUse", Run{ExitCode: 1}, Blocked},
		{"copilot", "PostToolUse", Run{ExitCode: 1}, Failed},
		{"gemini", "BeforeTool", Run{Stdout: `{"decision":"ask"}`}, Asks},
	} {
		d := &Definition{Event: tt.event}
		if got := Lookup(tt.host).Read(d, &tt.run); got.Effect != tt.want {
			t.Errorf("%s, %s, %+v: %+v, want %s", tt.host, tt.event, tt.run, got, tt.want)
		}
		d.OnFailure = "block"
		if got := Lookup(tt.host).Read(d, &tt.run); got.Effect == Failed {
			t.Errorf("%s, %s, %+v with onFailure: %+v", tt.host, tt.event, tt.run, got)
		}
	}
}

// TestSkips: what the host's own configuration says against a definition.
func TestSkips(t *testing.T) {
	t.Parallel()

	h := Lookup("codex")
	f := parse(t, h, files["other hooks"])
	if err := f.Add(&Wanted{Entries: h.Entries(command, []string{"PreToolUse"})}); err != nil {
		t.Fatal(err)
	}
	d := &f.Ours()[0]
	const trusted = "[hooks.state.\"/h.json:pre_tool_use:1:0\"] # by /hooks\ntrusted_hash = \"sha256:00\"\n"
	for config, want := range map[string]string{
		"":                                      "not trusted",
		trusted:                                 "",
		trusted + "enabled = false\n":           "switched off",
		"[features]\nhooks = false\n" + trusted: "feature hooks is off",
		strings.Replace(trusted, ":1:", ":0:", 1): "not trusted",
		"[hooks": "cannot be read",
		"[[hooks.PreToolUse]]\nmatcher = \"x\"\n" + trusted: "",
	} {
		got := f.Skips(d, "/h.json", []byte(config))
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", config, got, want)
		}
	}
	claude := parse(t, Lookup("claude-code"), `{"disableAllHooks": true}`)
	if got := claude.Skips(d, "", nil); !strings.Contains(got, "disableAllHooks") {
		t.Errorf("hooks are switched off, and it says %q", got)
	}
}

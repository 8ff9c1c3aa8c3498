package agenthooks

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/bridge"
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
		got := Lookup(tt.host).Events(func(p string) bool { return slices.Contains(tt.subscribed, p) })
		if len(got)+len(tt.want) > 0 && !slices.Equal(got, tt.want) {
			t.Errorf("%s with %v: %v, want %v", tt.host, tt.subscribed, got, tt.want)
		}
	}
}

// TestEntries pins what is written for each host.
func TestEntries(t *testing.T) {
	t.Parallel()

	c := &Command{Program: "/a b/grapnel-hook", Socket: "/s", Config: "/c.yaml"}
	for _, tt := range []struct {
		host    string
		command *Command
		event   event
		want    string
	}{
		{"claude-code", &Command{Program: "/g/grapnel-hook", OnFailure: "allow"}, event{"PreToolUse", bridge.StepToolCall}, `{"hooks":[{"type":"command","command":"/g/grapnel-hook","args":["--on-failure","allow","claude-code","PreToolUse"]}]}`},
		{"claude-code", &Command{Program: "/g/grapnel-hook"}, event{"PreSkillShellCommand", bridge.Steps("claude-code")["PreSkillShellCommand"]}, `{"hooks":[{"type":"command","command":"/g/grapnel-hook","args":["claude-code","PreSkillShellCommand"],"onFailure":"block"}]}`},
		{"claude-code", &Command{Program: "/g/grapnel-hook"}, event{"ConfigChange", bridge.StepConfig}, `{"hooks":[{"type":"command","command":"/g/grapnel-hook","args":["claude-code","ConfigChange"],"onFailure":"block"}]}`},
		{"claude-code", &Command{Program: "/g/grapnel-hook"}, event{"InstructionsLoaded", bridge.StepFile}, `{"hooks":[{"type":"command","command":"/g/grapnel-hook","args":["--on-failure","allow","claude-code","InstructionsLoaded"]}]}`},
		{"claude-code", &Command{Program: "/g/grapnel-hook", URL: "http://127.0.0.1:1/"}, event{"PreToolUse", bridge.StepToolCall}, `{"hooks":[{"type":"http","url":"http://127.0.0.1:1/hook/claude-code","headers":{"Authorization":"Bearer $GRAPNEL_TOKEN"},"allowedEnvVars":["GRAPNEL_TOKEN"],"onFailure":"block"}]}`},
		{"claude-code", &Command{Program: "/g/grapnel-hook", URL: "http://127.0.0.1:1", NoStart: true}, event{"SessionStart", bridge.StepSessionStart}, `{"hooks":[{"type":"command","command":"/g/grapnel-hook","args":["--no-start","--on-failure","allow","claude-code","SessionStart"]}]}`},
		{"codex", c, event{"PreToolUse", bridge.StepToolCall}, `{"hooks":[{"type":"command","command":"'/a b/grapnel-hook' --socket /s --config /c.yaml codex PreToolUse"}]}`},
		{"copilot", c, event{"preToolUse", bridge.StepToolCall}, `{"type":"command","bash":"'/a b/grapnel-hook' --socket /s --config /c.yaml copilot preToolUse"}`},
		{"cursor", c, event{"beforeSubmitPrompt", bridge.StepPrompt}, `{"command":"'/a b/grapnel-hook' --socket /s --config /c.yaml cursor beforeSubmitPrompt","failClosed":true}`},
		{"cursor", &Command{Program: "/g/grapnel-hook"}, event{"stop", bridge.StepStop}, `{"command":"/g/grapnel-hook --on-failure allow cursor stop"}`},
		{"gemini", &Command{Program: "/g/grapnel-hook"}, event{"BeforeTool", bridge.StepToolCall}, `{"hooks":[{"type":"command","command":"/g/grapnel-hook gemini BeforeTool"}]}`},
		{"vscode", &Command{Program: "/g/grapnel-hook"}, event{"PreToolUse", bridge.StepToolCall}, `{"type":"command","command":"/g/grapnel-hook vscode PreToolUse"}`},
	} {
		i := slices.IndexFunc(hosts, func(h *Host) bool { return h.Name == tt.host })
		got, err := encode(hosts[i].entry(hosts[i], tt.command, tt.event))
		if diff := cmp.Diff(tt.want, string(got)); err != nil || diff != "" {
			t.Errorf("%s, %s: %v (-want +got)\n%s", tt.host, tt.event.name, err, diff)
		}
	}
}

// TestQuote: a shell gives a word back as it was, and the first word of a command is found as a shell finds it.
func TestQuote(t *testing.T) {
	t.Parallel()

	for _, word := range []string{"/plain/grapnel-hook", "", "/it's me/x", "a\nb", `$HOME "x" \ ; & | *`, "~/x", "-n", "é"} {
		line := quote(word) + " next"
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "printf '%s|' "+line).Output()
		if err != nil || string(out) != word+"|next|" {
			t.Errorf("%q as %s: %q, %v", word, line, out, err)
		}
		if got := firstWord(line); got != word {
			t.Errorf("the first word of %s is %q", line, got)
		}
	}
	for line, want := range map[string]string{`"/a b"/x y`: "/a b/x", `a\ b c`: "a b", "x;y": "x", "  x": "x", "": ""} {
		if got := firstWord(line); got != want {
			t.Errorf("the first word of %q is %q, want %q", line, got, want)
		}
	}
}

// TestPaths: each scope has its file, and a variable of the host moves the user's.
func TestPaths(t *testing.T) {
	t.Parallel()

	none := func(string) string { return "" }
	moved := func(name string) string {
		if name == "CODEX_HOME" || name == "CLAUDE_CONFIG_DIR" {
			return "/moved"
		}
		return ""
	}
	for _, tt := range []struct {
		host  string
		scope Scope
		env   func(string) string
		want  string
	}{
		{"claude-code", User, none, "/h/.claude/settings.json"},
		{"claude-code", User, moved, "/moved/settings.json"},
		{"claude-code", Project, moved, "/p/.claude/settings.json"},
		{"claude-code", Local, none, "/p/.claude/settings.local.json"},
		{"codex", User, none, "/h/.codex/hooks.json"},
		{"codex", User, moved, "/moved/hooks.json"},
		{"codex", Project, moved, "/p/.codex/hooks.json"},
	} {
		if got := Lookup(tt.host).Path(tt.scope, "/h", "/p", tt.env); got != tt.want {
			t.Errorf("%s, %s: %s, want %s", tt.host, tt.scope, got, tt.want)
		}
	}
	if got := Lookup("codex").ConfigPath("/h", moved); got != "/moved/config.toml" {
		t.Errorf("Codex's configuration is %s", got)
	}
	if got := Lookup("codex").Scopes(); !slices.Equal(got, []Scope{User, Project}) {
		t.Errorf("Codex has the scopes %v", got)
	}
}

// TestSynthetic: what is made up is what package bridge takes for the event.
func TestSynthetic(t *testing.T) {
	t.Parallel()

	for _, name := range Hosts() {
		sent := 0
		for event, step := range bridge.Steps(name) {
			payload, order, err := Lookup(name).Synthetic(event, "s", "/d")
			if err != nil || order == 0 {
				continue
			}
			sent++
			if e, err := bridge.Decode(name, payload); err != nil || e.Step != step || e.Dir != "/d" || e.SessionID != "s" {
				t.Errorf("%s, %s: %+v, %v", name, event, e, err)
			}
		}
		if sent < 4 {
			t.Errorf("%s has %d events that can be made up", name, sent)
		}
	}
}

// TestRead: what hosts make of what hooks give, which differs.
func TestRead(t *testing.T) {
	t.Parallel()

	const (
		deny    = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`
		ask     = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"hm"}}`
		rewrite = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"ls"}}}`
		context = `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"hello"}}`
	)
	for _, tt := range []struct {
		name, host, event string
		run               Run
		want              Effect
	}{
		{"nothing", "claude-code", "PreToolUse", Run{}, GoesOn},
		{"deny", "claude-code", "PreToolUse", Run{Stdout: deny}, Blocked},
		{"deny", "codex", "PreToolUse", Run{Stdout: deny}, Blocked},
		{"deny with another field", "claude-code", "PreToolUse", Run{Stdout: `{"foo":1,` + deny[1:]}, Blocked},
		{"deny with another field", "codex", "PreToolUse", Run{Stdout: `{"foo":1,` + deny[1:]}, Failed},
		{"deny with a number", "claude-code", "PreToolUse", Run{Stdout: strings.Replace(deny, `"no"`, `7`, 1)}, Failed},
		{"ask", "claude-code", "PreToolUse", Run{Stdout: ask}, Asks},
		{"ask", "codex", "PreToolUse", Run{Stdout: ask}, Failed},
		{"rewrite", "claude-code", "PreToolUse", Run{Stdout: rewrite}, Rewrites},
		{"rewrite", "codex", "PreToolUse", Run{Stdout: rewrite}, Rewrites},
		{"allow without a rewrite", "codex", "PreToolUse", Run{Stdout: strings.Replace(rewrite, `,"updatedInput":{"command":"ls"}`, "", 1)}, Failed},
		{"a result", "claude-code", "PostToolUse", Run{Stdout: `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":"x"}}`}, Rewrites},
		{"a result", "codex", "PostToolUse", Run{Stdout: `{"decision":"block","reason":"x"}`}, Rewrites},
		{"context", "claude-code", "UserPromptSubmit", Run{Stdout: context}, Context},
		{"context", "codex", "UserPromptSubmit", Run{Stdout: context}, Context},
		{"a text", "claude-code", "UserPromptSubmit", Run{Stdout: "hello"}, Context},
		{"a text", "claude-code", "PreToolUse", Run{Stdout: "hello"}, GoesOn},
		{"a blocked prompt", "codex", "UserPromptSubmit", Run{Stdout: `{"decision":"block","reason":"no"}`}, Blocked},
		{"go on", "claude-code", "Stop", Run{Stdout: `{"decision":"block","reason":"more"}`}, Blocked},
		{"exit 2", "claude-code", "PreToolUse", Run{ExitCode: 2, Stderr: "no", Stdout: rewrite}, Blocked},
		{"exit 2", "codex", "PreToolUse", Run{ExitCode: 2, Stderr: "no"}, Blocked},
		{"exit 2 without a reason", "codex", "PreToolUse", Run{ExitCode: 2}, Failed},
		{"exit 2 of what cannot be blocked", "claude-code", "SessionStart", Run{ExitCode: 2, Stderr: "no"}, GoesOn},
		{"exit 1", "claude-code", "PreToolUse", Run{ExitCode: 1, Stderr: "oh"}, Failed},
		{"exit 1 with an answer", "claude-code", "PreToolUse", Run{ExitCode: 1, Stdout: deny}, Blocked},
		{"exit 1 with an answer", "codex", "PreToolUse", Run{ExitCode: 1, Stdout: deny}, Failed},
		{"deny of a skill's line", "claude-code", "PreSkillShellCommand", Run{Stdout: strings.Replace(deny, "PreToolUse", "PreSkillShellCommand", 1)}, Blocked},
		{"ask for a skill's line", "claude-code", "PreSkillShellCommand", Run{Stdout: strings.Replace(ask, "PreToolUse", "PreSkillShellCommand", 1)}, Blocked},
		{"rewrite of a skill's line", "claude-code", "PreSkillShellCommand", Run{Stdout: strings.Replace(rewrite, "PreToolUse", "PreSkillShellCommand", 1)}, Blocked},
		{"a typed skill, blocked", "claude-code", "UserPromptExpansion", Run{Stdout: `{"decision":"block","reason":"no"}`}, Blocked},
		{"context for a typed skill", "claude-code", "UserPromptExpansion", Run{Stdout: strings.Replace(context, "UserPromptSubmit", "UserPromptExpansion", 1)}, Context},
		{"no program", "codex", "PreToolUse", Run{Failed: "no such file"}, Failed},
	} {
		d := &Definition{Event: tt.event}
		if got := Lookup(tt.host).Read(d, &tt.run); got.Effect != tt.want {
			t.Errorf("%s, %s, %s: %+v, want %s", tt.host, tt.event, tt.name, got, tt.want)
		}
		d.OnFailure = "block"
		if got := Lookup(tt.host).Read(d, &tt.run); got.Effect == Failed {
			t.Errorf("%s, %s, %s with onFailure: %+v", tt.host, tt.event, tt.name, got)
		}
	}
}

// TestReadOthers: the names that the other hosts have for a decision.
func TestReadOthers(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		host, event string
		run         Run
		want        Effect
	}{
		{"cursor", "preToolUse", Run{Stdout: `{"permission":"deny","agent_message":"no"}`}, Blocked},
		{"cursor", "beforeSubmitPrompt", Run{Stdout: `{"continue":false}`}, Blocked},
		{"cursor", "preToolUse", Run{Stdout: `no`}, Failed},
		{"copilot", "PreToolUse", Run{Stdout: `{"permissionDecision":"deny","permissionDecisionReason":"no"}`}, Blocked},
		{"copilot", "PreToolUse", Run{ExitCode: 1}, Blocked},
		{"copilot", "PostToolUse", Run{ExitCode: 1}, Failed},
		{"gemini", "BeforeTool", Run{Stdout: `{"decision":"block","reason":"no"}`}, Blocked},
		{"gemini", "BeforeTool", Run{Stdout: `{"decision":"ask"}`}, Asks},
		{"gemini", "BeforeTool", Run{ExitCode: 1}, Failed},
		{"gemini", "BeforeTool", Run{Stdout: `{"hookSpecificOutput":{"tool_input":{"a":1}}}`}, Rewrites},
		{"vscode", "PreToolUse", Run{Stdout: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}`}, Blocked},
		{"vscode", "PreToolUse", Run{ExitCode: 2, Stderr: "no"}, Blocked},
	} {
		if got := Lookup(tt.host).Read(&Definition{Event: tt.event}, &tt.run); got.Effect != tt.want {
			t.Errorf("%s, %+v: %+v, want %s", tt.host, tt.run, got, tt.want)
		}
	}
}

// TestSkips: what the host's own configuration says against a definition.
func TestSkips(t *testing.T) {
	t.Parallel()

	h := Lookup("codex")
	f := parse(t, h, files["other hooks"])
	if err := f.Add(&Wanted{Entries: entries(t, h, command, "PreToolUse")}); err != nil {
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

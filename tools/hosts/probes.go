package main

import (
	"strings"
	"time"
)

// lateTime is longer than any hook of a probe may take.
const lateTime = 30 * time.Second

// probe is one run of an agent. Those without a canned answer have all events go through grapnel-hook to a gateway.
type probe struct {
	Name string
	// Event has the canned answer, or the fault; the others have no hook then.
	Event string
	canned
	Missing   bool   // the hook is a program that does not exist
	OnFailure string // Claude Code's
	HTTP      bool   // the hooks are posted to the gateway
	Dead      bool   // nobody listens where the gateway should be
	OrBlock   bool   // Codex: whatever exit code is not 0 becomes 2
	Untrusted bool   // Codex: the hooks are not trusted
	Forbidden bool   // the host's own rules do not permit the call
	Tool      string // what the model calls, if it is not the shell
	Server    bool   // the agent has the MCP server "probe"
	Kill      bool   // the gateway is killed as soon as the hook hangs
	Install   bool   // hooks and MCP server are what grapnel install writes
	Prompt    string // userPrompt by default
	Preset    string // the agent finds instruction files, and Grapnel has this preset for them
	Uninstall bool   // and grapnel uninstall has taken them out again
}

// canned is what the hook of a probe does.
type canned struct {
	Answer string        `json:"answer"`
	Exit   int           `json:"exit"`
	Crash  bool          `json:"crash"`
	Sleep  time.Duration `json:"sleep"`
}

func (p *probe) isCanned() bool { return p.Event != "" }

// title names the probe and the tool.
func (p *probe) title() string {
	if p.Tool == "" {
		return p.Name
	}
	return p.Name + " of " + p.Tool
}

// way says how the hook is reached.
func (p *probe) way() string {
	way := "grapnel"
	switch {
	case p.Preset != "":
		way = "alone"
	case p.Install:
		way = "installed"
	case p.HTTP:
		way = "http"
	case p.isCanned():
		way = "command"
	}
	if p.OnFailure != "" {
		way += ", onFailure " + p.OnFailure
	}
	if p.OrBlock {
		way += ", || exit 2"
	}
	return way
}

// specific is an answer with hookSpecificOutput.
func specific(event, fields string) string {
	return `{"hookSpecificOutput":{"hookEventName":"` + event + `",` + fields + `}}`
}

const (
	preToolUse  = "PreToolUse"
	postToolUse = "PostToolUse"
)

func answer(name, event, text string) probe {
	return probe{Name: name, Event: event, canned: canned{Answer: text}}
}

// common are the probes of all hosts.
func common() []probe {
	deny := `"permissionDecision":"deny","permissionDecisionReason":"` + because + `"`
	update := `"updatedInput":{"command":"` + command(rewritten) + `"}`
	context := `"additionalContext":"` + brought + `"`
	return []probe{
		{Name: "deny"},
		{Name: "ask"},
		{Name: "rewrite"},
		{Name: "redact"},
		{Name: "withhold"},
		{Name: "context"},
		{Name: "deny-prompt"},
		{Name: "go-on"},
		{Name: "late"},
		{Name: "dead", Dead: true},
		{Name: "killed", Kill: true},
		{Name: "deny", Install: true},
		{Name: "tool", Install: true, Tool: ourTool},
		{Name: "uninstalled", Install: true, Uninstall: true, Tool: ourTool},

		answer("deny, an unknown field", preToolUse, specific(preToolUse, deny+`,"foo":1`)),
		answer("deny, an unknown field at the top", preToolUse, `{"foo":1,`+specific(preToolUse, deny)[1:]),
		answer("deny, a reason of a wrong type", preToolUse, specific(preToolUse, `"permissionDecision":"deny","permissionDecisionReason":7`)),
		answer("ask", preToolUse, specific(preToolUse, `"permissionDecision":"ask","permissionDecisionReason":"`+because+`"`)),
		answer("allow", preToolUse, specific(preToolUse, `"permissionDecision":"allow"`)),
		answer("rewrite without a decision", preToolUse, specific(preToolUse, update)),
		answer("rewrite with allow", preToolUse, specific(preToolUse, `"permissionDecision":"allow",`+update)),
		answer("rewrite with ask", preToolUse, specific(preToolUse, `"permissionDecision":"ask",`+update)),
		answer("no JSON", preToolUse, `{"hookSpecificOutput":`),
		answer("deny behind a greeting", preToolUse, "hello\n"+specific(preToolUse, deny)),
		answer("deny behind a byte order mark", preToolUse, "\ufeff"+specific(preToolUse, deny)),
		answer("deny behind ESC[0m", preToolUse, "\x1b[0m"+specific(preToolUse, deny)),

		answer("context", "SessionStart", specific("SessionStart", context)),
		answer("context", "UserPromptSubmit", specific("UserPromptSubmit", context)),
		answer("context", preToolUse, specific(preToolUse, context)),
		answer("context", postToolUse, specific(postToolUse, context)),
		answer("context of 40,000 characters", "UserPromptSubmit", specific("UserPromptSubmit", `"additionalContext":"`+strings.Repeat("x ", 20000)+brought+`"`)),

		answer("result as a text", postToolUse, specific(postToolUse, `"updatedToolOutput":"`+redacted+`"`)),
		answer("block", postToolUse, `{"decision":"block","reason":"`+redacted+`"}`),
		answer("continue: false", postToolUse, `{"continue":false,"stopReason":"`+redacted+`"}`),
		answer("block", "Stop", `{"decision":"block","reason":"`+because+`"}`),

		{Name: "exit code 2", Event: preToolUse, canned: canned{Exit: 2}},
		{Name: "exit code 1", Event: preToolUse, canned: canned{Exit: 1}},
		{Name: "crash", Event: preToolUse, canned: canned{Crash: true}},
		{Name: "no such program", Event: preToolUse, Missing: true},
		{Name: "timeout", Event: preToolUse, canned: canned{Sleep: lateTime}},
	}
}

func claudeProbes() []probe {
	update := `"updatedInput":{"command":"` + command(rewritten) + `"}`
	forbidden := func(p probe) probe {
		p.Name, p.Forbidden = p.Name+", not permitted", true
		return p
	}
	of := func(tool string, p probe) probe {
		p.Tool, p.Server = tool, tool == mcpTool
		return p
	}
	file := func(content string) string {
		return `"updatedToolOutput":{"type":"text","file":{"filePath":"x","content":"` + content + `","numLines":1,"startLine":1,"totalLines":1}}`
	}
	return append(
		common(),
		probe{Name: "instructions", Preset: "claude"},
		probe{Name: "mention of a file", Event: preToolUse, canned: canned{Exit: 2}, Prompt: "Look at @file.txt"},
		probe{Name: "rewrite-unpermitted", Forbidden: true},
		probe{Name: "deny", HTTP: true},
		probe{Name: "dead", HTTP: true, Dead: true},
		probe{Name: "dead", HTTP: true, Dead: true, OnFailure: "block"},
		probe{Name: "killed", HTTP: true, Kill: true},
		probe{Name: "killed", HTTP: true, Kill: true, OnFailure: "block"},

		forbidden(probe{Name: "nothing", Event: "Stop"}),
		forbidden(answer("rewrite without a decision", preToolUse, specific(preToolUse, update))),
		forbidden(answer("rewrite with allow", preToolUse, specific(preToolUse, `"permissionDecision":"allow",`+update))),

		answer("result in the tool's shape", postToolUse, specific(postToolUse, `"updatedToolOutput":{"stdout":"`+redacted+`","stderr":"","interrupted":false,"isImage":false}`)),
		answer("result without a field", postToolUse, specific(postToolUse, `"updatedToolOutput":{"stdout":"`+redacted+`"}`)),
		answer("result with a field more", postToolUse, specific(postToolUse, `"updatedToolOutput":{"stdout":"`+redacted+`","stderr":"","interrupted":false,"foo":1}`)),
		answer("result as a text, and block", postToolUse, `{"decision":"block","reason":"`+because+`",`+specific(postToolUse, `"updatedToolOutput":"`+redacted+`"`)[1:]),
		of("Read", answer("result in the tool's shape", postToolUse, specific(postToolUse, file(redacted)))),
		of("Read", answer("result as a text", postToolUse, specific(postToolUse, `"updatedToolOutput":"`+redacted+`"`))),
		of("Read", answer("result as another type", postToolUse, specific(postToolUse, `"updatedToolOutput":{"type":"text","file":{"content":"`+redacted+`"}}`))),

		of(mcpTool, answer("result as a text", postToolUse, specific(postToolUse, `"updatedToolOutput":"`+redacted+`"`))),
		of(mcpTool, answer("result as a list", postToolUse, specific(postToolUse, `"updatedToolOutput":[{"type":"text","text":"`+redacted+`"}]`))),
		of("Read", probe{Name: "withhold"}),
		of("Grep", probe{Name: "withhold"}),
		of("Glob", probe{Name: "withhold"}),
		of("Write", probe{Name: "withhold"}),
		of(mcpTool, probe{Name: "withhold"}),
		of("Read", probe{Name: "redact"}),
		of(mcpTool, probe{Name: "redact"}),

		probe{Name: "exit code 1", Event: preToolUse, canned: canned{Exit: 1}, OnFailure: "block"},
		probe{Name: "crash", Event: preToolUse, canned: canned{Crash: true}, OnFailure: "block"},
		probe{Name: "no such program", Event: preToolUse, Missing: true, OnFailure: "block"},
		probe{Name: "timeout", Event: preToolUse, canned: canned{Sleep: lateTime}, OnFailure: "block"},
		probe{Name: "no JSON", Event: preToolUse, canned: canned{Answer: `{"hookSpecificOutput":`}, OnFailure: "block"},
		probe{Name: "deny, a reason of a wrong type", Event: preToolUse, canned: canned{Answer: specific(preToolUse, `"permissionDecision":"deny","permissionDecisionReason":7`)}, OnFailure: "block"},
	)
}

func codexProbes() []probe {
	return append(
		common(),
		probe{Name: "instructions", Preset: "codex"},
		probe{Name: "deny, not trusted", Event: preToolUse, canned: canned{Exit: 2}, Untrusted: true},
		probe{Name: "crash, or blocked", Event: preToolUse, canned: canned{Crash: true}, OrBlock: true},
		probe{Name: "no such program, or blocked", Event: preToolUse, Missing: true, OrBlock: true},
		probe{Name: "timeout, or blocked", Event: preToolUse, canned: canned{Sleep: lateTime}, OrBlock: true},
		probe{Name: "nothing, or blocked", Event: preToolUse, OrBlock: true},
		probe{Name: "deny", OrBlock: true},
		answer("result as another tool's", postToolUse, specific(postToolUse, `"updatedMCPToolOutput":"`+redacted+`"`)),
	)
}

// installed are probes of an agent for which everything is as grapnel install writes it.
func installed() (list []probe) {
	for _, name := range []string{"deny", "ask", "rewrite", "redact", "withhold", "context", "deny-prompt", "go-on", "late"} {
		list = append(list, probe{Name: name, Install: true})
	}
	return list
}

func geminiProbes() []probe {
	return append(
		installed(),
		probe{Name: "tool", Install: true, Tool: "mcp_grapnel_tell"},
		probe{Name: "uninstalled", Install: true, Uninstall: true},
		probe{Name: "uninstalled", Install: true, Uninstall: true, Tool: "mcp_grapnel_tell"},
		probe{Name: "instructions", Preset: "gemini"},
	)
}

func opencodeProbes() []probe {
	return append(
		installed(),
		probe{Name: "dead", Install: true, Dead: true},
		probe{Name: "uninstalled", Install: true, Uninstall: true},
		probe{Name: "instructions", Preset: "opencode"},
	)
}

// command is what the model has the shell run: it leaves a marker and prints a secret.
func command(marker string) string { return "touch " + marker + "; echo " + secret }

// Package copilot describes Copilot CLI and its cloud agent.
//
// Its contract, for 1.0.102: content/copilot/reference/hooks-reference.md of github/docs at 05da5bc, and beside it
// how-tos/copilot-cli/customize-copilot/add-mcp-servers.md, and types.d.ts of @github/copilot-sdk 1.0.14. Events are written in
// PascalCase: the payloads of the others do not name their event, but for userPromptTransformed, the one that can give the model
// a text with a prompt. Scripts of files may have both.
package copilot

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

const transformed = "userPromptTransformed"

// Agent describes the agent.
func Agent() *agent.Agent {
	a := &agent.Agent{
		Name: "copilot", Events: events(), Decode: agent.Decoder(decode), Encode: encode, Scripts: scripts(),
		Install: agent.Install{
			Files:   map[agent.Scope]string{agent.User: ".copilot/hooks/grapnel.json", agent.Project: ".github/hooks/grapnel.json"},
			Servers: map[agent.Scope]string{agent.User: ".copilot/mcp-config.json", agent.Project: ".github/mcp.json"}, ServersKey: "mcpServers",
			Server: server, Home: "COPILOT_HOME", Shell: []string{"bash", "-c"}, Versioned: true,
			Entry: func(c *agent.Command, a *agent.Agent, event string) agent.Handler {
				return agent.Handler{Type: "command", Bash: c.Line(a, event)}
			},
			Notes: []string{"Copilot CLI also runs the hooks in .claude/settings.json: install one of both in a project, or every call is judged twice"},
		},
		Contract: &agent.Contract{
			Package: "@github/copilot-sdk", Files: "dist/types.d.ts", What: "SessionHooks in types.d.ts",
			From: []string{"interface SessionHooks {"}, To: "\n}", Name: `(?m)^\s*on(\w+)\?:`,
			Renamed: map[string]string{"UserPromptSubmitted": "UserPromptSubmit", "AgentStop": "Stop", "UserPromptTransformed": transformed},
		},
	}
	a.Transcripts = transcripts(a)
	return a
}

// server gets PATH and what env says.
func server(s *agent.Server, env func(string) string) {
	s.Type, s.Tools, s.Env = "local", []string{"*"}, map[string]string{}
	for _, name := range append([]string{"HOME"}, agent.Variables()...) {
		if value := env(name); value != "" {
			s.Env[name] = value
		}
	}
}

func events() map[string]agent.Meaning {
	room := agent.Room{Most: 10_000}
	runs, noMatcher := agent.Script{Runs: true}, agent.Script{Runs: true, NoMatcher: true}
	silent, noSubagent := agent.Script{Runs: true, NoMatcher: true, Silent: true}, agent.Script{Why: agent.NoSubagent, Decides: true}
	return map[string]agent.Meaning{
		"SessionStart":       {Step: agent.StepSessionStart, Script: noMatcher},
		transformed:          {Step: agent.StepPrompt, Room: agent.Room{Most: agent.Unlimited}, Script: agent.Script{Why: "Grapnel does not rewrite what a user has written"}},
		"PreToolUse":         {Step: agent.StepToolCall, Script: runs},
		"PermissionRequest":  {Step: agent.StepPermission, Script: agent.Script{Why: agent.NoPermission, Decides: true}},
		"PostToolUse":        {Step: agent.StepToolResult, Room: room, Script: runs},
		"PostToolUseFailure": {Step: agent.StepToolFailed, Room: room, Script: noMatcher},
		"Stop":               {Step: agent.StepStop, Script: noMatcher},
		"ErrorOccurred":      {Step: agent.StepFailed, Script: silent},
		"PreCompact":         {Step: agent.StepOnlyCompact, Script: agent.Script{Runs: true, Silent: true}},
		"SessionEnd":         {Step: agent.StepSessionEnd, Script: silent},

		"UserPromptSubmit": {
			Why:    "Copilot drops the answer; userPromptTransformed is the same prompt",
			Script: agent.Script{Runs: true, At: agent.StepPrompt, NoMatcher: true, Silent: true},
		},
		"Notification":   {Why: agent.OnlyTells},
		"SubagentStart":  {Why: "its payload names neither the event nor the subagent, whose calls are judged like all others", Script: agent.Script{Why: agent.NoSubagent}},
		"SubagentStop":   {Why: "the payload does not say which subagent; its calls are judged like all others", Script: noSubagent},
		"PreMcpToolCall": {Why: agent.ToolEvent + "PreToolUse. It sets the _meta of a request, and is there for programs with the SDK alone"},
	}
}

type payload struct {
	agent.Payload

	Session     string  `json:"sessionId"`
	Transformed *string `json:"transformedPrompt"`
	Result      struct {
		Text string `json:"text_result_for_llm"`
	} `json:"tool_result"`
	Error       json.RawMessage `json:"error"` // a text of a tool's, an object of ErrorOccurred
	During      string          `json:"error_context"`
	Recoverable bool            `json:"recoverable"`
}

func decode(a *agent.Agent, p *payload) (agent.Event, error) {
	if p.Name == "" && p.Transformed != nil {
		p.Name, p.SessionID = transformed, p.Session
	}
	if p.Name == "" {
		return agent.Event{}, errors.New("it names no event: write the hook's event in PascalCase, as PreToolUse")
	}
	e := p.Event(a)
	switch {
	case p.Name == transformed && p.Transformed == nil:
		return agent.Event{}, errors.New("it has no transformedPrompt")
	case p.Name == transformed:
		e.Sent = *p.Transformed
	case e.IsError:
		e.Result = agent.TextOf(p.Error)
	case e.Step == agent.StepToolResult:
		e.Result = p.Result.Text
	case e.Step == agent.StepFailed && (p.During != "model_call" || p.Recoverable):
		e.Step = agent.StepNone
	case e.Step == agent.StepFailed:
		e.Text = cmp.Or(agent.TextOf(jsonscan.Member(p.Error, "message")), agent.TextOf(p.Error))
	}
	return e, nil
}

// answer is what a hook says.
type answer struct {
	Permission string          `json:"permissionDecision,omitempty"`
	Why        string          `json:"permissionDecisionReason,omitempty"`
	Arguments  json.RawMessage `json:"modifiedArgs,omitempty"`
	Result     *result         `json:"modifiedResult,omitempty"`
	Context    string          `json:"additionalContext,omitempty"`
	Prompt     string          `json:"modifiedTransformedPrompt,omitempty"`
	Behavior   string          `json:"behavior,omitempty"`
	Message    string          `json:"message,omitempty"`
	Decision   string          `json:"decision,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Specific   json.RawMessage `json:"hookSpecificOutput,omitempty"` // which Copilot does not read
}

type result struct {
	Type string `json:"resultType"`
	Text string `json:"textResultForLlm"`
}

func encode(e *agent.Event, o *agent.Outcome) any {
	denied := o.Verdict != ""
	switch {
	case e.Step == agent.StepToolCall && denied:
		return answer{Permission: string(o.Verdict), Why: o.Reason}
	case e.Step == agent.StepToolCall && o.Arguments != nil:
		return answer{Arguments: o.Arguments}
	case e.Step == agent.StepPermission && o.Verdict == phases.VerdictDeny:
		return answer{Behavior: "deny", Message: o.Reason}
	case e.Step == agent.StepStop && denied:
		return answer{Decision: "block", Reason: o.Reason}
	case e.Step == agent.StepPrompt && denied: // it cannot be blocked, but the model need not get it
		return answer{Prompt: "The user's message was withheld by a hook: " + o.Reason + "\nTell the user so, and do nothing else."}
	case e.Step == agent.StepPrompt && o.Context != "":
		return answer{Prompt: e.Sent + "\n\n" + o.Context}
	case e.Step != agent.StepToolResult:
		return nil
	case o.Result != nil && e.IsError:
		return answer{Context: agent.ToRead(*o.Result)}
	case o.Result != nil:
		return answer{Result: &result{"success", *o.Result}}
	case o.Context != "":
		return answer{Context: o.Context}
	}
	return nil
}

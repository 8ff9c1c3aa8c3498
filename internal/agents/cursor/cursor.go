// Package cursor describes Cursor.
//
// Its contract: the executors and validators of hooks in dist/cjs/429.index.js of @cursor/sdk 1.0.18, which is Cursor's own,
// cursor.com/docs/hooks and /mcp (2026), and the types in sondera-ai/sondera-coding-agent-hooks at a57a9e2, apps/cursor, for the
// older answer of preToolUse. There preToolUse reads no other permission than deny, an empty answer of a hook that fails closed
// blocks, a tool takes few rewritten arguments and leaves others aside, and longer contexts than 10,000 are dropped whole.
package cursor

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

const noTurn = "completions while a person types are no turn"

// Agent describes the agent.
func Agent() *agent.Agent {
	return &agent.Agent{
		Name: "cursor", Events: events(), Decode: agent.Decoder(decode), Encode: encode, Scripts: scripts(),
		Install: agent.Install{
			Files:   map[agent.Scope]string{agent.User: ".cursor/hooks.json", agent.Project: ".cursor/hooks.json"},
			Servers: map[agent.Scope]string{agent.User: ".cursor/mcp.json", agent.Project: ".cursor/mcp.json"}, ServersKey: "mcpServers", Server: agent.StdioServer,
			Shell: []string{"/bin/sh", "-c"}, Versioned: true,
			Entry: func(c *agent.Command, a *agent.Agent, event string) agent.Handler {
				return agent.Handler{Command: c.Line(a, event), FailClosed: c.Blocks(a, event)}
			},
			Notes: []string{"Cursor may also run the hooks of Claude Code (its setting for third-party hooks): use one of both"},
		},
		Above: []agent.AbovePlace{{
			Files: []string{"/etc/cursor/hooks.json", "/Library/Application Support/Cursor/hooks.json", "C:/ProgramData/Cursor/hooks.json"}, Last: true,
			Powers: map[string][]string{"answer before Grapnel: their answer is taken where two differ": {"*"}},
		}},
		Contract: &agent.Contract{
			Package: "@cursor/sdk", Files: "dist/cjs/*.js", What: "the table of hooks in dist/cjs",
			From: []string{`={beforeShellExecution:`}, To: "}", Name: `"(\w+)"`,
		},
	}
}

func events() map[string]agent.Meaning {
	room := agent.Room{Most: 10_000, UTF16: true}
	runs, noMatcher := agent.Script{Runs: true}, agent.Script{Runs: true, NoMatcher: true}
	after := func(class agent.Class) agent.Meaning {
		return agent.Meaning{Why: agent.ToolEvent + "postToolUse", Script: agent.Script{Runs: true, At: agent.StepToolResult, Class: class, Silent: true}}
	}
	return map[string]agent.Meaning{
		"sessionStart":         {Step: agent.StepSessionStart, Script: noMatcher},
		"beforeSubmitPrompt":   {Step: agent.StepPrompt, Room: room, Script: agent.Script{Runs: true, Value: "UserPromptSubmit"}},
		"preToolUse":           {Step: agent.StepToolCall, Room: room, Script: runs},
		"beforeShellExecution": {Step: agent.StepToolCall, Narrow: true, Script: agent.Script{Runs: true, Class: agent.Shell}},
		"beforeMCPExecution":   {Step: agent.StepToolCall, Narrow: true, Script: agent.Script{Runs: true, Class: agent.MCP}},
		"beforeReadFile": {Step: agent.StepToolCall, Narrow: true, Script: agent.Script{
			Why: "the content of a file is not known before it is read, and the script would judge an empty one; use preToolUse", Decides: true,
		}},
		"postToolUse":        {Step: agent.StepToolResult, Room: room, Script: runs},
		"postToolUseFailure": {Step: agent.StepToolFailed, Room: room, Script: agent.Script{Runs: true, Silent: true}},
		"afterAgentResponse": {Step: agent.StepText, Script: agent.Script{Runs: true, Value: "AgentResponse", Silent: true}},
		"stop":               {Step: agent.StepStop, Script: agent.Script{Runs: true, Value: "Stop"}},
		"subagentStart":      {Step: agent.StepSubagent, Room: room, Script: agent.Script{Why: agent.NoSubagent, Decides: true}},
		"subagentStop":       {Step: agent.StepStop, Script: agent.Script{Why: agent.NoSubagent, Decides: true}},
		"preCompact":         {Step: agent.StepOnlyCompact, Script: noMatcher},
		"sessionEnd":         {Step: agent.StepSessionEnd, Script: agent.Script{Runs: true, NoMatcher: true, Silent: true}},

		"afterShellExecution": after(agent.Shell), "afterMCPExecution": after(agent.MCP), "afterFileEdit": after(agent.Edit),
		"beforeTabFileRead": {Why: noTurn, Script: agent.Script{Decides: true}}, "afterTabFileEdit": {Why: noTurn},
		"afterAgentThought": {Why: agent.OnlyTells}, "workspaceOpen": {Why: "it comes before there is a session"},
	}
}

type payload struct {
	agent.Payload

	Conversation string   `json:"conversation_id"`
	Generation   string   `json:"generation_id"`
	Roots        []string `json:"workspace_roots"`
	Subagent     string   `json:"subagent_id"`
	Task         string   `json:"task"`
	Status       string   `json:"status"`
	Summary      string   `json:"summary"`
	Said         string   `json:"text"`
	Output       string   `json:"tool_output"`
	Failure      string   `json:"error_message"`
	Took         float64  `json:"duration"` // milliseconds
	Command      string   `json:"command"`
	File         string   `json:"file_path"`
}

func decode(a *agent.Agent, p *payload) (agent.Event, error) {
	p.SessionID = cmp.Or(p.Conversation, p.SessionID)
	if p.Dir == "" && len(p.Roots) > 0 {
		p.Dir = p.Roots[0]
	}
	replaced, err := p.setCall()
	if err != nil {
		return agent.Event{}, err
	}
	e := p.Event(a)
	e.Replaced = replaced
	e.TurnID, e.AgentID, e.Took = p.Generation, p.Subagent, time.Duration(p.Took*float64(time.Millisecond))
	switch p.Name {
	case "postToolUse":
		e.Result = p.Output
	case "postToolUseFailure":
		e.Result = p.Failure
	case "afterAgentResponse":
		e.Text = p.Said
	case "subagentStart":
		e.Text = p.Task
	case "subagentStop":
		e.Text = p.Summary
	case "stop":
		switch p.Status {
		case "error":
			e.Step = agent.StepFailed
		case "aborted":
			e.Step = agent.StepInterrupted
		}
	}
	return e, nil
}

// setCall gives the events of one tool the tool's name and arguments, and returns how many characters of these were replaced.
func (p *payload) setCall() (replaced int, err error) {
	switch p.Name {
	case "beforeShellExecution":
		p.Tool, p.Arguments = "Shell", agent.Marshal(map[string]string{"command": p.Command, "cwd": p.Dir})
	case "beforeReadFile":
		p.Tool, p.Arguments = "Read", agent.Marshal(map[string]string{"file_path": p.File})
	case "beforeMCPExecution":
		p.Tool = "MCP:" + p.Tool
		p.Arguments, replaced = jsonscan.Repair([]byte(agent.TextOf(p.Arguments))) // JSON in a text
		switch {
		case len(p.Arguments) == 0:
		case !json.Valid(p.Arguments):
			err = errors.New("the arguments of the tool are not JSON")
		default:
			err = jsonscan.Unique(p.Arguments)
		}
	}
	return replaced, err
}

// answer is what a hook says.
type answer struct {
	Permission string          `json:"permission,omitempty"`
	ForUser    string          `json:"user_message,omitempty"`
	ForAgent   string          `json:"agent_message,omitempty"`
	Arguments  json.RawMessage `json:"updated_input,omitempty"`
	Decision   string          `json:"decision,omitempty"` // with Reason, what preToolUse took before permission
	Reason     string          `json:"reason,omitempty"`
	Context    string          `json:"additional_context,omitempty"`
	Continue   *bool           `json:"continue,omitempty"`
	Output     json.RawMessage `json:"updated_mcp_tool_output,omitempty"`
	FollowUp   string          `json:"followup_message,omitempty"`
}

// rewrites are the arguments that a tool takes from a hook; of MCP tools all.
//
//nolint:gochecknoglobals // an immutable table
var rewrites = map[string][]string{
	"Shell": {"command", "cwd"}, "Read": {"file_path"}, "Write": {"file_path"}, "Delete": {"file_path"}, "List": {"file_path"},
	"ReadLints": {"file_path"}, "Grep": {"pattern", "file_path"}, "Fetch": {"url"},
}

// encode answers with an object even where there is nothing to say.
func encode(e *agent.Event, o *agent.Outcome) any {
	denied := o.Verdict != ""
	switch {
	case e.Step == agent.StepToolCall && denied:
		return deny(e, o)
	case e.Step == agent.StepToolCall && o.Arguments != nil:
		if why := cannot(e, o); why != "" {
			return deny(e, &agent.Outcome{Verdict: phases.VerdictDeny, Reason: why})
		}
		return answer{Arguments: o.Arguments, Context: o.Context}
	case e.Step == agent.StepPrompt && denied:
		return answer{Continue: new(bool), ForUser: o.Reason}
	case e.Step == agent.StepSubagent && denied:
		return answer{Permission: "deny", ForUser: o.Reason}
	case e.Step == agent.StepStop && denied:
		return answer{FollowUp: o.Reason}
	case e.Step == agent.StepToolResult && o.Result != nil: // all that is left is to tell the model
		return answer{Context: agent.ToRead(*o.Result)}
	case e.Step == agent.StepToolCall && e.Name != "preToolUse":
		return answer{}
	}
	return answer{Context: o.Context}
}

// deny refuses a call. Only the events of one tool can ask a person, and reading a file cannot.
func deny(e *agent.Event, o *agent.Outcome) answer {
	if e.Name != "beforeShellExecution" && e.Name != "beforeMCPExecution" {
		o = o.DenyAsk()
	}
	a := answer{Permission: string(o.Verdict), ForUser: o.Reason}
	if e.Name != "beforeReadFile" {
		a.ForAgent = o.Reason
	}
	return a
}

// cannot says why a rewrite would not arrive whole; empty if it does.
func cannot(e *agent.Event, o *agent.Outcome) string {
	if e.Name != "preToolUse" {
		return "the arguments were rewritten, which Cursor takes from preToolUse alone"
	}
	changed, why := agent.Changes(e.Call.Arguments, o.Arguments)
	if why != "" || strings.HasPrefix(e.Call.Tool, "MCP:") {
		return why
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if !slices.Contains(rewrites[e.Call.Tool], name) {
			return "the argument " + name + " was rewritten, and Cursor does not take that from a hook of the tool " + e.Call.Tool
		}
	}
	return ""
}

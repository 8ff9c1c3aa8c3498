package bridge

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Claude Code 2.1.332. Source of the contract: sdk.d.ts of @anthropic-ai/claude-agent-sdk 0.3.332 (the types HookInput and
// SyncHookJSONOutput), sdk-tools.d.ts of @anthropic-ai/claude-code, code.claude.com/docs/en/hooks, and runs of the program
// (make hosts). The shell lines of a skill take no answer but a deny: any updatedInput keeps the line from running, and so
// does ask.

// claudePayload has the fields of all events that are mapped. Those that hosts of its shape share come first.
type claudePayload struct {
	Event     string `json:"hook_event_name"`
	SessionID string `json:"session_id"`
	Dir       string `json:"cwd"`
	AgentID   string `json:"agent_id"`
	Model     string `json:"model"`
	Prompt    string `json:"prompt"`
	Source    string `json:"source"`
	Trigger   string `json:"trigger"`
	Reason    string `json:"reason"`
	Last      string `json:"last_assistant_message"`

	Tool       string          `json:"tool_name"`
	Arguments  json.RawMessage `json:"tool_input"`
	CallID     string          `json:"tool_use_id"`
	Response   json.RawMessage `json:"tool_response"`
	DurationMS float64         `json:"duration_ms"`

	PromptID string `json:"prompt_id"`
	Error    string `json:"error"`
	Summary  string `json:"compact_summary"`
}

// claudeOwnPayload adds the fields that only Claude Code sends: about itself, and about who started something.
type claudeOwnPayload struct {
	claudePayload

	Command       string          `json:"command_name"`
	CommandArgs   string          `json:"command_args"`
	CommandSource string          `json:"command_source"`
	InvokedBy     string          `json:"invoked_by"`
	Expansion     string          `json:"expansion_type"`
	Server        json.RawMessage `json:"mcp_server"`
	File          string          `json:"file_path"`
	Memory        string          `json:"memory_type"`
	Load          string          `json:"load_reason"`
	Parent        string          `json:"parent_file_path"`
	From          string          `json:"from_model"`
	To            string          `json:"to_model"`
}

//nolint:gochecknoglobals // an immutable table
var claudeSteps = map[string]Step{
	"SessionStart": StepSessionStart, "UserPromptSubmit": StepPrompt, "PreToolUse": StepToolCall, "PermissionRequest": StepPermission,
	"PostToolUse": StepToolResult, "PostToolUseFailure": StepToolResult, "Stop": StepStop, "StopFailure": StepFailed,
	"PreCompact": StepCompact, "PostCompact": StepCompacted, "SessionEnd": StepSessionEnd, "SubagentStart": StepSubagent, "SubagentStop": StepStop,
	skillLine: StepToolCall, typedSkill: StepToolCall,
	"InstructionsLoaded": StepFile, "ConfigChange": StepConfig,
	"PermissionDenied": StepNote, "PreModelSwitch": StepNote, "PostModelSwitch": StepNote,
}

const (
	skillLine  = "PreSkillShellCommand" // a shell line in the text of a skill or command
	typedSkill = "UserPromptExpansion"  // a skill or command that somebody types: no call of the tool Skill
)

// skillCall has the arguments of the tool Skill.
type skillCall struct {
	Skill string `json:"skill"`
	Args  string `json:"args,omitempty"`
}

func decodeClaude(p *claudeOwnPayload) (Event, error) {
	if p.Event == typedSkill && p.Command != "" {
		var err error
		p.Tool = "Skill"
		if p.Arguments, err = json.Marshal(skillCall{p.Command, p.CommandArgs}); err != nil {
			return Event{}, err
		}
	}
	e := p.event(claudeSteps[p.Event])
	e.TurnID, e.File, e.Facts = p.PromptID, p.File, p.facts(&e)
	if e.Step == StepConfig {
		e.Source = p.Source
	}
	switch p.Event {
	case "UserPromptSubmit":
		e.Prompter = p.Source
	case "PostToolUseFailure":
		e.Result, e.IsError = p.Error, true
	case "PostToolUse":
		if p.Tool == "Bash" {
			e.Result = bashText(p.Response)
		}
	case "StopFailure":
		e.Text = p.Error
	case "PostCompact":
		e.Text = p.Summary
	}
	return e, nil
}

// facts are what an event is to be recorded with, by the host's names.
func (p *claudeOwnPayload) facts(e *Event) (facts []manifest.HostFact) {
	var pairs []string
	switch {
	case e.Step == StepPrompt:
		pairs = []string{"source", p.Source}
	case e.Step.ofTool():
		pairs = []string{
			"command_name", p.Command, "command_source", p.CommandSource, "invoked_by", p.InvokedBy, "expansion_type", p.Expansion, "mcp_server", compact(p.Server),
		}
	case e.Step.ofHost():
		pairs = []string{
			"source", p.Source, "file_path", p.File, "memory_type", p.Memory, "load_reason", p.Load, "parent_file_path", p.Parent,
			"from_model", p.From, "to_model", p.To, "tool_name", p.Tool, "reason", p.Reason,
		}
	}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			facts = append(facts, manifest.HostFact{Name: pair[0], Value: pair[1]})
		}
	}
	return facts
}

// compact is JSON in one line.
func compact(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return b.String()
}

// event is what the hosts of Claude Code's shape have in common.
func (p *claudePayload) event(step Step) Event {
	e := Event{
		Name: p.Event, Step: step, SessionID: p.SessionID, AgentID: p.AgentID, Dir: p.Dir, Model: p.Model,
		Call: loop.Call{ID: p.CallID, Tool: p.Tool, Arguments: p.Arguments, Paths: paths(p.Arguments)},
		Took: time.Duration(p.DurationMS * float64(time.Millisecond)),
	}
	switch step {
	case StepSessionStart:
		if e.Source = p.Source; p.Source == "resume" || p.Source == "fork" {
			e.Step = StepResume
		} else if p.Source == "compact" {
			e.Step = StepCompacted
		}
	case StepSessionEnd:
		e.Source = p.Reason
	case StepCompact, StepCompacted:
		e.Source = p.Trigger
	case StepPrompt:
		e.Text = p.Prompt
	case StepStop:
		e.Text = p.Last
	case StepToolResult:
		e.Response, e.Result = p.Response, textOf(p.Response)
	default: // it has no more
	}
	return e
}

type (
	// claudeAnswer has the fields of all hosts of Claude Code's shape; an encoder sets those that its host knows.
	claudeAnswer struct {
		Continue *bool           `json:"continue,omitempty"`
		Stop     string          `json:"stopReason,omitempty"`
		Decision string          `json:"decision,omitempty"`
		Reason   string          `json:"reason,omitempty"`
		Specific *claudeSpecific `json:"hookSpecificOutput,omitempty"`
	}
	claudeSpecific struct {
		Event      string          `json:"hookEventName"`
		Permission string          `json:"permissionDecision,omitempty"`
		Why        string          `json:"permissionDecisionReason,omitempty"`
		Arguments  json.RawMessage `json:"updatedInput,omitempty"`
		Context    string          `json:"additionalContext,omitempty"`
		Output     any             `json:"updatedToolOutput,omitempty"`
		Decision   any             `json:"decision,omitempty"` // a claudeDecision about a permission, or a word
		Reason     string          `json:"reason,omitempty"`
	}
	claudeDecision struct {
		Behavior string `json:"behavior"`
		Message  string `json:"message,omitempty"`
	}
)

// orNothing is the answer without what is empty; nil if nothing is left.
func (a claudeAnswer) orNothing() any {
	if s := a.Specific; s.Permission == "" && s.Arguments == nil && s.Context == "" && s.Output == nil && s.Decision == nil {
		a.Specific = nil
	}
	if a.Specific == nil && a.Decision == "" {
		return nil
	}
	return a
}

// denyPermission is the one answer to a permission that the host takes; without it the host asks its person.
func denyPermission(e *Event, o *Outcome) any {
	if o.Verdict != phases.VerdictDeny {
		return nil
	}
	return claudeAnswer{Specific: &claudeSpecific{Event: e.Name, Decision: claudeDecision{Behavior: "deny", Message: o.Reason}}}
}

func encodeClaude(e *Event, o *Outcome) any {
	said := &claudeSpecific{Event: e.Name, Context: o.Context}
	a := claudeAnswer{Specific: said}
	switch e.Step {
	case StepPrompt, StepStop, StepConfig:
		if o.Verdict != "" {
			return claudeAnswer{Decision: "block", Reason: o.Reason}
		}
	case StepToolCall:
		if e.Name == skillLine || e.Name == typedSkill {
			return encodeSkill(e, o)
		}
		said.Arguments = o.Arguments
		if o.Verdict != "" {
			said.Permission, said.Why, said.Arguments = string(o.Verdict), o.Reason, nil
		} // a rewrite needs no decision: the host's own rules judge the rewritten call
	case StepPermission:
		return denyPermission(e, o)
	case StepToolResult:
		if o.Result == nil {
			break
		}
		if e.IsError { // the host takes no other error
			said.Context = toRead(*o.Result)
			break
		}
		var sure bool
		if said.Output, sure = claudeOutput(e, *o.Result); !sure {
			a.Decision, a.Reason = "block", toRead(*o.Result)
		}
	case StepSubagent:
	default:
		return nil
	}
	return a.orNothing()
}

// encodeSkill answers an event of a skill, which the host can only refuse. It takes text with a typed one.
func encodeSkill(e *Event, o *Outcome) any {
	why := o.Reason
	switch {
	case o.Verdict == phases.VerdictAsk:
		why = cannotAsk + o.Reason
	case o.Verdict == "" && o.Arguments != nil:
		why = "a hook rewrote it, and Claude Code takes no rewrite of what a skill runs"
	case o.Verdict == "" && e.Name == skillLine:
		return nil
	case o.Verdict == "":
		return claudeAnswer{Specific: &claudeSpecific{Event: e.Name, Context: o.Context}}.orNothing()
	}
	if e.Name == typedSkill {
		return claudeAnswer{Decision: "block", Reason: why}
	}
	return claudeAnswer{Specific: &claudeSpecific{Event: e.Name, Permission: "deny", Why: why}}
}

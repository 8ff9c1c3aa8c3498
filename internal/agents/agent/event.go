package agent

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Step is what an event means to Grapnel.
type Step string

// The steps, in the order of a session. An event without a step is answered as if there were no hook.
const (
	StepNone         Step = ""
	StepSessionStart Step = "session_start"
	StepResume       Step = "session_resume"
	StepPrompt       Step = "prompt"
	StepSubagent     Step = "subagent" // a subagent begins; its end is a stop with an agent's id
	StepToolCall     Step = "tool_call"
	StepPermission   Step = "permission" // the agent is about to ask a person about a call
	StepToolResult   Step = "tool_result"
	StepToolFailed   Step = "tool_failed" // decoded, it is a tool_result with an error
	StepUsage        Step = "usage"
	StepCompose      Step = "compose" // the agent puts its system prompt together, and asks for sections of it
	StepRequest      Step = "request" // the agent sends a request to its model
	StepText         Step = "text"    // the assistant's text, for an agent whose stop event lacks it
	StepCompact      Step = "compact"
	StepOnlyCompact  Step = "only_compact" // the agent does not say when it has compacted
	StepCompacted    Step = "compacted"
	StepStop         Step = "stop"
	StepFailed       Step = "failed" // the provider failed
	StepInterrupted  Step = "interrupted"
	StepFile         Step = "file"   // the agent has loaded a file into the conversation
	StepNote         Step = "note"   // something that is only recorded
	StepConfig       Step = "config" // the agent's settings have changed, and it asks whether they may
	StepSessionEnd   Step = "session_end"
)

// Rank orders steps as a session has them.
func (s Step) Rank() int {
	return slices.Index([]Step{
		StepSessionStart, StepResume, StepPrompt, StepSubagent, StepToolCall, StepPermission, StepToolResult, StepToolFailed, StepUsage, StepCompose, StepRequest, StepText,
		StepCompact, StepOnlyCompact, StepCompacted, StepStop, StepFailed, StepInterrupted, StepFile, StepNote, StepConfig, StepSessionEnd,
	}, s)
}

// OfTool reports whether an event is about a call of a tool.
func (s Step) OfTool() bool {
	return s == StepToolCall || s == StepPermission || s == StepToolResult || s == StepToolFailed
}

// OfHost reports whether an event is about the agent itself.
func (s Step) OfHost() bool { return s == StepFile || s == StepNote || s == StepConfig }

// Decides reports whether the agent acts on a decision about events of a step, so that an event that nobody judged must be
// blocked. Other events only bring text, or are only observed.
func (s Step) Decides() bool { return s == StepPrompt || s == StepConfig || s.OfTool() }

// Phases returns the phases that need events of a step: if nothing subscribes to any of them, the events are not needed.
// Everything in a turn needs its prompt. No phase needs a permission: the call was judged before.
func (s Step) Phases() []phases.Phase {
	switch s {
	case StepSessionStart, StepResume:
		return []phases.Phase{phases.SessionStart, phases.SessionResume}
	case StepConfig: // while any phase has hooks, the settings must keep ours
		return slices.Concat(StepPrompt.Phases(), StepSessionStart.Phases(), StepToolCall.Phases(), StepToolResult.Phases(), StepSessionEnd.Phases())
	case StepPrompt, StepUsage, StepSubagent, StepFile, StepNote:
		return []phases.Phase{
			phases.PrePolicy, phases.PrePromptContext, phases.PostPreflight, phases.PreTools, phases.PrePromptCompile, phases.PostPromptCompile,
			phases.RuntimePreContext, phases.PreEnd, phases.PostTurn, phases.PreCompaction, phases.PostCompaction,
		}
	case StepToolCall:
		return []phases.Phase{phases.ToolPreCall}
	case StepToolResult, StepToolFailed:
		return []phases.Phase{phases.ToolPostCall}
	case StepStop, StepText:
		return []phases.Phase{phases.PreEnd, phases.PostTurn}
	case StepFailed, StepInterrupted:
		return []phases.Phase{phases.PostTurn}
	case StepCompact:
		return []phases.Phase{phases.PreCompaction}
	case StepOnlyCompact: // the model has lost the sections of its prompts
		return []phases.Phase{phases.PreCompaction, phases.PostCompaction, phases.PrePromptCompile}
	case StepCompacted:
		return []phases.Phase{phases.PostCompaction, phases.PrePromptCompile}
	case StepSessionEnd:
		return []phases.Phase{phases.SessionEnd}
	default:
		return nil
	}
}

// Call is a call of a tool; see loop.Call, which has the same fields.
type Call struct {
	ID          string              `json:"id,omitempty"`
	Tool        string              `json:"tool"`
	Arguments   json.RawMessage     `json:"arguments,omitempty"`
	Paths       []string            `json:"paths,omitempty"`
	DecisionRef *phases.DecisionRef `json:"-"`
}

// Event is an event of an agent, in Grapnel's terms. Which fields are set depends on the step.
type Event struct {
	// Agent describes the agent, and Host is its name; nil and empty for another host. Name is the agent's own name of the event.
	Agent *Agent `json:"-"`
	Host  string
	Name  string
	Step  Step
	// SessionID and Dir are always set. TurnID is empty if the agent names no turns, AgentID outside subagents.
	SessionID, TurnID, AgentID, Dir string
	Model                           string
	// ParentID is the session of which this one is a task, for an agent whose tasks have sessions of their own.
	ParentID string
	// Text is the user's prompt, the assistant's last text, or the error that ended the turn.
	Text string
	// Sent is what the agent is about to send for a prompt, if an answer may replace it.
	Sent string
	// Source is the agent's word for why a session begins or ends, a conversation is compacted, or which settings changed.
	Source string
	// Call is a call of a tool. Result is the tool's result as text, Response the same in the tool's own shape.
	Call     Call
	Result   string
	Response json.RawMessage
	IsError  bool
	Took     time.Duration
	Usage    phases.Usage
	// FromMod says that our mod asks about what a hook asks about next.
	FromMod bool
	// Provider takes the Request, which the agent sends to its model. With the usage of a request, it is the one that was sent. Kept
	// is the file that has it instead.
	Provider string
	Request  *compiler.Request
	Kept     string
	// Replaced counts the characters of the payload that no text may hold, such as NUL: U+FFFD stands for each.
	Replaced int
	// Facts are for the record alone: what else the agent says.
	Facts []manifest.HostFact
	// Prompter is the agent's word for who wrote a prompt; empty if it does not say.
	Prompter string
	// File is the file that was loaded or changed.
	File string
	// Unknown says that the agent's contract, as far as it is known here, has no event of this name.
	Unknown bool
	// Tools reports whether the agent has the gateway's MCP server, with plugins' tools. The gateway sets it.
	Tools func() bool `json:"-"`
	// Refused is why a change of settings must not hold. The gateway sets it.
	Refused string
}

// Room returns how much text for the model the answer may have.
func (e *Event) Room() Room {
	if e.Agent == nil {
		return Room{}
	}
	return e.Agent.Events[e.Name].Room
}

// ReplacesPrompts reports whether the text of a prompt replaces the previous prompt's.
func (e *Event) ReplacesPrompts() bool { return e.Agent != nil && e.Agent.ReplacesPrompts }

// Place returns the context of an event: the thread is the agent's session. A task's thread is below its parent's.
func (e *Event) Place(workspace string) phases.Context {
	c := phases.Context{WorkspaceID: workspace, ThreadID: e.SessionID, SessionID: e.SessionID, AgentID: e.AgentID, Mode: phases.ModeAgent, Dir: e.Dir}
	if e.Host != "" {
		c.Flags = map[string]bool{phases.AgentFlag + e.Host: true}
	}
	if e.ParentID != "" {
		c.ThreadID, c.ConversationThreadID, c.ParentSessionID = e.ParentID+"/"+e.SessionID, e.ParentID, e.ParentID
	}
	return c
}

// Outcome is the result of an event. The zero value lets everything go on.
type Outcome struct {
	// Verdict is deny, ask or empty. Reason is for the model and the person. Denying a stop makes the agent go on.
	Verdict phases.Verdict
	Reason  string
	// DecisionRef names the prompt in force when the verdict was given; nil if none is known.
	DecisionRef *phases.DecisionRef
	// By is the subscription that denied a prompt, as far as it is known. No answer has it.
	By string
	// Arguments are the rewritten arguments of a call; nil if nobody rewrote them.
	Arguments json.RawMessage
	// Result is the rewritten result of a tool; nil if nobody rewrote it.
	Result *string
	// Context is text for the model.
	Context string
	// Sections are those for the agent's system prompt.
	Sections []Section
}

// Section is a section for an agent's system prompt.
type Section struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Referring returns the reason with the decision_ref behind it. Agents refuse answers with fields that they do not know, so
// that no other place has it.
func (o *Outcome) Referring() string {
	if o.DecisionRef == nil {
		return o.Reason
	}
	return o.Reason + " (decision_ref " + o.DecisionRef.String() + ")"
}

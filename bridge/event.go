package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// ofSubagent reports whether an event belongs to a subagent that has a session of its own, which ends with its turn.
func (e *Event) ofSubagent(where *phases.Context) bool {
	return e.AgentID != "" && where.ParentSessionID != ""
}

// Step is what an event means to Grapnel.
type Step string

// The steps. An event without a step is answered as if there were no hook.
const (
	StepNone         Step = ""
	StepSessionStart Step = "session_start"
	StepResume       Step = "session_resume"
	StepPrompt       Step = "prompt"
	StepToolCall     Step = "tool_call"
	StepPermission   Step = "permission" // the host is about to ask a person about a call
	StepToolResult   Step = "tool_result"
	StepUsage        Step = "usage"
	StepStop         Step = "stop"
	StepFailed       Step = "failed" // the provider failed
	StepInterrupted  Step = "interrupted"
	StepCompact      Step = "compact"
	StepOnlyCompact  Step = "only_compact" // the host does not say when it has compacted
	StepCompacted    Step = "compacted"
	StepSubagent     Step = "subagent" // a subagent begins; its end is a stop with an agent's id
	StepText         Step = "text"     // the assistant's text, for a host whose stop event lacks it
	StepSessionEnd   Step = "session_end"
	StepFile         Step = "file"   // the host has loaded a file into the conversation
	StepNote         Step = "note"   // something that is only recorded
	StepConfig       Step = "config" // the host's settings have changed, and it asks whether they may
)

// ofTool reports whether an event is about a call of a tool.
func (s Step) ofTool() bool {
	return s == StepToolCall || s == StepPermission || s == StepToolResult
}

// ofHost reports whether an event is about the host itself.
func (s Step) ofHost() bool { return s == StepFile || s == StepNote || s == StepConfig }

// Event is an event of a host, in Grapnel's terms. Which fields are set depends on the step.
type Event struct {
	Host string
	// Name is the host's own name of the event.
	Name string
	Step Step
	// SessionID and Dir are always set. TurnID is empty if the host names no turns, AgentID outside subagents.
	SessionID, TurnID, AgentID, Dir string
	Model                           string
	// ParentID is the session of which this one is a task, for a host whose tasks have sessions of their own.
	ParentID string
	// Text is the user's prompt, the assistant's last text, or the error that ended the turn.
	Text string
	// Sent is what the host is about to send for a prompt, if an answer may replace it.
	Sent string
	// Source is the host's word for why a session begins or ends, a conversation is compacted, or which settings changed.
	Source string
	// Call is a call of a tool. Result is the tool's result as text, Response the same in the tool's own shape.
	Call     loop.Call
	Result   string
	Response json.RawMessage
	IsError  bool
	Took     time.Duration
	Usage    phases.Usage
	// Replaced is how many characters of the payload no text may hold, such as NUL: U+FFFD stands for each.
	Replaced int
	// Facts are for the record alone: what the host says beside that.
	Facts []manifest.HostFact
	// Prompter is the host's word for who wrote a prompt; empty if it does not say.
	Prompter string
	// File is the file that was loaded or changed.
	File string
	// Unknown says that the host's contract, as far as it is known here, has no event of this name.
	Unknown bool
	// Tools reports whether the host has the gateway's MCP server, with plugins' tools. Whoever knows the host's files sets it.
	Tools func() bool `json:"-"`
	// Refused is why a change of settings must not hold. Whoever knows the host's files sets it before [Bridge.Handle].
	Refused string
}

// Place returns the context of an event: the thread is the host's session. A task's thread is below its parent's.
func (e *Event) Place(workspace string) phases.Context {
	c := phases.Context{WorkspaceID: workspace, ThreadID: e.SessionID, SessionID: e.SessionID, AgentID: e.AgentID, Mode: phases.ModeAgent, Dir: e.Dir, Flags: map[string]bool{phases.AgentFlag + e.Host: true}}
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
	// Arguments are the rewritten arguments of a call; nil if nobody rewrote them.
	Arguments json.RawMessage
	// Result is the rewritten result of a tool; nil if nobody rewrote it.
	Result *string
	// Context is text for the model.
	Context string
}

// host is one agent: its decoder and encoder, the step of each of its events, and how much text for
// the model the answer to an event may have. Steps and rooms are keyed by the host's names of events.
type host struct {
	decode func(payload []byte) (Event, error)
	encode func(e *Event, o *Outcome) any
	steps  map[string]Step
	rooms  map[string]room
}

//nolint:gochecknoglobals // an immutable table
var hosts = map[string]host{
	// Longer strings go to a file: code.claude.com/docs/en/hooks.
	"claude-code": {decoder(decodeClaude), encodeClaude, claudeSteps, rooms(room{10_000, inUTF16}, "UserPromptSubmit", "PreToolUse", typedSkill, "PostToolUse", "PostToolUseFailure", "SubagentStart")},
	// additionalContextLimit in the schemas: 2,500 tokens, for which Codex counts 4 bytes each.
	"codex":   {decoder(decodeCodex), encodeCodex, codexSteps, rooms(room{10_000, inBytes}, "UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStart")},
	"gemini":  {decoder(decodeGemini), encodeGemini, geminiSteps, rooms(room{unlimited, inBytes}, "BeforeAgent", "AfterTool")},
	"vscode":  {decoder(decodeVSCode), encodeVSCode, vscodeSteps, rooms(room{unlimited, inBytes}, "PreToolUse", "PostToolUse", "SubagentStart")},
	"cursor":  {decoder(decodeCursor), encodeCursor, cursorSteps, rooms(room{10_000, inUTF16}, "beforeSubmitPrompt", "preToolUse", "postToolUse", "postToolUseFailure", "subagentStart")},
	"copilot": {decoder(decodeCopilot), encodeCopilot, copilotSteps, map[string]room{"PostToolUse": {10_000, inBytes}, "PostToolUseFailure": {10_000, inBytes}, copilotPrompt: {unlimited, inBytes}}},

	"opencode": {decoder(decodeOwn), encodeOwn, without(ownSteps, "Interrupt"), rooms(room{unlimited, inBytes}, "UserPromptSubmit", "PostToolUse")},
	"amp":      {decoder(decodeOwn), encodeOwn, without(ownSteps, "Usage", "PreCompact", "PostCompact", "SessionEnd"), rooms(room{unlimited, inBytes}, "UserPromptSubmit", "PostToolUse")},
}

// decoder decodes a host's payloads with a function that maps them.
func decoder[P any](mapped func(p *P) (Event, error)) func(payload []byte) (Event, error) {
	return func(payload []byte) (Event, error) {
		var p P
		if err := jsonscan.DecodeForeign(payload, &p); err != nil {
			return Event{}, err
		}
		return mapped(&p)
	}
}

func rooms(r room, events ...string) map[string]room {
	m := map[string]room{}
	for _, name := range events {
		m[name] = r
	}
	return m
}

// Hosts returns the names of the hosts, sorted.
func Hosts() []string { return slices.Sorted(maps.Keys(hosts)) }

// Steps returns the host's events that have a step, by the host's own names; empty for an unknown host.
func Steps(name string) map[string]Step { return maps.Clone(hosts[name].steps) }

// Phases returns the phases that need events of a step: if nothing subscribes to any of them, the events are not needed.
// Everything in a turn needs its prompt. No phase needs a permission: the call was judged before.
func (s Step) Phases() []phases.Phase {
	switch s {
	case StepSessionStart, StepResume:
		return []phases.Phase{phases.SessionStart, phases.SessionResume}
	case StepConfig:
		return allPhases()
	case StepPrompt, StepUsage, StepSubagent, StepFile, StepNote:
		return []phases.Phase{
			phases.PrePolicy, phases.PrePromptContext, phases.PostPreflight, phases.PreTools, phases.PrePromptCompile, phases.PostPromptCompile,
			phases.RuntimePreContext, phases.PreEnd, phases.PostTurn, phases.PreCompaction, phases.PostCompaction,
		}
	case StepToolCall:
		return []phases.Phase{phases.ToolPreCall}
	case StepToolResult:
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

// Carries reports whether the text of a prompt waits for the answer to an event, since the host takes none with the prompt.
func Carries(name, event string) bool {
	h := hosts[name]
	for prompt := range h.rooms {
		if h.steps[prompt] == StepPrompt {
			return false
		}
	}
	return h.steps[event] == StepToolResult && h.rooms[event].most > 0
}

// allPhases returns every phase that some event of a host dispatches: while one of them has hooks, the host's settings must
// keep ours.
func allPhases() []phases.Phase {
	return slices.Concat(StepPrompt.Phases(), StepSessionStart.Phases(), StepToolCall.Phases(), StepToolResult.Phases(), StepSessionEnd.Phases())
}

// Decides reports whether the host acts on a decision about events of a step, so that one that nobody judged must be
// blocked. Other events only bring text, or are only observed.
func (s Step) Decides() bool { return s == StepPrompt || s == StepConfig || s.ofTool() }

// ErrUnknownHost is returned for a host without a mapping.
var ErrUnknownHost = errors.New("the host is unknown")

// Decode reads the payload of a host's event. Events without a meaning here have [StepNone]. An error means that the host's
// contract does not allow the payload.
func Decode(name string, payload []byte) (Event, error) {
	h, ok := hosts[name]
	if !ok {
		return Event{}, fmt.Errorf("%w: %q is none of %s", ErrUnknownHost, name, strings.Join(Hosts(), ", "))
	}
	payload, replaced := jsonscan.Repair(bytes.TrimPrefix(payload, []byte("\ufeff")))
	e, err := h.decode(payload)
	if err != nil {
		return Event{}, fmt.Errorf("the payload of %s: %w", name, err)
	}
	e.Replaced += replaced
	if e.Host = name; e.Name == "" || len(e.Name) > mostName {
		return Event{}, fmt.Errorf("the payload of %s names no event, in hook_event_name with up to %d bytes", name, mostName)
	}
	switch {
	case e.Step == StepNone:
		return e, e.checkName()
	case e.Step == StepSessionStart && (e.Source == "" || e.Source == "new"), e.Step == StepSubagent:
		e.Source = "startup"
	}
	return e, e.check()
}

const mostName = 128

// checkName makes sure that an event without a step is one that the host has, or a new one, and not a judged event under
// another name.
func (e *Event) checkName() error {
	h, fates := hosts[e.Host], Fates(e.Host)
	_, mapped := h.steps[e.Name]
	if fate, known := fates[e.Name]; mapped || known && len(fate.Steps) == 0 {
		return nil
	} else if known && contractNames[e.Host] != nil {
		return fmt.Errorf("the payload of %s names the event %s: name what Grapnel's plugin file sends there, %s", e.Host, e.Name, strings.Join(contractNames[e.Host][e.Name], " or "))
	}
	for _, known := range slices.AppendSeq(slices.Collect(maps.Keys(h.steps)), maps.Keys(fates)) {
		if folded(known) == folded(e.Name) {
			return fmt.Errorf("the payload of %s names the event %q, which is written %s", e.Host, e.Name, known)
		}
	}
	if others := slices.DeleteFunc(Hosts(), func(other string) bool { return !hosts[other].steps[e.Name].Decides() }); len(others) > 0 {
		return fmt.Errorf("the payload of %s names the event %s, which %s have: name the agent that calls the hook", e.Host, e.Name, strings.Join(others, ", "))
	}
	e.Unknown, e.Facts = true, []manifest.HostFact{{Name: "unknown", Value: "no event that this version of Grapnel knows of the agent: no plugin saw it"}}
	return nil
}

// folded is a name without what its spellings differ in.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// check makes sure that an event can be mapped: a missing field must not let a call pass unseen.
func (e *Event) check() error {
	switch {
	case e.SessionID == "":
		return fmt.Errorf("the payload of %s for %s has no session_id", e.Host, e.Name)
	case e.Step == StepSubagent && e.AgentID == "":
		return fmt.Errorf("the payload of %s for %s has no agent_id", e.Host, e.Name)
	case e.Name == typedSkill && e.Call.Tool == "":
		return fmt.Errorf("the payload of %s for %s has no command_name", e.Host, e.Name)
	case e.Call.Tool == "" && e.Step.ofTool():
		return fmt.Errorf("the payload of %s for %s has no tool_name", e.Host, e.Name)
	}
	return nil
}

// Encode writes the host's own answer: one JSON object, or nothing if there is nothing to say.
func Encode(e *Event, o *Outcome) ([]byte, error) {
	answer := hosts[e.Host].encode(e, o.filled())
	if answer == nil {
		return nil, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(answer); err != nil {
		return nil, fmt.Errorf("the answer to %s: %w", e.Host, err)
	}
	return b.Bytes(), nil
}

// paths returns the files that a call names, in the fields that coding agents' tools use for them and in patches.
func paths(arguments json.RawMessage) []string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(arguments, &fields) != nil {
		return nil
	}
	var found []string
	for _, name := range []string{"file_path", "filePath", "absolute_path", "path", "notebook_path", "dir_path", "cwd", "workdir", "files", "paths"} {
		var path string
		var list []string
		if json.Unmarshal(fields[name], &path) == nil && path != "" {
			found = append(found, path)
		} else if json.Unmarshal(fields[name], &list) == nil {
			found = append(found, list...)
		}
	}
	for _, name := range []string{"command", "input", "patch", "patchText"} {
		var patch string
		if json.Unmarshal(fields[name], &patch) == nil {
			found = append(found, patched(patch)...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// patched returns the files that the headers of a patch in apply_patch format name.
func patched(patch string) []string {
	if !strings.Contains(patch, "*** Begin Patch") {
		return nil
	}
	var found []string
	for line := range strings.Lines(patch) {
		for _, header := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), header); ok {
				found = append(found, path)
			}
		}
	}
	return found
}

// textOf returns a tool's response as text: itself if it is a string, else its JSON.
func textOf(response json.RawMessage) string {
	var text string
	if json.Unmarshal(response, &text) == nil {
		return text
	}
	return string(response)
}

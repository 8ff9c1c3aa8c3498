package agent

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// Payload has the fields of payloads that Claude Code and the agents of its shape share.
type Payload struct {
	Name      string `json:"hook_event_name"`
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
}

// Event returns the event that the shared fields make.
func (p *Payload) Event(a *Agent) Event {
	e := Event{
		Name: p.Name, Step: a.Events[p.Name].Step, SessionID: p.SessionID, AgentID: p.AgentID, Dir: p.Dir, Model: p.Model,
		Call: Call{ID: p.CallID, Tool: p.Tool, Arguments: p.Arguments, Paths: paths(p.Arguments)},
		Took: time.Duration(p.DurationMS * float64(time.Millisecond)),
	}
	switch e.Step {
	case StepSessionStart:
		if e.Source = p.Source; p.Source == "resume" || p.Source == "fork" {
			e.Step = StepResume
		} else if p.Source == "compact" {
			e.Step = StepCompacted
		}
	case StepSessionEnd:
		e.Source = p.Reason
	case StepCompact, StepOnlyCompact, StepCompacted:
		e.Source = p.Trigger
	case StepPrompt:
		e.Text = p.Prompt
	case StepStop:
		e.Text = p.Last
	case StepToolResult, StepToolFailed:
		e.IsError = e.Step == StepToolFailed
		e.Step, e.Response, e.Result = StepToolResult, p.Response, TextOf(p.Response)
	default: // it has no more
	}
	return e
}

// paths returns the files that a call names, in the fields that coding agents' tools use for them and in patches.
func paths(arguments json.RawMessage) (found []string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(arguments, &fields) != nil {
		return nil
	}
	for _, name := range []string{"file_path", "filePath", "absolute_path", "path", "notebook_path", "dir_path", "cwd", "workdir", "files", "paths"} {
		var path string
		var list []string
		if value, ok := fields[name]; !ok {
			continue
		} else if json.Unmarshal(value, &path) == nil && path != "" {
			found = append(found, path)
		} else if json.Unmarshal(value, &list) == nil {
			found = append(found, list...)
		}
	}
	for _, name := range []string{"command", "input", "patch", "patchText"} {
		var patch string
		if value, ok := fields[name]; ok && json.Unmarshal(value, &patch) == nil && strings.Contains(patch, "*** Begin Patch") {
			found = append(found, patched(patch)...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// patched returns the files that the headers of a patch in apply_patch format name.
func patched(patch string) (found []string) {
	for line := range strings.Lines(patch) {
		for _, header := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), header); ok {
				found = append(found, path)
			}
		}
	}
	return found
}

// TextOf returns a tool's response as text: itself if it is a string, else its JSON.
func TextOf(response json.RawMessage) string {
	var text string
	if !bytes.HasPrefix(response, []byte("{")) && json.Unmarshal(response, &text) == nil {
		return text
	}
	return string(response)
}

// StreamsText returns what a model gets of both streams of a shell, and [TextOf] of a response without them.
func StreamsText(response json.RawMessage) string {
	var streams struct {
		Stdout *string `json:"stdout"`
		Stderr string  `json:"stderr"`
	}
	if json.Unmarshal(response, &streams) != nil || streams.Stdout == nil {
		return TextOf(response)
	}
	if *streams.Stdout != "" && streams.Stderr != "" {
		return *streams.Stdout + "\n" + streams.Stderr
	}
	return *streams.Stdout + streams.Stderr
}

type (
	// ClaudeAnswer is the answer to a hook of Claude Code and of the agents of its shape. An encoder sets the fields that its
	// agent knows; the rules for scripts read all of them.
	ClaudeAnswer struct {
		Continue       *bool           `json:"continue,omitempty"`
		StopReason     string          `json:"stopReason,omitempty"`
		SuppressOutput bool            `json:"suppressOutput,omitempty"`
		Decision       string          `json:"decision,omitempty"`
		Reason         string          `json:"reason,omitempty"`
		SystemMessage  string          `json:"systemMessage,omitempty"`
		Specific       json.RawMessage `json:"hookSpecificOutput,omitempty"`
	}
	// ClaudeSpecific is the member hookSpecificOutput.
	ClaudeSpecific struct {
		Event      string          `json:"hookEventName"`
		Permission string          `json:"permissionDecision,omitempty"`
		Why        string          `json:"permissionDecisionReason,omitempty"`
		Input      json.RawMessage `json:"updatedInput,omitempty"`
		Context    string          `json:"additionalContext,omitempty"`
		Output     json.RawMessage `json:"updatedToolOutput,omitempty"`
		MCPOutput  json.RawMessage `json:"updatedMCPToolOutput,omitempty"`
		Decision   json.RawMessage `json:"decision,omitempty"`
		Reason     string          `json:"reason,omitempty"`
	}
)

// Block returns an answer that blocks.
func Block(reason string) ClaudeAnswer { return ClaudeAnswer{Decision: "block", Reason: reason} }

// Answer returns an answer of the specific members; nil if nothing is set.
func (s ClaudeSpecific) Answer() any {
	if s.Permission == "" && s.Input == nil && s.Context == "" && s.Output == nil && s.Decision == nil {
		return nil
	}
	return ClaudeAnswer{Specific: Marshal(s)}
}

// DenyPermission denies a permission, which is the one answer that agents take; without it they ask their person.
func DenyPermission(e *Event, o *Outcome) any {
	if o.Verdict != phases.VerdictDeny {
		return nil
	}
	deny := map[string]string{"behavior": "deny", "message": o.Reason}
	return ClaudeSpecific{Event: e.Name, Decision: Marshal(deny)}.Answer()
}

// Marshal returns a value as JSON, in which <, > and & stay. The value is one of ours, which always encodes.
func Marshal(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// CannotAsk begins the reason of a call that a person would have to allow.
const CannotAsk = "a person must allow it, and this host's hooks cannot ask: "

// DenyAsk turns an ask into a deny that says so, for agents that cannot ask.
func (o *Outcome) DenyAsk() *Outcome {
	if o.Verdict != phases.VerdictAsk {
		return o
	}
	return &Outcome{Verdict: phases.VerdictDeny, Reason: CannotAsk + o.Reason}
}

// ToRead tells the model the rewritten result, for agents that cannot replace results.
func ToRead(result string) string { return "the result of the tool is to be read as: " + result }

// Changes returns the arguments that a rewrite has changed or added, and why an agent that merges a rewrite into the old
// arguments cannot do it, if the rewrite has removed some.
func Changes(was, now json.RawMessage) (changed map[string]json.RawMessage, cannot string) {
	var before map[string]json.RawMessage
	if json.Unmarshal(was, &before) != nil || json.Unmarshal(now, &changed) != nil {
		return nil, ""
	}
	var removed []string
	for name, value := range before {
		after, kept := changed[name]
		if !kept {
			removed = append(removed, name)
		} else if bytes.Equal(value, after) {
			delete(changed, name)
		}
	}
	if len(removed) > 0 {
		cannot = "the argument " + strconv.Quote(slices.Min(removed)) + " was taken away by a rewrite, and this host's hooks cannot do that"
	}
	return changed, cannot
}

package bridge

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

// Cursor. Source of the contract: the executors and validators of hooks in dist/cjs/429.index.js of @cursor/sdk 1.0.18,
// which is Cursor's own. There preToolUse reads no other permission than deny, an empty answer of a hook that fails closed
// blocks, a tool takes few rewritten arguments and leaves others aside, and longer contexts than 10,000 are dropped whole.

type cursorPayload struct {
	claudePayload

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

//nolint:gochecknoglobals // an immutable table
var cursorSteps = map[string]Step{
	"sessionStart": StepSessionStart, "beforeSubmitPrompt": StepPrompt, "preToolUse": StepToolCall, "beforeShellExecution": StepToolCall,
	"beforeMCPExecution": StepToolCall, "beforeReadFile": StepToolCall, "postToolUse": StepToolResult, "postToolUseFailure": StepToolResult,
	"afterAgentResponse": StepText, "stop": StepStop, "subagentStart": StepSubagent, "subagentStop": StepStop,
	"preCompact": StepOnlyCompact, "sessionEnd": StepSessionEnd,
}

func decodeCursor(p *cursorPayload) (Event, error) {
	p.SessionID = cmp.Or(p.Conversation, p.SessionID)
	if p.Dir == "" && len(p.Roots) > 0 {
		p.Dir = p.Roots[0]
	}
	replaced, err := p.own()
	if err != nil {
		return Event{}, err
	}
	e := p.event(cursorSteps[p.Event])
	e.Replaced = replaced
	e.TurnID, e.AgentID, e.Took = p.Generation, p.Subagent, time.Duration(p.Took*float64(time.Millisecond))
	switch p.Event {
	case "postToolUse":
		e.Result = p.Output
	case "postToolUseFailure":
		e.Result, e.IsError = p.Failure, true
	case "afterAgentResponse":
		e.Text = p.Said
	case "subagentStart":
		e.Text = p.Task
	case "subagentStop":
		e.Text = p.Summary
	case "stop":
		switch p.Status {
		case "error":
			e.Step = StepFailed
		case "aborted":
			e.Step = StepInterrupted
		}
	}
	return e, nil
}

// own gives the events of one tool the tool's name and arguments, and returns how many characters of these were replaced.
func (p *cursorPayload) own() (replaced int, err error) {
	switch p.Event {
	case "beforeShellExecution":
		p.Tool = "Shell"
		p.Arguments, err = json.Marshal(map[string]string{"command": p.Command, "cwd": p.Dir})
	case "beforeReadFile":
		p.Tool = "Read"
		p.Arguments, err = json.Marshal(map[string]string{"file_path": p.File})
	case "beforeMCPExecution":
		p.Tool = "MCP:" + p.Tool
		p.Arguments, replaced = jsonscan.Repair([]byte(textOf(p.Arguments))) // JSON in a text
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

type cursorAnswer struct {
	Permission string          `json:"permission,omitempty"`
	ForUser    string          `json:"user_message,omitempty"`
	ForAgent   string          `json:"agent_message,omitempty"`
	Arguments  json.RawMessage `json:"updated_input,omitempty"`
	Context    string          `json:"additional_context,omitempty"`
	Continue   *bool           `json:"continue,omitempty"`
	FollowUp   string          `json:"followup_message,omitempty"`
}

// cursorRewrites are the arguments that a tool takes from a hook; of MCP tools all.
//
//nolint:gochecknoglobals // an immutable table
var cursorRewrites = map[string][]string{
	"Shell": {"command", "cwd"}, "Read": {"file_path"}, "Write": {"file_path"}, "Delete": {"file_path"}, "List": {"file_path"},
	"ReadLints": {"file_path"}, "Grep": {"pattern", "file_path"}, "Fetch": {"url"},
}

// encodeCursor answers with an object even where there is nothing to say.
func encodeCursor(e *Event, o *Outcome) any {
	denied := o.Verdict != ""
	switch {
	case e.Step == StepToolCall && denied:
		return cursorDeny(e, o)
	case e.Step == StepToolCall && o.Arguments != nil:
		if e.Name != "preToolUse" {
			return cursorDeny(e, &Outcome{Verdict: phases.VerdictDeny, Reason: "the arguments were rewritten, which Cursor takes from preToolUse alone"})
		}
		if why := cursorCannot(e, o); why != "" {
			return cursorDeny(e, &Outcome{Verdict: phases.VerdictDeny, Reason: why})
		}
		return cursorAnswer{Arguments: o.Arguments, Context: o.Context}
	case e.Step == StepPrompt && denied:
		return cursorAnswer{Continue: new(bool), ForUser: o.Reason}
	case e.Step == StepSubagent && denied:
		return cursorAnswer{Permission: "deny", ForUser: o.Reason}
	case e.Step == StepStop && denied:
		return cursorAnswer{FollowUp: o.Reason}
	case e.Step == StepToolResult && o.Result != nil: // all that is left is to tell the model
		return cursorAnswer{Context: toRead(*o.Result)}
	case e.Step == StepToolCall && e.Name != "preToolUse":
		return cursorAnswer{}
	}
	return cursorAnswer{Context: o.Context}
}

// cursorDeny refuses a call. Only the events of one tool can ask a person, and reading a file cannot.
func cursorDeny(e *Event, o *Outcome) cursorAnswer {
	if o.Verdict == phases.VerdictAsk && e.Name != "beforeShellExecution" && e.Name != "beforeMCPExecution" {
		o = &Outcome{Verdict: phases.VerdictDeny, Reason: cannotAsk + o.Reason}
	}
	a := cursorAnswer{Permission: string(o.Verdict), ForUser: o.Reason}
	if e.Name != "beforeReadFile" {
		a.ForAgent = o.Reason
	}
	return a
}

// cursorCannot says why a rewrite would not arrive whole; empty if it does.
func cursorCannot(e *Event, o *Outcome) string {
	if gone := removed(e.Call.Arguments, o.Arguments); gone != "" {
		return cannotRemove(gone)
	}
	if strings.HasPrefix(e.Call.Tool, "MCP:") {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(changed(e.Call.Arguments, o.Arguments))) {
		if !slices.Contains(cursorRewrites[e.Call.Tool], name) {
			return "the argument " + name + " was rewritten, and Cursor does not take that from a hook of the tool " + e.Call.Tool
		}
	}
	return ""
}

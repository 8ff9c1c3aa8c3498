package bridge

import (
	"encoding/json"
	"maps"

	"github.com/grapnelhq/grapnel/phases"
)

// opencode and Amp load plugins instead of calling hooks: theirs are the files of package plugin, which send payloads of
// Claude Code's shape and do what ownAnswer says. Both sides are ours.

type ownPayload struct {
	claudePayload

	TurnID  string `json:"turn_id"`
	Parent  string `json:"parent_session_id"`
	IsError bool   `json:"is_error"`
	Usage   *struct {
		Input      int `json:"input_tokens"`
		Output     int `json:"output_tokens"`
		CacheRead  int `json:"cache_read_tokens"`
		CacheWrite int `json:"cache_write_tokens"`
	} `json:"usage"`
}

// ownSteps are the events that one of the files sends.
//
//nolint:gochecknoglobals // an immutable table
var ownSteps = map[string]Step{
	"SessionStart": StepSessionStart, "UserPromptSubmit": StepPrompt, "PreToolUse": StepToolCall, "PostToolUse": StepToolResult,
	"Usage": StepUsage, "Stop": StepStop, "StopFailure": StepFailed, "Interrupt": StepInterrupted,
	"PreCompact": StepCompact, "PostCompact": StepCompacted, "SessionEnd": StepSessionEnd,
}

// without are steps but those of some events.
func without(steps map[string]Step, events ...string) map[string]Step {
	rest := maps.Clone(steps)
	for _, name := range events {
		delete(rest, name)
	}
	return rest
}

func decodeOwn(p *ownPayload) (Event, error) {
	e := p.event(ownSteps[p.Event])
	e.TurnID, e.ParentID, e.IsError = p.TurnID, p.Parent, p.IsError
	if e.Step == StepFailed {
		e.Text = p.Error
	}
	if u := p.Usage; u != nil && e.Step == StepUsage {
		e.Usage = phases.Usage{InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite}
	}
	return e, nil
}

// ownAnswer is what a plugin file does: it refuses, or goes on with what is set.
type ownAnswer struct {
	// Deny is why something is refused, or must go on.
	Deny      string          `json:"deny,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    *string         `json:"result,omitempty"`
	Context   string          `json:"context,omitempty"`
}

func encodeOwn(_ *Event, o *Outcome) any {
	switch {
	case o.Verdict == phases.VerdictAsk:
		return ownAnswer{Deny: cannotAsk + o.Reason}
	case o.Verdict != "":
		return ownAnswer{Deny: o.Reason}
	case o.Arguments != nil || o.Result != nil || o.Context != "":
		return ownAnswer{Arguments: o.Arguments, Result: o.Result, Context: o.Context}
	}
	return nil
}

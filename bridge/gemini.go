package bridge

import (
	"encoding/json"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// Gemini CLI 0.61.0. Source of the contract: hooks/types.d.ts, core/coreToolHookTriggers.js and scheduler/hook-utils.js of
// @google/gemini-cli-core 0.61.0, and docs/hooks/reference.md of google-gemini/gemini-cli at 5411f113. It names neither
// turns nor calls, merges tool_input into the arguments, and escapes < and > of additionalContext.

type geminiPayload struct {
	claudePayload

	Answer   string `json:"prompt_response"`
	Response struct {
		Content json.RawMessage `json:"llmContent"`
		Error   json.RawMessage `json:"error"`
	} `json:"tool_response"`
	Request struct {
		Model string `json:"model"`
	} `json:"llm_request"`
	Chunk struct {
		Candidates []struct {
			Finish string `json:"finishReason"`
		} `json:"candidates"`
		Usage struct {
			Input  int `json:"promptTokenCount"`
			Output int `json:"candidatesTokenCount"`
		} `json:"usageMetadata"`
	} `json:"llm_response"`
}

//nolint:gochecknoglobals // an immutable table
var geminiSteps = map[string]Step{
	"SessionStart": StepSessionStart, "BeforeAgent": StepPrompt, "BeforeTool": StepToolCall, "AfterTool": StepToolResult,
	"AfterModel": StepUsage, "AfterAgent": StepStop, "PreCompress": StepOnlyCompact, "SessionEnd": StepSessionEnd,
}

func decodeGemini(p *geminiPayload) (Event, error) {
	e := p.event(geminiSteps[p.Event])
	switch e.Step {
	case StepStop:
		e.Text = p.Answer
	case StepToolResult:
		e.Response, e.Result, e.IsError = p.Response.Content, partsText(p.Response.Content), isSet(p.Response.Error)
	case StepUsage:
		e.Model, e.Usage = p.Request.Model, phases.Usage{InputTokens: p.Chunk.Usage.Input, OutputTokens: p.Chunk.Usage.Output}
		if len(p.Chunk.Candidates) == 0 || p.Chunk.Candidates[0].Finish == "" {
			e.Step = StepNone // a chunk: the last one has the sum
		}
	default:
	}
	return e, nil
}

// isSet reports whether a member is there and not null.
func isSet(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

// partsText is the text of a tool's result: a text, or parts with texts.
func partsText(content json.RawMessage) string {
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return textOf(content)
	}
	var text strings.Builder
	for _, part := range parts {
		text.WriteString(part.Text)
	}
	return text.String()
}

type (
	geminiAnswer struct {
		Decision string          `json:"decision,omitempty"`
		Reason   string          `json:"reason,omitempty"`
		Message  string          `json:"systemMessage,omitempty"`
		Specific *geminiSpecific `json:"hookSpecificOutput,omitempty"`
	}
	geminiSpecific struct {
		Event     string          `json:"hookEventName"`
		Context   string          `json:"additionalContext,omitempty"`
		Arguments json.RawMessage `json:"tool_input,omitempty"`
	}
)

func encodeGemini(e *Event, o *Outcome) any {
	switch {
	case e.Step == StepToolCall && o.Verdict == phases.VerdictAsk:
		return geminiAnswer{Decision: "ask", Message: o.Reason} // the message is what the person reads
	case (e.Step == StepToolCall || e.Step == StepPrompt || e.Step == StepStop) && o.Verdict != "":
		return geminiAnswer{Decision: "deny", Reason: o.Reason}
	case e.Step == StepToolCall && o.Arguments != nil:
		if gone := removed(e.Call.Arguments, o.Arguments); gone != "" {
			return geminiAnswer{Decision: "deny", Reason: cannotRemove(gone)}
		}
		return geminiAnswer{Specific: &geminiSpecific{Event: e.Name, Arguments: o.Arguments}}
	case e.Step == StepToolResult && o.Result != nil:
		return geminiAnswer{Decision: "deny", Reason: *o.Result} // which replaces the result
	case (e.Step == StepPrompt || e.Step == StepToolResult) && o.Context != "":
		return geminiAnswer{Specific: &geminiSpecific{Event: e.Name, Context: o.Context}}
	}
	return nil
}

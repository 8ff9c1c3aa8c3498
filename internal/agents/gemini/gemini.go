// Package gemini describes Gemini CLI.
//
// Its contract, for 0.61.0: hooks/types.d.ts, core/coreToolHookTriggers.js and scheduler/hook-utils.js of
// @google/gemini-cli-core, and of google-gemini/gemini-cli at 5411f113 docs/hooks/reference.md, schemas/settings.schema.json,
// packages/core/src/hooks/*.ts and tools/definitions/base-declarations.ts. It names neither turns nor calls, merges tool_input
// into the arguments, and escapes < and > of additionalContext.
package gemini

import (
	"encoding/json"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

const name = "gemini"

// Agent describes the agent.
func Agent() *agent.Agent {
	files := map[agent.Scope]string{agent.User: ".gemini/settings.json", agent.Project: ".gemini/settings.json"}
	a := &agent.Agent{
		Name: name, Events: events(), Decode: agent.Decoder(decode), Encode: encode, Scripts: scripts(),
		Install: agent.Install{
			Files: files, Servers: files, ServersKey: "mcpServers", Shell: []string{"bash", "-c"}, ProjectVariable: "GEMINI_PROJECT_DIR",
			Entry: agent.ShellEntry, Nested: true, Milliseconds: true,
			Notes: []string{"start Gemini CLI again; of a project it asks whether you trust the hooks"},
		},
		Above: []agent.AbovePlace{{
			Kind: "extension", Files: []string{
				"~/.gemini/extensions/*/hooks/hooks.json", "/etc/gemini-cli/settings.json", "/Library/Application Support/GeminiCli/settings.json", "C:/ProgramData/gemini-cli/settings.json",
			},
			Powers: map[string][]string{
				"change arguments that Grapnel judged": {"BeforeTool"},
				"change results and answers":           {"AfterTool", "AfterModel"},
				"change requests to the model":         {"BeforeModel", "BeforeToolSelection"},
			},
		}},
		Contract: &agent.Contract{
			Package: "@google/gemini-cli-core", Files: "dist/src/hooks/types.d.ts", What: "HookEventName in hooks/types.d.ts",
			From: []string{"enum HookEventName {"}, To: "}", Name: `= "(\w+)"`,
		},
	}
	a.Transcripts = transcripts(a)
	return a
}

func events() map[string]agent.Meaning {
	room := agent.Room{Most: agent.Unlimited}
	runs, silent := agent.Script{Runs: true}, agent.Script{Runs: true, Silent: true}
	noMatcher, noModelCall := agent.Script{Runs: true, NoMatcher: true}, agent.Script{Why: agent.NoModelCall, Decides: true}
	return map[string]agent.Meaning{
		"SessionStart": {Step: agent.StepSessionStart, Script: runs},
		"BeforeAgent":  {Step: agent.StepPrompt, Room: room, Script: noMatcher},
		"BeforeTool":   {Step: agent.StepToolCall, Script: runs},
		"AfterTool":    {Step: agent.StepToolResult, Room: room, Script: runs},
		"AfterModel":   {Step: agent.StepUsage, Script: noModelCall},
		"AfterAgent":   {Step: agent.StepStop, Script: noMatcher},
		"PreCompress":  {Step: agent.StepOnlyCompact, Script: silent},
		"SessionEnd":   {Step: agent.StepSessionEnd, Script: silent},

		"Notification": {Why: agent.OnlyTells},
		"BeforeModel":  {Why: agent.NoRequests, Script: noModelCall}, "BeforeToolSelection": {Why: agent.NoRequests, Script: noModelCall},
	}
}

type payload struct {
	agent.Payload

	Answer   string `json:"prompt_response"`
	Response struct {
		Content json.RawMessage `json:"llmContent"`
		Error   json.RawMessage `json:"error"`
	} `json:"tool_response"`
	Request struct {
		Model    string `json:"model"`
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
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

func decode(a *agent.Agent, p *payload) (agent.Event, error) {
	e := p.Event(a)
	switch e.Step {
	case agent.StepStop:
		e.Text = p.Answer
	case agent.StepToolResult:
		e.Response, e.Result, e.IsError = p.Response.Content, partsText(p.Response.Content), agent.IsSet(p.Response.Error)
	case agent.StepUsage:
		e.Model, e.Usage = p.Request.Model, phases.Usage{InputTokens: p.Chunk.Usage.Input, OutputTokens: p.Chunk.Usage.Output}
		if len(p.Chunk.Candidates) == 0 || p.Chunk.Candidates[0].Finish == "" {
			e.Step = agent.StepNone // a chunk: the last one has the sum
		} else if len(p.Request.Messages) > 0 {
			e.Provider, e.Request, e.Facts = name, p.observed(), agent.NotSeen("system, tools, calls, results")
		}
	default:
	}
	return e, nil
}

var (
	elements = lazyregexp.New(`(?s)\A(<session_context>.*</session_context>\s*)?(.*?)(<hook_context>.*</hook_context>\s*)?\z`)
	file     = lazyregexp.New(`(?ms)^--- Context from: ([^\n]+) ---\n(.*?)\n--- End of Context from: `)
)

// observed takes apart what is shown of a request, the joined texts of messages: the agent's, the prompt, and those of hooks.
func (p *payload) observed() *compiler.Request {
	r := &compiler.Request{Agent: name, History: manifest.History{Entries: len(p.Request.Messages)}}
	kinds, owners := []string{"session_context", "text", "hook_context"}, []string{name, "user", name}
	for i, m := range p.Request.Messages {
		for j, text := range elements().FindStringSubmatch(m.Content)[1:] {
			part := compiler.RequestPart{Kind: kinds[j], Role: m.Role, Message: i, Owner: owners[j], Text: text}
			if m.Role == "model" {
				part.Kind, part.Owner = "text", m.Role
			}
			r.Messages = append(r.Messages, agent.WithFiles(part, file())...)
		}
	}
	return r
}

// partsText is the text of a tool's result: a text, or parts with texts.
func partsText(content json.RawMessage) string {
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return agent.TextOf(content)
	}
	var text strings.Builder
	for _, part := range parts {
		text.WriteString(part.Text)
	}
	return text.String()
}

// specific is the member hookSpecificOutput of an answer.
type specific struct {
	Event   string          `json:"hookEventName"`
	Context string          `json:"additionalContext,omitempty"`
	Input   json.RawMessage `json:"tool_input,omitempty"`
}

func encode(e *agent.Event, o *agent.Outcome) any {
	said := specific{Event: e.Name}
	switch {
	case e.Step == agent.StepToolCall && o.Verdict == phases.VerdictAsk:
		return agent.ClaudeAnswer{Decision: "ask", SystemMessage: o.Reason} // the message is what the person reads
	case (e.Step == agent.StepToolCall || e.Step == agent.StepPrompt || e.Step == agent.StepStop) && o.Verdict != "":
		return deny(o.Reason)
	case e.Step == agent.StepToolCall && o.Arguments != nil:
		if _, cannot := agent.Changes(e.Call.Arguments, o.Arguments); cannot != "" {
			return deny(cannot)
		}
		said.Input = o.Arguments
	case e.Step == agent.StepToolResult && o.Result != nil:
		return deny(*o.Result) // which replaces the result
	case (e.Step == agent.StepPrompt || e.Step == agent.StepToolResult) && o.Context != "":
		said.Context = o.Context
	default:
		return nil
	}
	return agent.ClaudeAnswer{Specific: agent.Marshal(said)}
}

func deny(reason string) agent.ClaudeAnswer {
	return agent.ClaudeAnswer{Decision: "deny", Reason: reason}
}

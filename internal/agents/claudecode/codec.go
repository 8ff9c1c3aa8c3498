package claudecode

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

type payload struct {
	agent.Payload

	PromptID      string          `json:"prompt_id"`
	Error         string          `json:"error"`
	Summary       string          `json:"compact_summary"`
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
	Mod           bool            `json:"mod"`
	Usage         phases.Usage    `json:"usage"`
	sent
}

// skillCall has the arguments of the tool Skill.
type skillCall struct {
	Skill string `json:"skill"`
	Args  string `json:"args,omitempty"`
}

func decode(a *agent.Agent, p *payload) (agent.Event, error) {
	if p.Name == typedSkill {
		if p.Command == "" {
			return agent.Event{}, errors.New("it has no command_name")
		}
		p.Tool, p.Arguments = "Skill", agent.Marshal(skillCall{p.Command, p.CommandArgs})
	}
	e := p.Event(a)
	e.TurnID, e.File, e.Facts, e.FromMod = p.PromptID, p.File, p.facts(&e), p.Mod
	switch p.Name {
	case "ConfigChange":
		e.Source = p.Source
	case "UserPromptSubmit":
		e.Prompter = p.Source
	case "PostToolUseFailure":
		e.Result = p.Error
	case "PostToolUse":
		if p.Tool == "Bash" {
			e.Result = agent.StreamsText(p.Response)
		}
	case "StopFailure":
		e.Text = p.Error
	case "PostCompact":
		e.Text = p.Summary
	}
	switch e.Step {
	case agent.StepUsage:
		e.Usage = p.Usage
	case agent.StepRequest:
		if p.Request == nil {
			return e, errors.New("it has no request")
		}
		e.Provider, e.Model, e.Request = "anthropic", p.Request.Model, p.observed()
	default: // it has none of these
	}
	return e, nil
}

// facts are what an event is to be recorded with, by the agent's names.
func (p *payload) facts(e *agent.Event) (facts []manifest.HostFact) {
	var pairs []string
	switch {
	case e.Step == agent.StepRequest:
		pairs = []string{"other_mods", strings.Join(p.OtherMods, ", ")}
	case e.Step == agent.StepPrompt:
		pairs = []string{"source", p.Source}
	case e.Step.OfTool():
		server := string(p.Server)
		if line := new(bytes.Buffer); json.Compact(line, p.Server) == nil {
			server = line.String()
		}
		pairs = []string{
			"command_name", p.Command, "command_source", p.CommandSource, "invoked_by", p.InvokedBy, "expansion_type", p.Expansion, "mcp_server", server,
		}
	case e.Step.OfHost():
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

func encode(e *agent.Event, o *agent.Outcome) any {
	said := agent.ClaudeSpecific{Event: e.Name, Context: o.Context}
	switch e.Step {
	case agent.StepPrompt, agent.StepStop, agent.StepConfig:
		if o.Verdict != "" {
			return agent.Block(o.Reason)
		}
	case agent.StepToolCall:
		if e.Name == skillLine || e.Name == typedSkill {
			return encodeSkill(e, o)
		}
		said.Input = o.Arguments // which needs no decision: the agent's own rules judge the rewritten call
		if o.Verdict != "" {
			said.Permission, said.Why, said.Input = string(o.Verdict), o.Reason, nil
		}
	case agent.StepPermission:
		return agent.DenyPermission(e, o)
	case agent.StepToolResult:
		return encodeResult(e, o, said)
	case agent.StepCompose:
		if len(o.Sections) == 0 {
			return nil
		}
		return composed{o.Sections}
	case agent.StepSubagent:
	default:
		return nil
	}
	return said.Answer()
}

// composed is the answer to our mod's event of the system prompt.
type composed struct {
	Sections []agent.Section `json:"sections"`
}

func encodeResult(e *agent.Event, o *agent.Outcome, said agent.ClaudeSpecific) any {
	switch {
	case o.Result == nil:
		return said.Answer()
	case e.IsError: // the agent takes no other error
		said.Context = agent.ToRead(*o.Result)
		return said.Answer()
	}
	output, sure := outputOf(e, *o.Result)
	if output != nil {
		said.Output = agent.Marshal(output)
	}
	if sure {
		return said.Answer()
	}
	told := agent.Block(agent.ToRead(*o.Result))
	if output != nil {
		told.Specific = agent.Marshal(said)
	}
	return told
}

// encodeSkill answers an event of a skill, which the agent can only refuse. It takes text with a typed one.
func encodeSkill(e *agent.Event, o *agent.Outcome) any {
	why := o.DenyAsk().Reason
	switch {
	case o.Verdict != "":
	case o.Arguments != nil:
		why = "a hook rewrote it, and Claude Code takes no rewrite of what a skill runs"
	case e.Name == skillLine:
		return nil
	default:
		return agent.ClaudeSpecific{Event: e.Name, Context: o.Context}.Answer()
	}
	if e.Name == typedSkill {
		return agent.Block(why)
	}
	return agent.ClaudeSpecific{Event: e.Name, Permission: string(phases.VerdictDeny), Why: why}.Answer()
}

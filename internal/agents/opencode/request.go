package opencode

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/pluginfile"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/phases"
)

const name = "opencode"

// sent is what our plugin sees of a request: the system prompt, in which Context is ours, the messages as opencode keeps them, and
// the definitions that it lists.
type sent struct {
	Provider string   `json:"provider"`
	System   []string `json:"system"`
	Context  string   `json:"context"`
	Messages []struct {
		Info struct {
			Role string `json:"role"`
		} `json:"info"`
		Parts []part `json:"parts"`
	} `json:"messages"`
	Tools []json.RawMessage `json:"tools"`
}

// part is one of a message.
type part struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Synthetic bool   `json:"synthetic"`
	URL       string `json:"url"`
	Tool      string `json:"tool"`
	CallID    string `json:"callID"`
	State     struct {
		Input  json.RawMessage `json:"input"`
		Output string          `json:"output"`
		Error  string          `json:"error"`
	} `json:"state"`
}

var (
	filesBegin = lazyregexp.New(`(?m)^Instructions from: (.+)\n`)
	filesEnd   = lazyregexp.New(`\n\nSkills provide `)
)

func decode(a *agent.Agent, data []byte) (agent.Event, error) {
	e, err := pluginfile.Decode(a, data)
	if err != nil || e.Step != agent.StepRequest {
		return e, err
	}
	var s sent
	err = json.Unmarshal(data, &s)
	e.Provider, e.Request = s.Provider, s.observed()
	e.Facts = append(e.Facts, agent.NotSeen("tools of MCP servers; tools that are listed may not be offered"))
	return e, err
}

// observed takes a request apart.
func (s *sent) observed() *compiler.Request {
	r := &compiler.Request{Agent: name}
	for _, text := range s.System {
		p := compiler.RequestPart{ID: "system", Owner: name, Stability: phases.StabilityStable, Text: text}
		if text == s.Context {
			p.ID, p.Owner, p.Stability = agent.OfGrapnel, agent.OfGrapnel, phases.StabilityDynamic
		}
		for _, q := range agent.WithFiles(p, filesBegin(), filesEnd()) {
			if q.Title = q.ID; q.Kind != "" {
				q.ID = q.Kind
			}
			r.System = append(r.System, q)
		}
	}
	own := map[string]bool{}
	for _, raw := range s.Tools {
		var tool struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(raw, &tool)                 // one without a name has none
		if own[tool.ID] = true; tool.ID == "invalid" { // it stands for calls of tools that there are not
			continue
		}
		r.Tools = append(r.Tools, compiler.RequestPart{ID: tool.ID, Owner: name, Text: string(raw)})
	}
	r.History.Entries = len(s.Messages)
	for i, m := range s.Messages {
		for j := range m.Parts {
			r.Messages = append(r.Messages, m.Parts[j].said(i, m.Info.Role, own)...)
		}
	}
	return r
}

// said returns what the model gets of a part of a message.
func (p *part) said(message int, role string, own map[string]bool) []compiler.RequestPart {
	said := compiler.RequestPart{Kind: p.Type, Role: role, Message: message, Owner: agent.OfUser, Text: p.Text}
	switch {
	case p.Type == "tool":
		said.Kind, said.ID, said.Owner, said.Text = "tool_use", p.CallID, agent.OfModel, p.Tool+" "+string(p.State.Input)
		result := said
		result.Kind, result.Role, result.Owner, result.Text = "tool_result", agent.OfUser, name, cmp.Or(p.State.Output, p.State.Error)
		if !own[p.Tool] {
			result.Owner = agent.ToolOwner(name, p.Tool, "", "_")
		}
		return []compiler.RequestPart{said, result}
	case p.Type == "file":
		said.Text = p.URL
	case p.Synthetic:
		said.Owner = name
	case role == "assistant":
		said.Owner = agent.OfModel
	}
	if strings.TrimSpace(said.Text) == "" {
		return nil // of what no model gets
	}
	return []compiler.RequestPart{said}
}

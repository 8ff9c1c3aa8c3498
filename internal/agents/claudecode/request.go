package claudecode

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/phases"
)

// sent is a request to the model, with what our mod saw of how Claude Code made it.
type sent struct {
	Request  *messagesRequest `json:"request"`
	Sections []label          `json:"sections"`
	Labels   []label          `json:"labels"`
	Files    []struct {
		Path    string `json:"path"`
		Owner   string `json:"owner"`
		Content string `json:"content"`
	} `json:"files"`
	Tools []struct {
		Name  string `json:"name"`
		Owner string `json:"owner"`
	} `json:"tools"`
	OtherMods []string `json:"other_mods"`
}

// label is a text that is somewhere in the request, and whose it is.
type label struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Owner string `json:"owner"`
	Text  string `json:"text"`
}

// messagesRequest is the body of a request to Anthropic's Messages API.
type messagesRequest struct {
	Model    string            `json:"model"`
	System   json.RawMessage   `json:"system"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// block is a part of a system prompt or message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	CallID    string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	Thinking  string          `json:"thinking"`
	Source    json.RawMessage `json:"source"`
	Cached    json.RawMessage `json:"cache_control"`
	Signature string          `json:"signature"`
}

const (
	name      = "claude-code"
	ownMod    = "grapnel" // the plugin that has our mod, and the MCP server of plugins' tools
	ofUser    = "user"
	ofModel   = "model"
	mcpPrefix = "mcp__"

	mostLabels = 512 // of a request
)

// observed takes a request apart.
func (s *sent) observed() *compiler.Request {
	s.Sections, s.Labels = s.Sections[:min(len(s.Sections), mostLabels)], s.Labels[:min(len(s.Labels), mostLabels)]
	for _, list := range [][]label{s.Sections, s.Labels} {
		for i := range list {
			list[i].Owner = knownOwner(list[i].Owner)
		}
	}
	r := &compiler.Request{Agent: name}
	s.system(r)
	owners := map[string]string{}
	for _, t := range s.Tools {
		owners[t.Name] = t.Owner
	}
	for _, raw := range s.Request.Tools {
		var b block
		_ = json.Unmarshal(raw, &b) // a tool without a name has none
		r.Tools = append(r.Tools, compiler.RequestPart{ID: b.Name, Owner: ToolOwner(name, b.Name, owners), Text: string(raw)})
	}
	s.messages(r, owners)
	return r
}

// knownOwner is an owner as our mod says it; what it does not say is unknown.
func knownOwner(owner string) string {
	kind, _, other := strings.Cut(owner, ":")
	if len(owner) > phases.MaxIDBytes || other != slices.Contains([]string{"mod", "mcp", "hook"}, kind) || !other && !slices.Contains([]string{name, ownMod, ofUser, ofModel}, owner) {
		return "unknown"
	}
	return owner
}

// ToolOwner is who brought a tool, by what is known of it or else by its name, mcp__SERVER__TOOL of a server.
func ToolOwner(agent, tool string, owners map[string]string) string {
	server, _, ofServer := strings.Cut(strings.TrimPrefix(tool, mcpPrefix), "__")
	switch owner := owners[tool]; {
	case ofServer && server == ownMod && strings.HasPrefix(tool, mcpPrefix):
		return ownMod
	case owner != "":
		return owner
	case ofServer && strings.HasPrefix(tool, mcpPrefix):
		return "mcp:" + server
	}
	return agent
}

// system adds the parts of the system prompt. What stands before the last place that the provider is asked to cache is stable.
func (s *sent) system(r *compiler.Request) {
	blocks := blocksOf(s.Request.System)
	last := -1
	for i := range blocks {
		if len(blocks[i].Cached) > 0 {
			last = i
		}
	}
	for i := range blocks {
		stability := phases.StabilityStable
		if i > last {
			stability = phases.StabilityDynamic
		}
		for _, p := range split(blocks[i].Text, s.Sections, label{ID: "system", Owner: name}) {
			p.ID = strings.TrimPrefix(p.ID, ownMod+":")
			if !phases.ValidName(p.ID) {
				p.ID = "system"
			}
			r.System = append(r.System, compiler.RequestPart{ID: p.ID, Title: p.ID, Owner: p.Owner, Stability: stability, Text: p.Text})
		}
		if len(blocks[i].Cached) > 0 && len(r.System) > 0 {
			r.Cached = append(r.Cached, len(r.System)-1)
		}
	}
}

func (s *sent) messages(r *compiler.Request, owners map[string]string) {
	var files []label
	for _, f := range s.Files {
		files = append(files, label{ID: f.Path, Kind: "instructions", Owner: knownOwner(cmp.Or(f.Owner, name)), Text: f.Content})
	}
	calls := map[string]string{} // the tools of calls
	for i := range s.Request.Messages {
		m := &s.Request.Messages[i]
		for _, b := range blocksOf(m.Content) {
			if len(b.Cached) > 0 {
				r.History.Cached = i + 1
			}
			part := compiler.RequestPart{Kind: b.Type, Role: m.Role, Message: i}
			switch b.Type {
			case "tool_use":
				calls[b.ID] = b.Name
				part.ID, part.Owner, part.Text = b.ID, ofModel, b.Name+" "+string(b.Input)
			case "tool_result":
				part.ID, part.Owner, part.Text = b.CallID, ToolOwner(name, calls[b.CallID], owners), agent.TextOf(b.Content)
			case "text":
				for _, p := range split(b.Text, s.Labels, told(m.Role, b.Text, i+1 == len(s.Request.Messages))) {
					for _, q := range split(p.Text, files, p) {
						part.ID, part.Kind, part.Owner, part.Text = q.ID, q.Kind, q.Owner, q.Text
						r.Messages = append(r.Messages, part)
					}
				}
				continue
			default: // what the model thought, pictures, documents, calls of the provider's own tools
				part.Owner, part.Text = ofUser, b.Thinking+b.Signature+string(b.Source)+string(b.Content)
				if m.Role == "assistant" {
					part.Owner = ofModel
				}
			}
			r.Messages = append(r.Messages, part)
		}
	}
	r.History.Entries = len(s.Request.Messages)
}

// told says whose a text of a message is that the mod saw nothing of, by its form. A new prompt it sees: what else the last
// message has in the user's place asks for a summary of the conversation.
func told(role, text string, last bool) label {
	switch {
	case last && role == ofUser:
		return label{Kind: "instruction", Owner: name}
	case role == "assistant":
		return label{Kind: "text", Owner: ofModel}
	case role != "user", slices.ContainsFunc(notTyped, func(begin string) bool { return strings.HasPrefix(text, begin) }):
		return label{Kind: "reminder", Owner: name}
	}
	return label{Kind: "text", Owner: ofUser}
}

// blocksOf reads what is a text or a list of blocks.
func blocksOf(content json.RawMessage) (blocks []block) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	_ = json.Unmarshal(content, &blocks) // what is neither has none
	return blocks
}

// linesAt is where whole lines stand in a text; -1 if they do not.
func linesAt(text, lines string) int {
	for from := 0; lines != ""; {
		at := strings.Index(text[from:], lines)
		if at < 0 {
			break
		}
		at += from
		if end := at + len(lines); (at == 0 || text[at-1] == '\n') && (end == len(text) || text[end] == '\n') {
			return at
		}
		from = at + 1
	}
	return -1
}

// split cuts a text at the labelled texts in it, each taken once; what is between them is the rest's. The pieces make the text
// again: blank space goes to the piece before it.
func split(text string, labels []label, rest label) (pieces []label) {
	type place struct{ from, to, label int }
	var found []place
	for i := range labels {
		own := strings.TrimSpace(labels[i].Text)
		bare := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(own, "<system-reminder>"), "</system-reminder>")) // as it stands among others
		for _, own := range []string{own, bare} {
			if at := linesAt(text, own); at >= 0 && own != "" {
				found = append(found, place{at, at + len(own), i})
				break
			}
		}
	}
	slices.SortFunc(found, func(a, b place) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	at := 0
	add := func(l label, to int) {
		l.Text = text[at:to]
		if at = to; len(pieces) > 0 && strings.TrimSpace(l.Text) == "" {
			pieces[len(pieces)-1].Text += l.Text
		} else if l.Text != "" {
			pieces = append(pieces, l)
		}
	}
	for _, p := range found {
		if p.from >= at {
			if strings.TrimSpace(text[at:p.from]) != "" {
				add(rest, p.from)
			}
			add(labels[p.label], p.to)
		}
	}
	add(rest, len(text))
	return pieces
}

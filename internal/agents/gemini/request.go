package gemini

import (
	"regexp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

const name = "gemini"

// sent is what the agent shows of a request: the texts of those messages that have some, with nothing between the parts of one.
type sent struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
}

var (
	first      = lazyregexp.New(`(?s)\A<(session_context|state_snapshot)>.*</(?:session_context|state_snapshot)>\s*`)
	last       = lazyregexp.New(`(?s)<(hook_context)>.*</hook_context>\s*\z`)
	filesBegin = lazyregexp.New(`(?m)^--- Context from: (.+) ---\n`)
	filesEnd   = lazyregexp.New(`\n--- End of Context from: `)
)

// observed takes a request apart. In the user's messages the agent's own text is an element before the prompt, and that of hooks
// one behind it.
func (s *sent) observed() *compiler.Request {
	r := &compiler.Request{Agent: name}
	r.History.Entries = len(s.Messages)
	for i, m := range s.Messages {
		part := compiler.RequestPart{Kind: "text", Role: m.Role, Message: i, Owner: agent.OfUser, Text: m.Content}
		if m.Role == agent.OfModel {
			part.Owner = agent.OfModel
			r.Messages = append(r.Messages, part)
			continue
		}
		before, rest := cut(part, first(), true)
		prompt, behind := cut(rest, last(), false)
		for _, p := range []compiler.RequestPart{before, prompt, behind} {
			r.Messages = append(r.Messages, agent.WithFiles(p, filesBegin(), filesEnd())...)
		}
	}
	return r
}

// cut cuts a part where an element of the agent's ends, or else begins.
func cut(p compiler.RequestPart, element *regexp.Regexp, ends bool) (before, behind compiler.RequestPart) {
	before, behind = p, p
	at := element.FindStringSubmatchIndex(p.Text)
	own, place := &behind, len(p.Text)
	if ends {
		own, place = &before, 0
	}
	if at != nil {
		own.Kind, own.Owner, place = p.Text[at[2]:at[3]], name, at[0]
		if ends {
			place = at[1]
		}
	}
	before.Text, behind.Text = p.Text[:place], p.Text[place:]
	return before, behind
}

package gemini

import (
	"encoding/json"
	"errors"
	"strings"

	"google.golang.org/genai"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/facts"
)

// Usage returns what the provider reported; nil is nothing. Thinking counts as
// output. Gemini does not say what it wrote to its cache.
func Usage(u *genai.GenerateContentResponseUsageMetadata) phases.Usage {
	if u == nil {
		return phases.Usage{}
	}
	return phases.Usage{
		InputTokens:     int(u.PromptTokenCount) + int(u.ToolUsePromptTokenCount),
		OutputTokens:    int(u.CandidatesTokenCount) + int(u.ThoughtsTokenCount),
		CacheReadTokens: int(u.CachedContentTokenCount),
	}
}

// Reply makes an entry of a response's first candidate: its text, its calls
// under the names of the tools and, if there is anything else in it (signatures
// of thoughts, which have to be sent back), the whole as the entry's native
// form. Gemini may leave out the ids of calls, so newID makes them up. A call of
// a tool that was not offered keeps the name that the model gave it.
//
// A response without a candidate, which is one that was blocked, is an error.
func Reply(r *genai.GenerateContentResponse, names providers.Names, newID func() string) (history.Entry, error) {
	if len(r.Candidates) == 0 || r.Candidates[0].Content == nil {
		return history.Entry{}, errors.New("gemini: the response has no content")
	}
	e := history.Entry{Role: history.RoleAssistant}
	whole := genai.Content{Role: genai.RoleModel}
	var text strings.Builder
	more := false
	for _, given := range r.Candidates[0].Content.Parts {
		p := *given
		more = more || len(p.ThoughtSignature) > 0
		switch {
		case p.FunctionCall != nil:
			call, err := callOf(&p, names, newID)
			if err != nil {
				return history.Entry{}, err
			}
			e.Calls = append(e.Calls, call)
		case p.Text != "" && !p.Thought:
			text.WriteString(p.Text)
		default:
			more = more || !p.Thought
		}
		whole.Parts = append(whole.Parts, &p)
	}
	e.Text = text.String()
	if !more {
		return e, nil
	}
	data, err := json.Marshal(whole)
	if err != nil {
		return history.Entry{}, err
	}
	e.Native = &history.Native{Provider: facts.Gemini, Data: data}
	return e, nil
}

// callOf returns the call of a part, and puts the id that it may have had to
// make up into the part: the answer will have it, too.
func callOf(p *genai.Part, names providers.Names, newID func() string) (history.Call, error) {
	f := *p.FunctionCall
	if f.ID == "" {
		f.ID = newID()
	}
	p.FunctionCall = &f
	if f.Args == nil {
		f.Args = map[string]any{}
	}
	arguments, err := json.Marshal(f.Args)
	if err != nil {
		return history.Call{}, err
	}
	call := history.Call{ID: f.ID, Tool: f.Name, Arguments: arguments}
	if tool, ok := names.Tool(f.Name); ok {
		call.Tool = tool
	}
	return call, nil
}

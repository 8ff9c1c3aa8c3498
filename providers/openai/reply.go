package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/responses"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/facts"
)

// Usage returns what the provider reported. InputTokens includes those read from
// and written to the cache.
func Usage(u responses.ResponseUsage) phases.Usage {
	return phases.Usage{
		InputTokens:      int(u.InputTokens),
		OutputTokens:     int(u.OutputTokens),
		CacheReadTokens:  int(u.InputTokensDetails.CachedTokens),
		CacheWriteTokens: int(u.InputTokensDetails.CacheWriteTokens),
	}
}

// Reply makes an entry of a response: its text, its calls under the names of the
// tools and, if there is anything else in it (reasoning, which has to be sent
// back as it is), the whole as the entry's native form. A refusal is text. A
// call of a tool that was not offered keeps the name that the model gave it.
func Reply(r *responses.Response, names providers.Names) (history.Entry, error) {
	e := history.Entry{Role: history.RoleAssistant}
	var text strings.Builder
	for i := range r.Output {
		item := &r.Output[i]
		switch item.Type {
		case "message":
			for _, c := range item.Content {
				text.WriteString(c.Text + c.Refusal)
			}
		case "function_call":
			call := item.AsFunctionCall()
			tool, ok := names.Tool(call.Name)
			if !ok {
				tool = call.Name
			}
			e.Calls = append(e.Calls, history.Call{ID: call.CallID, Tool: tool, Arguments: arguable(call.Arguments)})
		}
	}
	e.Text = text.String()
	if !slices.ContainsFunc(r.Output, func(i responses.ResponseOutputItemUnion) bool {
		return i.Type != "message" && i.Type != "function_call"
	}) {
		return e, nil
	}
	items := make([]json.RawMessage, len(r.Output))
	for i := range r.Output {
		items[i] = json.RawMessage(r.Output[i].RawJSON())
	}
	data, err := json.Marshal(items)
	if err != nil {
		return history.Entry{}, err
	}
	e.Native = &history.Native{Provider: facts.OpenAI, Data: data}
	return e, nil
}

// arguable keeps an entry fit for storing as JSON: arguments that are none
// become a JSON string.
func arguable(arguments string) json.RawMessage {
	if json.Valid([]byte(arguments)) {
		return json.RawMessage(arguments)
	}
	quoted, err := json.Marshal(arguments)
	if err != nil {
		return nil // a string always encodes
	}
	return quoted
}

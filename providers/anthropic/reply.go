package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/facts"
)

// Usage returns what the provider reported. Anthropic counts tokens read from
// and written to the cache apart; here, as with all providers, InputTokens is
// the sum.
func Usage(u sdk.Usage) phases.Usage {
	return phases.Usage{
		InputTokens:      int(u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens),
		OutputTokens:     int(u.OutputTokens),
		CacheReadTokens:  int(u.CacheReadInputTokens),
		CacheWriteTokens: int(u.CacheCreationInputTokens),
	}
}

// Reply makes an entry of a response: its text, its calls under the names of the
// tools and, if there is anything else in it (thinking, which has to be sent
// back as it is), the whole as the entry's native form. A call of a tool that
// was not offered keeps the name that the model gave it.
func Reply(m *sdk.Message, names providers.Names) (history.Entry, error) {
	e := history.Entry{Role: history.RoleAssistant}
	var text strings.Builder
	for i := range m.Content {
		block := &m.Content[i]
		switch block.Type {
		case "text":
			text.WriteString(block.Text)
		case "tool_use":
			call := history.Call{ID: block.ID, Tool: block.Name, Arguments: block.Input}
			if tool, ok := names.Tool(block.Name); ok {
				call.Tool = tool
			}
			e.Calls = append(e.Calls, call)
		}
	}
	e.Text = text.String()
	if !slices.ContainsFunc(m.Content, func(b sdk.ContentBlockUnion) bool { return b.Type != "text" && b.Type != "tool_use" }) {
		return e, nil
	}
	data, err := json.Marshal(m.ToParam().Content)
	if err != nil {
		return history.Entry{}, err
	}
	e.Native = &history.Native{Provider: facts.Anthropic, Data: data}
	return e, nil
}

// Package anthropic translates a request to the Messages API of Anthropic, in
// the types of github.com/anthropics/anthropic-sdk-go.
//
// Start at [Build]: its parameters go to the SDK's Messages.New, and [Usage] and [Reply] take what comes back.
//
// Anthropic renders tools, then the system prompt, then messages, and caches prefixes of that up to the blocks that
// say so. The plan's breakpoints become cache_control of the last tool and of the system blocks.
//
// It sends nothing. The host may set other parameters (temperature, thinking) before sending them.
//
// Stability: experimental until 1.0.
package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
)

// Options are what the plan leaves to the host.
type Options struct {
	// LongThrough is the last place whose breakpoint, like all before it, lives for an hour instead of five minutes;
	// empty means none. The API wants longer lifetimes first.
	LongThrough manifest.BreakAfter
	// CacheConversation puts one more breakpoint, of five minutes, behind the last message, for the next round of the
	// turn. It serves the next turn too if nothing before it changes: see [providers.Request.AfterConversation].
	CacheConversation bool
}

// Built is a request that can be sent.
type Built struct {
	providers.Translation

	Params sdk.MessageNewParams
}

// Build translates a request. With a MaxTokens of 0 the API fills its cache and answers
// nothing. Errors are those of [providers.Lay], and an unknown place in the options.
func Build(r providers.Request, o Options) (Built, error) {
	places := []manifest.BreakAfter{"", manifest.AfterTools, manifest.AfterStable, manifest.AfterDynamic}
	if !slices.Contains(places, o.LongThrough) {
		return Built{}, fmt.Errorf("anthropic: unknown place %q for long lifetimes", o.LongThrough)
	}
	known, err := r.Known(compiler.Anthropic)
	if err != nil {
		return Built{}, err
	}
	rules := providers.Rules{Provider: compiler.Anthropic, Breakpoints: known.Breakpoints}
	if o.CacheConversation {
		rules.Breakpoints--
	}
	l, err := providers.Lay(r, rules)
	if err != nil {
		return Built{}, fmt.Errorf("anthropic: %w", err)
	}
	b := builder{Layout: l, long: slices.Index(places, o.LongThrough), places: places}
	l.Move(r, phases.PlacementSystemMessage, string(phases.PlacementSystem)) // the API has no system messages in front
	params := sdk.MessageNewParams{
		Model: r.Model, MaxTokens: int64(r.MaxTokens),
		Tools: b.tools(), System: b.system(), Messages: b.messages(),
	}
	if o.CacheConversation {
		b.markLast(params.Messages)
	}
	params.Messages = b.withTail(params.Messages)
	l.CheckMinimum(r, known, true)
	return Built{Params: params, Translation: l.Translation}, nil
}

type builder struct {
	*providers.Layout

	long   int // the index in places of the last one with a long lifetime
	places []manifest.BreakAfter
}

// cacheAt returns the mark of a breakpoint, zero for none.
func (b builder) cacheAt(after manifest.BreakAfter) sdk.CacheControlEphemeralParam {
	if after == "" {
		return sdk.CacheControlEphemeralParam{}
	}
	mark := sdk.NewCacheControlEphemeralParam()
	if slices.Index(b.places, after) <= b.long {
		mark.TTL = sdk.CacheControlEphemeralTTLTTL1h
	}
	return mark
}

func (b builder) tools() []sdk.ToolUnionParam {
	var out []sdk.ToolUnionParam
	for i := range b.Tools {
		t := &b.Tools[i]
		tool := &sdk.ToolParam{
			Name: t.Name,
			// Overridden to keep its canonical bytes.
			InputSchema: param.Override[sdk.ToolInputSchemaParam](t.Schema),
		}
		if t.Description != "" {
			tool.Description = sdk.String(t.Description)
		}
		if b.BreakAfterTools && i == len(b.Tools)-1 {
			tool.CacheControl = b.cacheAt(manifest.AfterTools)
		}
		out = append(out, sdk.ToolUnionParam{OfTool: tool})
	}
	return out
}

func (b builder) system() []sdk.TextBlockParam {
	var out []sdk.TextBlockParam
	for _, s := range b.System {
		out = append(out, sdk.TextBlockParam{Text: s.Text, CacheControl: b.cacheAt(s.Break.After)})
	}
	for _, text := range b.SystemMessages {
		out = append(out, sdk.TextBlockParam{Text: text})
	}
	return out
}

func (b builder) messages() []sdk.MessageParam {
	var out []sdk.MessageParam
	for _, m := range b.Messages {
		var blocks []sdk.ContentBlockParamUnion
		for _, p := range m.Parts {
			blocks = append(blocks, b.blocks(p)...)
		}
		switch {
		case len(blocks) == 0:
		case m.Assistant:
			out = append(out, sdk.NewAssistantMessage(blocks...))
		default:
			out = append(out, sdk.NewUserMessage(blocks...))
		}
	}
	return out
}

func (b builder) blocks(p providers.Part) []sdk.ContentBlockParamUnion {
	var raw []json.RawMessage
	plain := b.For(compiler.Anthropic, p, func(data json.RawMessage) error { return json.Unmarshal(data, &raw) })
	var out []sdk.ContentBlockParamUnion
	for _, block := range raw {
		out = append(out, param.Override[sdk.ContentBlockParamUnion](block))
	}
	for _, p := range plain {
		switch {
		case p.Call != nil:
			out = append(out, sdk.NewToolUseBlock(p.Call.ID, b.Arguments(p.Call), b.Names.Wire(p.Call.Tool)))
		case p.Result != nil:
			out = append(out, sdk.ContentBlockParamUnion{OfToolResult: toolResult(p.Result)})
		case p.Media != nil:
			out = append(out, media(p.Media))
		default:
			out = append(out, sdk.NewTextBlock(p.Text))
		}
	}
	return out
}

func toolResult(r *history.Result) *sdk.ToolResultBlockParam {
	out := &sdk.ToolResultBlockParam{ToolUseID: r.CallID}
	if strings.TrimSpace(r.Text) != "" { // blank text blocks are refused
		out.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: r.Text}}}
	}
	if r.IsError {
		out.IsError = sdk.Bool(true)
	}
	return out
}

func media(m *history.Media) sdk.ContentBlockParamUnion {
	data := base64.StdEncoding.EncodeToString(m.Data)
	inline := len(m.Data) > 0
	switch {
	case m.Image() && inline:
		return sdk.NewImageBlockBase64(m.Type, data)
	case m.Image():
		return sdk.NewImageBlock(sdk.URLImageSourceParam{URL: m.URI})
	}
	var block sdk.ContentBlockParamUnion
	switch {
	case !inline:
		block = sdk.NewDocumentBlock(sdk.URLPDFSourceParam{URL: m.URI})
	case m.Type == "text/plain":
		block = sdk.NewDocumentBlock(sdk.PlainTextSourceParam{Data: string(m.Data)})
	default:
		block = sdk.NewDocumentBlock(sdk.Base64PDFSourceParam{Data: data})
	}
	if m.Name != "" {
		block.OfDocument.Title = sdk.String(m.Name)
	}
	return block
}

func (b builder) markLast(messages []sdk.MessageParam) {
	if n := len(messages); n > 0 {
		blocks := messages[n-1].Content
		if mark := blocks[len(blocks)-1].GetCacheControl(); mark != nil {
			*mark = sdk.NewCacheControlEphemeralParam()
			return
		}
	}
	b.Warnf(providers.CodeBreakpoint, "the breakpoint behind the conversation has no place in the last message")
}

func (b builder) withTail(messages []sdk.MessageParam) []sdk.MessageParam {
	if b.Tail == "" {
		return messages
	}
	tail := sdk.NewTextBlock(b.Tail)
	if n := len(messages); n > 0 {
		messages[n-1].Content = append(messages[n-1].Content, tail)
		return messages
	}
	return append(messages, sdk.NewUserMessage(tail))
}

// Usage returns what the provider reported. InputTokens includes the tokens read from and written to the cache.
func Usage(u sdk.Usage) phases.Usage {
	return phases.Usage{
		InputTokens:      int(u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens),
		OutputTokens:     int(u.OutputTokens),
		CacheReadTokens:  int(u.CacheReadInputTokens),
		CacheWriteTokens: int(u.CacheCreationInputTokens),
	}
}

// Reply makes an entry of a response: its text, its calls under the names of the tools
// and, if it has anything else (thinking, which must be sent back unchanged), the whole
// as the entry's native form. A call of an unknown tool keeps its name.
func Reply(m *sdk.Message, names providers.Names) (history.Entry, error) {
	e := history.Entry{Role: history.RoleAssistant}
	var text strings.Builder
	for i := range m.Content {
		block := &m.Content[i]
		switch block.Type {
		case "text":
			text.WriteString(block.Text)
		case "tool_use":
			e.Calls = append(e.Calls, names.Call(block.ID, block.Name, block.Input))
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
	e.Native = &history.Native{Provider: compiler.Anthropic, Data: data}
	return e, nil
}

// Package anthropic translates a request to the Messages API of Anthropic, in
// the types of github.com/anthropics/anthropic-sdk-go.
//
// Start at [Build]: its parameters go to the SDK's Messages.New, and [Usage] and
// [Reply] take what comes back.
//
// Anthropic renders tools, then the system prompt, then messages, and caches
// prefixes of that up to the blocks that say so. The plan's breakpoints become
// cache_control of the last tool and of the system blocks.
//
// It sends nothing. Options that the plan does not speak of (temperature,
// thinking) are the host's, who may change the parameters before sending them.
//
// Stability: experimental until 1.0.
package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/facts"
)

// nameMax is how long a tool's name may be.
const nameMax = 128

// Options are what the plan leaves to the host.
type Options struct {
	// LongThrough is the last place whose breakpoint, like all before it, lives
	// for an hour instead of five minutes; empty means none. Longer lifetimes
	// thus always come first, as the API demands.
	LongThrough manifest.BreakAfter
	// CacheConversation puts one more breakpoint, of five minutes, behind the
	// last message, so that the next round of the turn finds this one. The next
	// turn does too, if nothing before it changes: that is what
	// [providers.Request.AfterConversation] is for, which stands behind the
	// breakpoint.
	CacheConversation bool
}

// Built is a request that can be sent.
type Built struct {
	Params sdk.MessageNewParams
	// Names translates the tools that the model calls.
	Names    providers.Names
	Warnings []providers.Warning
}

// Build translates a request. A MaxTokens of 0 asks the API to fill its cache
// and answer nothing. Errors are those of [providers.Lay], and an unknown place
// in the options.
func Build(r providers.Request, o Options) (Built, error) {
	places := []manifest.BreakAfter{"", manifest.AfterTools, manifest.AfterStable, manifest.AfterDynamic}
	if !slices.Contains(places, o.LongThrough) {
		return Built{}, fmt.Errorf("anthropic: unknown place %q for long lifetimes", o.LongThrough)
	}
	known, err := r.Known(facts.Anthropic)
	if err != nil {
		return Built{}, err
	}
	rules := providers.Rules{NameMax: nameMax, Breakpoints: known.Breakpoints}
	if o.CacheConversation {
		rules.Breakpoints--
	}
	l, err := providers.Lay(r, rules)
	if err != nil {
		return Built{}, fmt.Errorf("anthropic: %w", err)
	}
	b := builder{Layout: l, long: slices.Index(places, o.LongThrough), places: places}
	params := sdk.MessageNewParams{
		Model: r.Model, MaxTokens: int64(r.MaxTokens),
		Tools: b.tools(), System: b.system(), Messages: b.messages(),
	}
	if o.CacheConversation {
		b.markLast(params.Messages)
	}
	params.Messages = b.withTail(params.Messages)
	l.CheckMinimum(r.Model, known, l.Prefixes(r.CountTokens))
	return Built{Params: params, Names: l.Names, Warnings: l.Warnings}, nil
}

type builder struct {
	*providers.Layout

	// long is the index in places of the last one with a long lifetime.
	long   int
	places []manifest.BreakAfter
}

// cacheAt is the mark of a breakpoint; none where there is no breakpoint.
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
			// As it is, so that the bytes of equal schemas are equal.
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
	// There is no system message among the messages, so those of the prompt are
	// blocks behind it.
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
	plain := b.For(facts.Anthropic, p, func(data json.RawMessage) error { return json.Unmarshal(data, &raw) })
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

// markLast puts a breakpoint behind the conversation.
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

// withTail puts what stands behind the conversation into the user's last message,
// where texts come after results.
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

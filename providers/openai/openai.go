// Package openai translates a request to the Responses API of OpenAI, in the
// types of github.com/openai/openai-go/v3.
//
// Start at [Build]: its parameters go to the SDK's Responses.New, and [Usage]
// and [Reply] take what comes back.
//
// OpenAI finds the prefixes to cache by itself; the plan's key becomes
// prompt_cache_key, which brings requests with one stable part together. Models
// that take explicit breakpoints get the plan's too, if the host says so.
//
// None of these sends anything. Options that the plan does not speak of (store, reasoning,
// temperature) are the host's, who may change the parameters before sending
// them. Requests do not lean on earlier responses: the history is in them.
//
// A [Completer] is another thing: it asks a model for plugins, over the older Chat
// Completions API, which servers of many makers speak. It does send.
//
// Stability: experimental until 1.0.
package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/facts"
)

// Options are what the plan leaves to the host.
type Options struct {
	// Breakpoints sends the plan's breakpoints of the system prompt to models that
	// take them. There is none behind the tools.
	Breakpoints bool
	// Lifetime is the least that a cached prefix lives for, such as "12h", with
	// Breakpoints; empty is the API's default.
	Lifetime string
}

// Built is a request that can be sent.
type Built struct {
	Params responses.ResponseNewParams
	// Names translates the tools that the model calls.
	Names    providers.Names
	Warnings []providers.Warning
}

// Build translates a request. Errors are those of [providers.Lay], and a
// lifetime that the model does not have.
func Build(r providers.Request, o Options) (Built, error) {
	known, err := r.Known(facts.OpenAI)
	if err != nil {
		return Built{}, err
	}
	if o.Lifetime != "" && !slices.Contains(known.Lifetimes, o.Lifetime) {
		return Built{}, fmt.Errorf("openai: model %q has no cache lifetime %q, only %q", r.Model, o.Lifetime, known.Lifetimes)
	}
	rules := providers.Rules{}
	if o.Breakpoints {
		rules.Breakpoints = known.Breakpoints
	}
	l, err := providers.Lay(r, rules)
	if err != nil {
		return Built{}, fmt.Errorf("openai: %w", err)
	}
	b := builder{Layout: l}
	params := responses.ResponseNewParams{
		Model: r.Model,
		Tools: b.tools(),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: b.items()},
	}
	if l.Key != "" {
		params.PromptCacheKey = sdk.String(l.Key)
	}
	if r.MaxTokens > 0 {
		params.MaxOutputTokens = sdk.Int(int64(r.MaxTokens))
	}
	if rules.Breakpoints > 0 {
		params.PromptCacheOptions.Ttl = o.Lifetime
	} else if o.Breakpoints {
		l.Warnf(providers.CodeBreakpoint, "model %s takes no breakpoints (as of %s)", r.Model, known.Date)
	}
	l.CheckMinimum(r.Model, known, l.Whole(r.CountTokens))
	return Built{Params: params, Names: l.Names, Warnings: l.Warnings}, nil
}

type builder struct{ *providers.Layout }

func (b builder) tools() []responses.ToolUnionParam {
	var out []responses.ToolUnionParam
	for i := range b.Tools {
		t := &b.Tools[i]
		// Strict schemas are a dialect of their own, which plugins do not write.
		tool := &responses.FunctionToolParam{Name: t.Name, Parameters: members(t.Schema), Strict: sdk.Bool(false)}
		if t.Description != "" {
			tool.Description = sdk.String(t.Description)
		}
		out = append(out, responses.ToolUnionParam{OfFunction: tool})
	}
	return out
}

// members divides an object into its members, which keep their bytes.
func members(object json.RawMessage) map[string]any {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(object, &raw); err != nil {
		return map[string]any{} // layouts hold objects only
	}
	out := make(map[string]any, len(raw))
	for name, value := range raw {
		out[name] = value
	}
	return out
}

// items are the system prompt and the conversation.
func (b builder) items() responses.ResponseInputParam {
	var out responses.ResponseInputParam
	if item, ok := b.system(); ok {
		out = append(out, item)
	}
	for _, text := range b.SystemMessages {
		out = append(out, message(text, responses.EasyInputMessageRoleSystem))
	}
	for _, m := range b.Messages {
		for _, p := range m.Parts {
			out = append(out, b.part(m, p)...)
		}
	}
	if b.Tail != "" {
		out = append(out, message(b.Tail, responses.EasyInputMessageRoleSystem))
	}
	return out
}

func message(text string, role responses.EasyInputMessageRole) responses.ResponseInputItemUnionParam {
	return responses.ResponseInputItemParamOfMessage(text, role)
}

// system is one message, in pieces if there are breakpoints.
func (b builder) system() (responses.ResponseInputItemUnionParam, bool) {
	if !slices.ContainsFunc(b.System, func(s providers.Segment) bool { return s.Break.After != "" }) {
		text := b.SystemText()
		return message(text, responses.EasyInputMessageRoleSystem), text != ""
	}
	var pieces responses.ResponseInputMessageContentListParam
	for _, s := range b.System {
		piece := &responses.ResponseInputTextParam{Text: s.Text}
		if s.Break.After != "" {
			piece.PromptCacheBreakpoint = responses.NewResponseInputTextPromptCacheBreakpointParam()
		}
		pieces = append(pieces, responses.ResponseInputContentUnionParam{OfInputText: piece})
	}
	return responses.ResponseInputItemParamOfMessage(pieces, responses.EasyInputMessageRoleSystem), true
}

func (b builder) part(m providers.Message, p providers.Part) responses.ResponseInputParam {
	var raw []json.RawMessage
	plain := b.For(facts.OpenAI, p, func(data json.RawMessage) error { return json.Unmarshal(data, &raw) })
	var out responses.ResponseInputParam
	for _, item := range raw {
		out = append(out, param.Override[responses.ResponseInputItemUnionParam](item))
	}
	for _, p := range plain {
		switch {
		case p.Call != nil:
			out = append(out, responses.ResponseInputItemParamOfFunctionCall(arguments(p.Call), p.Call.ID, b.Names.Wire(p.Call.Tool)))
		case p.Result != nil:
			out = append(out, result(p.Result))
		case m.Assistant:
			out = append(out, message(p.Text, responses.EasyInputMessageRoleAssistant))
		default:
			out = append(out, message(p.Text, responses.EasyInputMessageRoleUser))
		}
	}
	return out
}

// arguments are a string in this API, so that what a model got wrong can be sent
// back as it was.
func arguments(c *history.Call) string {
	if len(c.Arguments) == 0 {
		return "{}"
	}
	return string(c.Arguments)
}

// result is a tool's answer. The API has no place for "this is an error"; the
// text says it, or nothing does.
func result(r *history.Result) responses.ResponseInputItemUnionParam {
	return responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
		CallID: sdk.String(r.CallID),
		Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: sdk.String(r.Text)},
	}}
}

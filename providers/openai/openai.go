// Package openai translates a request to the Responses API of OpenAI, in the types of github.com/openai/openai-go/v3.
//
// Start at [Build]: its parameters go to the SDK's Responses.New, and [Usage] and [Reply] take what comes back.
//
// OpenAI caches prefixes by itself; the plan's key becomes prompt_cache_key, which groups requests with one stable
// part. Models that accept explicit breakpoints get the plan's too, if the host wants it. Nothing is sent: the host
// may set other parameters (store, reasoning, temperature) first. Requests contain the history and do not refer to
// earlier responses.
//
// A [Completer] does send: it calls a model for plugins, over the older Chat Completions
// API, which many servers speak.
//
// Stability: experimental until 1.0.
package openai

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
)

// Options are what the plan leaves to the host.
type Options struct {
	// Breakpoints sends the plan's breakpoints of the system prompt, but not the one
	// behind the tools, to models that accept them.
	Breakpoints bool
	// Lifetime is the least lifetime of a cached prefix, such as "12h", with Breakpoints; empty is the API's default.
	Lifetime string
}

// Built is a request that can be sent.
type Built struct {
	providers.Translation

	Params responses.ResponseNewParams
}

// Build translates a request. Errors are those of [providers.Lay], and a lifetime that the model does not have.
func Build(r providers.Request, o Options) (Built, error) {
	known, err := r.Known(compiler.OpenAI)
	if err != nil {
		return Built{}, err
	}
	if o.Lifetime != "" && !slices.Contains(known.Lifetimes, o.Lifetime) {
		return Built{}, fmt.Errorf("openai: model %q has no cache lifetime %q, only %q", r.Model, o.Lifetime, known.Lifetimes)
	}
	rules := providers.Rules{Provider: compiler.OpenAI}
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
		l.Warnf(providers.CodeBreakpoint, "model %s accepts no breakpoints (as of %s)", r.Model, known.Date)
	}
	l.CheckMinimum(r, known, false)
	return Built{Params: params, Translation: l.Translation}, nil
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

// members splits an object into its members, which keep their bytes.
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
	plain := b.For(compiler.OpenAI, p, func(data json.RawMessage) error { return json.Unmarshal(data, &raw) })
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
		case p.Media != nil:
			out = append(out, responses.ResponseInputItemParamOfMessage(
				responses.ResponseInputMessageContentListParam{media(p.Media)}, responses.EasyInputMessageRoleUser))
		case m.Assistant:
			out = append(out, message(p.Text, responses.EasyInputMessageRoleAssistant))
		default:
			out = append(out, message(p.Text, responses.EasyInputMessageRoleUser))
		}
	}
	return out
}

// arguments are a string in this API, so that what a model got wrong can be sent back as it was.
func arguments(c *history.Call) string {
	if len(c.Arguments) == 0 {
		return "{}"
	}
	return string(c.Arguments)
}

// result is a tool's answer. The API has no place for "this is an error"; the text says it, or nothing does.
func result(r *history.Result) responses.ResponseInputItemUnionParam {
	return responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
		CallID: sdk.String(r.CallID),
		Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: sdk.String(r.Text)},
	}}
}

// media is an image or a file. Both go as a data URL if the bytes are there.
func media(m *history.Media) responses.ResponseInputContentUnionParam {
	uri := m.URI
	if len(m.Data) > 0 {
		uri = "data:" + m.Type + ";base64," + base64.StdEncoding.EncodeToString(m.Data)
	}
	if m.Image() {
		return responses.ResponseInputContentUnionParam{OfInputImage: &responses.ResponseInputImageParam{
			ImageURL: sdk.String(uri), Detail: responses.ResponseInputImageDetailAuto,
		}}
	}
	file := &responses.ResponseInputFileParam{}
	if len(m.Data) > 0 {
		file.FileData, file.Filename = sdk.String(uri), sdk.String(cmp.Or(m.Name, "document"))
	} else {
		file.FileURL = sdk.String(uri)
	}
	return responses.ResponseInputContentUnionParam{OfInputFile: file}
}

// Usage returns what the provider reported. InputTokens includes those read from and written to the cache.
func Usage(u responses.ResponseUsage) phases.Usage {
	return phases.Usage{
		InputTokens:      int(u.InputTokens),
		OutputTokens:     int(u.OutputTokens),
		CacheReadTokens:  int(u.InputTokensDetails.CachedTokens),
		CacheWriteTokens: int(u.InputTokensDetails.CacheWriteTokens),
	}
}

// Reply makes an entry of a response: its text, its calls under the names of the tools and, if there is anything else
// in it (reasoning, which has to be sent back as it is), the whole as the entry's native form. A refusal is text. A
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
			e.Calls = append(e.Calls, names.Call(call.CallID, call.Name, arguable(call.Arguments)))
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
	e.Native = &history.Native{Provider: compiler.OpenAI, Data: data}
	return e, nil
}

// arguable keeps an entry fit for storing as JSON: arguments that are none become a JSON string.
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

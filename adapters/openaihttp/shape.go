package openaihttp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
)

// shape is what one API has its own way of. The names are those of the vendors' SDKs, github.com/openai/openai-go/v3
// v3.95.0 and github.com/anthropics/anthropic-sdk-go v1.84.0.
type shape struct {
	path, provider string
	// list is the conversation's member of the request. Calls and results are its messages, or in a member of them.
	list, callsIn, resultsIn     string
	callID, resultID, resultText string
	// index is the member of an event that says which item of the answer it is about.
	index            string
	isCall, isResult func(object) bool
	// place puts the prompt into a request, and returns messages that stand before the conversation.
	place func(x *exchange, body *object, p *loop.Prompt) (front []json.RawMessage)
	tool  func(t *providers.Tool) object
	// result is a tool's answer to a call, and said the messages of an answer all of whose calls have results.
	result func(call object, id, text string, isError bool) object
	said   func(a *answer, results []json.RawMessage) []json.RawMessage
	// take reads one event of an answer, or the whole of it, and frames writes the events of a call that was held back.
	take   func(x *exchange, ev event) error
	frames func(x *exchange, it *item) []event
	// store puts what is shown into the event at an answer's end.
	store func(x *exchange, doc *object)
}

func shapes() []*shape {
	typed := func(kind string) func(object) bool { return func(o object) bool { return o.text("type") == kind } }
	return []*shape{
		{ // openai.ChatCompletionNewParams, ChatCompletion and ChatCompletionChunk
			path: "/chat/completions", provider: compiler.OpenAI, list: "messages", callsIn: "tool_calls",
			callID: "id", resultID: "tool_call_id", resultText: "content",
			isCall: func(object) bool { return true }, isResult: func(o object) bool { return o.text("role") == "tool" },
			place: placeChat, take: takeChat, frames: framesChat, store: storeChat,
			tool: func(t *providers.Tool) object {
				return newObject("type", "function", "function", newObject("name", t.Name, "description", t.Description, "parameters", t.Schema))
			},
			result: func(_ object, id, text string, _ bool) object {
				return newObject("role", "tool", "tool_call_id", id, "content", text)
			},
			said: func(a *answer, results []json.RawMessage) []json.RawMessage {
				message := join(a.heads)
				message.set("tool_calls", bodies(a.items))
				return append([]json.RawMessage{encode(message)}, results...)
			},
		},
		{ // responses.ResponseNewParams, Response and ResponseStreamEventUnion
			path: "/responses", provider: compiler.OpenAI, list: "input", callID: "call_id", resultID: "call_id", resultText: "output", index: "output_index",
			isCall:   func(o object) bool { return strings.HasSuffix(o.text("type"), "_call") && o.text("call_id") != "" },
			isResult: func(o object) bool { return strings.HasSuffix(o.text("type"), "_call_output") },
			place:    placeResponses, take: takeResponses, frames: framesResponses, store: storeResponses,
			tool: func(t *providers.Tool) object {
				// Strict schemas are a dialect of their own, which plugins do not write.
				return newObject("type", "function", "name", t.Name, "description", t.Description, "parameters", t.Schema, "strict", false)
			},
			result: func(call object, id, text string, _ bool) object {
				return newObject("type", call.text("type")+"_output", "call_id", id, "output", text)
			},
			said: func(a *answer, results []json.RawMessage) []json.RawMessage {
				return append(bodies(a.items), results...)
			},
		},
		{ // anthropic.MessageNewParams, Message and MessageStreamEventUnion
			path: "/v1/messages", provider: compiler.Anthropic, list: "messages", callsIn: "content", resultsIn: "content",
			callID: "id", resultID: "tool_use_id", resultText: "content", index: "index",
			isCall: typed("tool_use"), isResult: typed("tool_result"),
			place: placeMessages, take: takeMessages, frames: framesMessages, store: storeMessages,
			tool: func(t *providers.Tool) object {
				return newObject("name", t.Name, "description", t.Description, "input_schema", t.Schema)
			},
			result: func(_ object, id, text string, isError bool) object {
				return newObject("type", "tool_result", "tool_use_id", id, "content", text, "is_error", isError)
			},
			said: func(a *answer, results []json.RawMessage) []json.RawMessage {
				return []json.RawMessage{
					encode(newObject("role", "assistant", "content", bodies(a.items))), encode(newObject("role", "user", "content", results)),
				}
			},
		},
	}
}

// inner is where a call, or a tool's definition, has its name: in Chat Completions one level deeper.
func (s *shape) inner(o object) (inner object, in string) {
	if s.callsIn != "tool_calls" {
		return o, ""
	}
	in = cmp.Or(o.text("type"), "function")
	return o.object(in), in
}

// call reads a call. Its arguments are an object; what is none is wrapped into one under the name of its member.
func (s *shape) call(o object) loop.Call {
	in, _ := s.inner(o)
	c := loop.Call{ID: o.text(s.callID), Tool: cmp.Or(textOf(in.values["name"]), strings.TrimSuffix(o.text("type"), "_call"))}
	field, args, plain := arguments(in)
	if c.Arguments = args; !plain {
		c.Arguments = encode(newObject(field, args))
	}
	return c
}

// setArguments is the reverse.
func (s *shape) setArguments(o *object, args json.RawMessage) error {
	in, name := s.inner(*o)
	field, _, plain := arguments(in)
	rewritten, err := parse(args)
	switch {
	case err != nil:
		return err
	case !plain && rewritten.values[field] == nil:
		return fmt.Errorf("a rewrite of this call has to have the member %q", field)
	case !plain:
		args = rewritten.values[field]
	case field == "arguments":
		args = encode(string(args))
	}
	if in.set(field, args); name == "" {
		*o = in
	} else {
		o.set(name, in)
	}
	return nil
}

// arguments finds a call's arguments; plain are those that are an object by themselves.
func arguments(in object) (field string, args json.RawMessage, plain bool) {
	for _, field = range []string{"arguments", "input", "action", "operation"} {
		if args = in.values[field]; args != nil {
			break
		}
	}
	if text := in.text("arguments"); field == "arguments" && text != "" {
		_, err := parse([]byte(text))
		if err == nil {
			args = json.RawMessage(text)
		}
		return field, args, err == nil
	}
	if args == nil || string(args) == `""` && field == "arguments" {
		return "arguments", json.RawMessage(`{}`), true
	}
	return field, args, field == "input" && args[0] == '{'
}

// role is user, tool, assistant, system or developer.
func (s *shape) role(o object) string {
	switch role := o.text("role"); {
	case role == "user" && s.resultsIn != "" && slices.ContainsFunc(o.list(s.resultsIn), func(raw json.RawMessage) bool {
		part, err := parse(raw)
		return err == nil && s.isResult(part)
	}):
		return "tool"
	case role != "":
		return role
	case s.isResult(o):
		return "tool"
	}
	return "assistant"
}

// each calls f with each object of a list, or of the member of its objects, that matches. What f returns true for is
// put back.
func each(list []json.RawMessage, in string, match func(object) bool, f func(o *object) bool) {
	for i, raw := range list {
		o, err := parse(raw)
		if err != nil {
			continue // for the provider to refuse
		}
		if in == "" {
			if match(o) && f(&o) {
				list[i] = encode(o)
			}
			continue
		}
		changed, inner := false, o.list(in)
		each(inner, "", match, func(part *object) bool {
			put := f(part)
			changed = changed || put
			return put
		})
		if changed {
			o.set(in, inner)
			list[i] = encode(o)
		}
	}
}

// splice puts things before the first match in a list from an index on, or in the member of its objects.
func splice(list []json.RawMessage, from int, in string, match func(object) bool, extra []json.RawMessage) ([]json.RawMessage, bool) {
	for i := from; i < len(list); i++ {
		o, err := parse(list[i])
		switch {
		case err != nil:
		case in == "" && match(o):
			return slices.Insert(list, i, extra...), true
		case in != "":
			if more, found := splice(o.list(in), 0, "", match, extra); found {
				o.set(in, more)
				list[i] = encode(o)
				return list, true
			}
		}
	}
	return list, false
}

func asMessages(role string, of []compiler.Message) []json.RawMessage {
	var out []json.RawMessage
	for _, m := range of {
		out = append(out, encode(newObject("role", role, "content", m.Text)))
	}
	return out
}

func texts(first string, of ...[]compiler.Message) string {
	all := []string{first}
	for _, m := range slices.Concat(of...) {
		all = append(all, m.Text)
	}
	return strings.Join(all, "\n\n")
}

// placeChat puts the prompt into the client's first system or developer message.
func placeChat(x *exchange, _ *object, p *loop.Prompt) []json.RawMessage {
	first := newObject("role", "system")
	if len(x.leading) > 0 {
		first = x.leading[0].clone()
	}
	first.set("content", p.FullText)
	return slices.Concat([]json.RawMessage{encode(first)}, asMessages(first.text("role"), p.SystemMessages), asMessages("user", p.UserMessages))
}

// placeResponses uses instructions, which apply to one request, unless the client began with a message. The provider
// stores messages, so that a continued response gets no more of the prompt's.
func placeResponses(x *exchange, body *object, p *loop.Prompt) []json.RawMessage {
	if len(x.leading) > 0 {
		return placeChat(x, body, p)
	}
	if body.has("previous_response_id") {
		body.set("instructions", texts(p.FullText, p.SystemMessages, p.UserMessages))
		return nil
	}
	body.set("instructions", texts(p.FullText, p.SystemMessages))
	return asMessages("user", p.UserMessages)
}

// placeMessages makes blocks of the system prompt if the client has marks for the cache there: its first one ends the
// stable part, its last one, if it has more, the whole.
func placeMessages(x *exchange, body *object, p *loop.Prompt) []json.RawMessage {
	front := asMessages("user", p.UserMessages)
	var marks []json.RawMessage
	each(x.body.list("system"), "", func(o object) bool { return o.has("cache_control") }, func(o *object) bool {
		marks = append(marks, o.values["cache_control"])
		return false
	})
	if len(marks) == 0 {
		body.set("system", texts(p.FullText, p.SystemMessages))
		return front
	}
	rest := strings.TrimPrefix(texts(p.FullText, p.SystemMessages), p.StableText)
	var blocks []json.RawMessage
	for i, text := range []string{p.StableText, rest} {
		block := newObject("type", "text", "text", text)
		if i == 0 || p.StableText == "" {
			block.set("cache_control", marks[0])
		} else if len(marks) > 1 {
			block.set("cache_control", marks[len(marks)-1])
		}
		if text != "" {
			blocks = append(blocks, encode(block))
		}
	}
	body.set("system", blocks)
	return front
}

// usage is what all three APIs report, in their names.
type usage struct {
	Prompt        int     `json:"prompt_tokens"`
	Completion    int     `json:"completion_tokens"`
	PromptDetails details `json:"prompt_tokens_details"`
	Input         int     `json:"input_tokens"`
	Output        int     `json:"output_tokens"`
	InputDetails  details `json:"input_tokens_details"`
	// Anthropic does not count these as input.
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

type details struct {
	Read  int `json:"cached_tokens"`
	Write int `json:"cache_write_tokens"`
}

// read adds what a later event reports.
func (u *usage) read(raw json.RawMessage) {
	if raw != nil {
		_ = json.Unmarshal(raw, u) // what is no number is not known
	}
}

func (u *usage) sum() phases.Usage {
	return phases.Usage{
		InputTokens:  u.Prompt + u.Input + u.CacheRead + u.CacheWrite,
		OutputTokens: u.Completion + u.Output, CacheReadTokens: u.PromptDetails.Read + u.InputDetails.Read + u.CacheRead,
		CacheWriteTokens: u.PromptDetails.Write + u.InputDetails.Write + u.CacheWrite,
	}
}

// checkRequest refuses what would go past the plugins.
func (s *shape) checkRequest(body object) error {
	var n int
	_ = json.Unmarshal(body.values["n"], &n) // anything else is the provider's to refuse
	switch {
	case n > 1:
		return errors.New(`"n" has to be 1: a conversation goes on with one answer`)
	case body.has("functions") || body.has("function_call"):
		return errors.New(`"functions" are not judged: use "tools"`)
	case body.has("conversation"):
		return errors.New(`"conversation" is not possible: what the client does not know would be stored there`)
	case string(body.values["background"]) == "true":
		return errors.New(`"background" is not possible: its answer would not be judged`)
	}
	return nil
}

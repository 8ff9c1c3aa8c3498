package openaihttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

func takeChat(x *exchange, ev event) error {
	a, d := x.answer, ev.data
	if d == nil {
		a.ends = append(a.ends, ev)
		return nil
	}
	a.usage.read(d.values["usage"])
	if x.streamed && x.first == nil {
		first := d.clone()
		x.first = &first
		x.first.remove("usage")
	}
	switch choices := d.list("choices"); {
	case d.has("error"):
		x.emit(ev)
		a.err = fmt.Errorf("%.200s", d.values["error"])
	case len(choices) == 1:
		choice, err := parse(choices[0])
		if err != nil {
			return err
		}
		return takeChoice(x, ev, choice)
	case len(choices) > 1 || !x.streamed:
		return errors.New("the answer does not have one choice")
	case a.complete && x.addedUsage: // the client did not ask for it
	case a.complete:
		a.ends = append(a.ends, ev)
	default:
		x.emit(ev)
	}
	return nil
}

// takeChoice holds back calls and what says that the answer is over.
func takeChoice(x *exchange, ev event, choice object) error {
	a, key := x.answer, "message"
	if x.streamed {
		key = "delta"
	}
	message := choice.object(key)
	for i, raw := range message.list("tool_calls") {
		call, err := parse(raw)
		if err != nil {
			return err
		}
		_ = json.Unmarshal(call.values["index"], &i) // without one they are in order
		call.remove("index")
		it := a.item(i)
		it.parts, it.held = append(it.parts, call), true
	}
	message.remove("tool_calls")
	if message.has("function_call") {
		return errors.New("the answer has a function_call, which is not judged")
	}
	a.heads = append(a.heads, message)
	if !x.streamed {
		a.end(ev)
		return nil
	}
	if x.addedUsage {
		ev.data.remove("usage")
	}
	put := func(delta object, finish json.RawMessage) event {
		chunk, over := ev.data.clone(), choice.clone()
		over.set(key, delta)
		over.set("finish_reason", finish)
		chunk.set("choices", []json.RawMessage{encode(over)})
		return event{head: ev.head, data: &chunk}
	}
	if choice.has("finish_reason") {
		a.end(put(newObject(), choice.values["finish_reason"]))
	}
	if len(message.names) > 0 {
		x.emit(put(message, json.RawMessage("null")))
	}
	return nil
}

func framesChat(x *exchange, it *item) []event {
	chunk, call := x.first.clone(), it.body.clone()
	call.set("index", it.index)
	delta := newObject("tool_calls", []json.RawMessage{encode(call)})
	chunk.set("choices", []json.RawMessage{encode(newObject("index", 0, "delta", delta, "finish_reason", nil))})
	return []event{{data: &chunk}}
}

func storeChat(x *exchange, doc *object) {
	if x.streamed {
		return
	}
	choice, _ := parse(doc.list("choices")[0]) // it was read before
	message := choice.object("message")
	all := join(x.heads)
	for _, name := range all.names {
		message.set(name, all.values[name])
	}
	if message.remove("tool_calls"); len(x.items) > 0 {
		message.set("tool_calls", x.items)
	}
	choice.set("message", message)
	doc.set("choices", []json.RawMessage{encode(choice)})
}

func takeMessages(x *exchange, ev event) error {
	a, d := x.answer, ev.data
	if d == nil {
		return errors.New("an event is not an object")
	}
	switch d.text("type") {
	case "message":
		a.usage.read(d.values["usage"])
		a.end(ev)
		return a.whole(d.list("content"))
	case "message_start":
		a.usage.read(d.object("message").values["usage"])
		if x.round == 0 {
			x.emit(ev)
		}
	case "content_block_start":
		block := d.object("content_block")
		a.holding = a.holding || x.shape.isCall(block)
		it := a.item(x.at(d))
		it.parts = append(it.parts, block)
		x.pass(it, ev)
	case "content_block_delta":
		it, delta := a.item(x.at(d)), d.object("delta")
		if delta.remove("type"); delta.has("citation") {
			delta = newObject("citations", []json.RawMessage{delta.values["citation"]})
		}
		it.parts = append(it.parts, delta)
		x.pass(it, ev)
	case "content_block_stop":
		x.pass(a.item(x.at(d)), ev)
	case "message_delta":
		a.usage.read(d.values["usage"])
		a.ends = append(a.ends, ev)
	case "message_stop":
		a.end(ev)
	case "error":
		a.err = fmt.Errorf("%.200s", d.values["error"])
		x.emit(ev)
	default:
		if !x.streamed {
			return errors.New("the answer is not a message")
		}
		x.emit(ev)
	}
	return nil
}

func framesMessages(_ *exchange, it *item) []event {
	start, delta := it.body.clone(), newObject("type", "input_json_delta", "partial_json", string(it.body.values["input"]))
	start.set("input", newObject())
	return []event{
		newEvent(newObject("type", "content_block_start", "index", 0, "content_block", start)),
		newEvent(newObject("type", "content_block_delta", "index", 0, "delta", delta)),
		newEvent(newObject("type", "content_block_stop", "index", 0)),
	}
}

func storeMessages(x *exchange, doc *object) {
	if !x.streamed {
		doc.set("content", x.items)
	}
}

func takeResponses(x *exchange, ev event) error {
	a, d := x.answer, ev.data
	if d == nil {
		a.ends = append(a.ends, ev)
		return nil
	}
	switch kind := d.text("type"); {
	case !x.streamed, slices.Contains([]string{"response.completed", "response.incomplete", "response.failed"}, kind):
		res := *d
		if x.streamed {
			res = d.object("response")
		}
		x.id = res.text("id")
		a.usage.read(res.values["usage"])
		if res.has("error") {
			a.err = fmt.Errorf("%.200s", res.values["error"])
			storeResponses(x, d)
			x.emit(ev)
			return nil
		}
		if !res.has("output") {
			return errors.New("the answer is not a response")
		}
		if a.end(ev); len(a.items) == 0 {
			return a.whole(res.list("output"))
		}
	case kind == "response.created" || kind == "response.in_progress" || kind == "response.queued":
		if x.round == 0 {
			storeResponses(x, d)
			x.emit(ev)
		}
	case kind == "error":
		a.err = fmt.Errorf("%.200s", ev.raw)
		x.emit(ev)
	case d.has("output_index"):
		body := d.object("item")
		a.holding = a.holding || x.shape.isCall(body)
		it := a.item(x.at(d))
		if d.has("item") {
			it.body = body
		}
		x.pass(it, ev)
	default:
		x.emit(ev)
	}
	return nil
}

func framesResponses(_ *exchange, it *item) []event {
	about := func(kind string, members ...any) event {
		return newEvent(newObject(append([]any{"type", "response." + kind, "sequence_number", 0, "output_index", 0}, members...)...))
	}
	added := it.body.clone()
	added.set("status", "in_progress")
	frames := []event{about("output_item.added", "item", added)}
	kind := map[string]string{"function_call": "function_call_arguments", "custom_tool_call": "custom_tool_call_input"}[it.body.text("type")]
	if field, _, _ := arguments(it.body); kind != "" {
		id, args := it.body.text("id"), it.body.text(field)
		added.set(field, "")
		frames[0] = about("output_item.added", "item", added)
		frames = append(frames, about(kind+".delta", "item_id", id, "delta", args), about(kind+".done", "item_id", id, field, args))
	}
	return append(frames, about("output_item.done", "item", it.body))
}

// storeResponses also puts back what the response repeats of the request: the client's words, not the prompt's.
func storeResponses(x *exchange, doc *object) {
	res := *doc
	if x.streamed {
		res = doc.object("response")
	}
	for name, none := range map[string]string{"instructions": "null", "tools": "[]"} {
		if _, ok := res.values[name]; !ok {
			continue
		}
		if res.set(name, json.RawMessage(none)); x.body.has(name) {
			res.set(name, x.body.values[name])
		}
	}
	if x.answer.complete {
		res.set("output", x.items)
	}
	if x.streamed {
		doc.set("response", res)
	} else {
		*doc = res
	}
}

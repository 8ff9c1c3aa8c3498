package openaihttp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one server-sent event, or the whole body of an answer that is not streamed.
type event struct {
	head string // its lines beside the data
	raw  []byte
	data *object // nil if the data is not an object
}

func newEvent(data object) event {
	return event{head: "event: " + data.text("type") + "\n", data: &data}
}

// answer is one answer of the model's, as far as it has come.
type answer struct {
	heads []object // the message around the calls (Chat Completions), in deltas
	items []*item
	usage usage
	ends  []event // what stands behind the items
	// holding begins with the first call: what follows it is held back, too.
	holding, complete bool
	err               error // the provider's own
}

// item is a call, or any block or item of an answer.
type item struct {
	at, index int // upstream, and for the client
	parts     []object
	body      object
	// held items have not been sent; hidden ones never are. A rewritten call has other arguments than its frames.
	held, started, hidden, rewritten bool
	frames                           []event
}

func (a *answer) item(at int) *item {
	i := slices.IndexFunc(a.items, func(it *item) bool { return it.at == at })
	if i < 0 {
		a.items, i = append(a.items, &item{at: at, held: a.holding}), len(a.items)
	}
	return a.items[i]
}

// whole reads the items of an answer that came in one piece.
func (a *answer) whole(list []json.RawMessage) error {
	for i, raw := range list {
		body, err := parse(raw)
		if err != nil {
			return err
		}
		it := a.item(i)
		it.body, it.held = body, true
	}
	return nil
}

func (a *answer) end(ev event) {
	a.ends, a.complete = append(a.ends, ev), true
}

func bodies(items []*item) []json.RawMessage {
	out := make([]json.RawMessage, len(items))
	for i, it := range items {
		out[i] = encode(it.body)
	}
	return out
}

// next reads one event; at the end the error is io.EOF.
func (x *exchange) next() (event, error) {
	var ev event
	if !x.streamed {
		raw, err := io.ReadAll(io.LimitReader(x.res.Body, x.p.o.MaxBody+1))
		switch {
		case err != nil:
			return ev, err
		case int64(len(raw)) > x.p.o.MaxBody:
			return ev, bufio.ErrTooLong
		case x.size > 0:
			return ev, io.EOF
		}
		x.size++
		return decoded(ev, raw)
	}
	var data [][]byte
	for x.lines.Scan() {
		line := x.lines.Bytes()
		if x.size += int64(len(line)); x.size > x.p.o.MaxBody {
			return ev, bufio.ErrTooLong
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0 && data != nil:
			return decoded(ev, bytes.Join(data, []byte("\n")))
		case len(line) == 0:
			ev = event{}
		case len(name) == 0:
			x.buffer.Write(line) // a comment keeps the connection alive
			x.buffer.WriteString("\n\n")
			return ev, errComment
		case string(name) == "data":
			data = append(data, bytes.Clone(bytes.TrimPrefix(value, []byte(" "))))
		default:
			ev.head += string(line) + "\n"
		}
	}
	if err := x.lines.Err(); err != nil {
		return ev, err
	}
	return ev, io.EOF
}

var errComment = errors.New("a comment")

func decoded(ev event, raw []byte) (event, error) {
	if ev.raw = raw; string(raw) == "[DONE]" {
		return ev, nil
	}
	o, err := parse(raw)
	ev.data = &o
	return ev, err
}

// emit sends an event to the client. Later rounds go on with the ids and numbers of the first.
func (x *exchange) emit(ev event) {
	switch {
	case ev.data == nil:
	case x.first != nil && ev.data.has("id"):
		ev.data.set("id", x.first.values["id"])
	case ev.data.has("sequence_number"):
		ev.data.set("sequence_number", x.sequence)
		x.sequence++
	}
	if ev.data != nil {
		ev.raw = encode(*ev.data)
	}
	if !x.streamed {
		x.buffer.Write(ev.raw)
		return
	}
	x.buffer.WriteString(ev.head)
	for line := range bytes.Lines(ev.raw) {
		fmt.Fprintf(&x.buffer, "data: %s\n", bytes.TrimRight(line, "\n"))
	}
	x.buffer.WriteByte('\n')
}

// pass sends an item's event under the item's index for the client, or holds it back.
func (x *exchange) pass(it *item, ev event) {
	if it.held {
		it.frames = append(it.frames, ev)
		return
	}
	if !it.started {
		it.started, it.index = true, x.shown
		x.shown++
	}
	ev.data.set(x.shape.index, it.index)
	x.emit(ev)
}

// show sends an item that was held back.
func (x *exchange) show(it *item) {
	it.index = x.shown
	x.shown++
	frames := it.frames
	if it.rewritten || x.shape.index == "" {
		frames = x.shape.frames(x, it)
	}
	for _, ev := range frames {
		if x.shape.index != "" {
			ev.data.set(x.shape.index, it.index)
		}
		x.emit(ev)
	}
}

// at is the item that an event is about.
func (x *exchange) at(d *object) (at int) {
	_ = json.Unmarshal(d.values[x.shape.index], &at) // what is no number is the first
	return at
}

// finish makes the bodies of items that came in parts.
func (a *answer) finish() {
	for _, it := range a.items {
		if len(it.parts) == 0 {
			continue
		}
		it.body = join(it.parts)
		if args := it.body.text("partial_json"); args != "" {
			if it.body.set("input", args); json.Valid([]byte(args)) {
				it.body.set("input", json.RawMessage(args))
			}
		}
		it.body.remove("partial_json")
	}
}

// said is the text of an answer.
func (a *answer) said() string {
	texts := []string{textOf(join(a.heads).values["content"])}
	for _, it := range a.items {
		texts = append(texts, it.body.text("text"), textOf(it.body.values["content"]))
	}
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n\n")
}

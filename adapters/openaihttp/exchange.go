package openaihttp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/runtime"
)

// ClientSection is the section of the prompt that has the client's own instructions.
const ClientSection = "client_instructions"

// exchange is one request of a client's, with all that is asked of the model for it.
type exchange struct {
	p     *Proxy
	shape *shape
	in    *http.Request
	out   *http.Request
	ctx   context.Context //nolint:containedctx // an exchange lives as long as its request

	// The request: its conversation without the messages that lead it, and the index behind what the user said last.
	body       object
	leading    []object
	list       []json.RawMessage
	roles      []string
	end        int
	calls      map[string]loop.Call // of the conversation, by id
	addedUsage bool

	// The turn.
	where  phases.Context
	turn   *turn
	agent  *loop.Turn
	group  *waiting // what the request answers
	scope  place    // of these credentials and ids
	named  place    // of the turn that the client names
	places []place  // before each message of the list
	stitch stitch   // at the end
	names  providers.Names
	host   map[string]bool // the client's own tools
	round  int
	// changes are how the request differs from the record of its prompt.
	changes []providers.Change
	waits   *waiting // what the client has to answer

	// The answer.
	res         *http.Response
	streamed    bool
	lines       *bufio.Scanner
	size        int64
	answer      *answer
	heads       []object
	items       []json.RawMessage // all that the client sees
	id          string
	first       *object // the first chunk (Chat Completions)
	shown       int
	sequence    int
	given       map[string]loop.Call
	text        string
	buffer      bytes.Buffer
	done, ended bool
}

// stitch is what the provider was sent at a place of a conversation and the client does not know.
type stitch struct {
	// Before stands there; Calls join those of the next answer, and Results its results.
	Before  []json.RawMessage `json:"before,omitempty"`
	Calls   []json.RawMessage `json:"calls,omitempty"`
	Results []json.RawMessage `json:"results,omitempty"`
}

// begin reads the request, finds its turn, has results judged, and asks the model.
func (x *exchange) begin() error {
	if err := x.read(); err != nil {
		return err
	}
	if err := x.join(); err != nil {
		return err
	}
	input := x.p.o.Input
	input.Provider, input.Model, input.ToolCalling, input.UserText = x.shape.provider, x.body.text("model"), true, x.said()
	input.HostTools = slices.Concat(input.HostTools, x.tools())
	if own := x.instructions(); own != "" {
		input.Custom = append(slices.Clip(input.Custom), compiler.CustomSection{
			SectionID: ClientSection, Title: "Instructions of the Client", Stability: phases.StabilityStable, Text: own,
		})
	}
	o := loop.Options{Input: input, Ask: x.p.o.Ask, MaxResultChars: x.p.o.MaxResultChars, KeepResult: x.p.o.KeepResult}
	if err := x.p.enter(x, o); err != nil {
		return err
	}
	if err := x.judgeResults(); err != nil {
		return err
	}
	return x.ask()
}

// ask compiles the prompt of a round and sends it with the conversation.
func (x *exchange) ask() error {
	p, err := x.agent.Prompt(x.ctx)
	if err != nil {
		return err
	}
	for _, text := range p.Reminders {
		x.stitch.Before = append(x.stitch.Before, encode(newObject("role", "user", "content", text)))
	}
	body := x.body.clone()
	changes, err := x.offer(&body, p)
	if err != nil {
		return err
	}
	if list := slices.Concat(x.shape.place(x, &body, p), x.conversation()); len(list) > 0 {
		body.set(x.shape.list, list)
	}
	if x.round > 0 {
		unforce(&body)
	}
	if x.shape.callsIn == "tool_calls" && string(body.values["stream"]) == "true" {
		options := body.object("stream_options")
		x.addedUsage = string(options.values["include_usage"]) != "true"
		options.set("include_usage", true)
		body.set("stream_options", options)
	}
	if err := x.send(encode(body)); err != nil {
		return err
	}
	x.changes = changes
	return nil
}

// offer adds the plugins' tools behind the client's.
func (x *exchange) offer(body *object, p *loop.Prompt) ([]providers.Change, error) {
	x.host = map[string]bool{}
	for _, t := range x.agent.Input.HostTools {
		x.host[t.Name] = true
	}
	r := providers.Request{Model: x.agent.Input.Model, Prompt: *p.Prompt, Sections: p.Manifest.Sections}
	r.Tools = slices.DeleteFunc(slices.Clone(p.Tools), func(t phases.Tool) bool { return x.host[t.Name] })
	l, err := providers.Lay(r, providers.Rules{Provider: x.shape.provider})
	if err != nil {
		return nil, err
	}
	if x.shape.provider == compiler.Anthropic {
		l.Move(r, phases.PlacementSystemMessage, string(phases.PlacementSystem))
	}
	tools := body.list("tools")
	for i := range l.Tools {
		if !x.host[l.Tools[i].Name] {
			tools = append(tools, encode(x.shape.tool(&l.Tools[i])))
		}
	}
	if x.names = l.Names; len(tools) > 0 {
		body.set("tools", tools)
	}
	return l.Changes, nil
}

// unforce lets the model answer in words: a call that was forced has been made.
func unforce(body *object) {
	choice := body.object("tool_choice")
	switch kind := choice.text("type"); {
	case kind == "any" || kind == "tool":
		choice.set("type", "auto")
		choice.remove("name")
		body.set("tool_choice", choice)
	case body.text("tool_choice") == "required" || kind == "function" || kind == "custom":
		body.set("tool_choice", "auto")
	}
}

// conversation is the client's, with everything in it that the client does not know.
func (x *exchange) conversation() []json.RawMessage {
	list := slices.Clone(x.list)
	list = slices.Insert(list, x.end, x.stitch.Before...)
	for i := x.end - 1; i >= 0; i-- {
		var s stitch
		if raw, ok := x.p.memory.get(x.turn.stitches(x.places[i])); !ok || json.Unmarshal(raw, &s) != nil {
			continue
		}
		found := len(s.Calls) == 0
		if !found {
			list, found = splice(list, i, x.shape.callsIn, x.shape.isCall, s.Calls)
		}
		if found && len(s.Results) > 0 {
			list, _ = splice(list, i, x.shape.resultsIn, x.shape.isResult, s.Results)
		}
		list = slices.Insert(list, i, s.Before...)
	}
	return list
}

func (x *exchange) send(body []byte) error {
	if x.res != nil {
		_ = x.res.Body.Close() // it is read
	}
	out := x.out.Clone(x.ctx)
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.Header.Del("Accept-Encoding") // the transport then reads what it asks for
	out.Header.Del("Content-Length")
	var err error
	x.res, err = x.p.o.Transport.RoundTrip(out) //nolint:bodyclose // the next round closes it, or Close
	if err != nil {
		return &loop.ProviderError{Err: err}
	}
	if x.res.StatusCode != http.StatusOK {
		err := keepBody(x.res, x.p.o.MaxBody)
		return &loop.ProviderError{Err: errors.Join(&upstreamError{x.res}, err)}
	}
	kind, _, _ := mime.ParseMediaType(x.res.Header.Get("Content-Type"))
	x.streamed, x.size, x.answer = kind == "text/event-stream", 0, &answer{}
	x.lines = bufio.NewScanner(x.res.Body)
	x.lines.Buffer(nil, int(x.p.o.MaxBody))
	return nil
}

// maxItems bounds the blocks, items or calls of one answer.
const maxItems = 1000

// step reads one event of the answer, or settles what has come.
func (x *exchange) step() error {
	ev, err := x.next()
	switch {
	case errors.Is(err, errComment):
		return nil
	case errors.Is(err, io.EOF) && x.answer.err != nil:
		err = x.answer.err
	case errors.Is(err, io.EOF) && x.answer.complete:
		return x.settle()
	case err == nil:
		if err = x.shape.take(x, ev); err == nil && len(x.answer.items) > maxItems {
			err = errors.New("the answer has too many items")
		}
	}
	if err != nil && x.ctx.Err() == nil {
		return &loop.ProviderError{Err: err}
	}
	return err
}

// settle has the calls of an answer judged. Those of plugins are made, and if no others are left, the model is asked
// again.
func (x *exchange) settle() error {
	a := x.answer
	a.finish()
	if err := x.agent.Used(x.ctx, a.usage.sum(), x.changes...); err != nil {
		x.p.o.Logger.Warn("usage was not kept", "error", err)
	}
	x.given = map[string]loop.Call{}
	var calls, results []json.RawMessage
	for _, it := range a.items {
		if !x.shape.isCall(it.body) || slices.ContainsFunc(a.items, func(other *item) bool { // the provider has made it
			return x.shape.isResult(other.body) && other.body.text(x.shape.resultID) == it.body.text(x.shape.callID)
		}) {
			continue
		}
		result, err := x.judge(it)
		if err != nil {
			return err
		}
		if it.hidden {
			calls, results = append(calls, encode(it.body)), append(results, encode(result))
		}
	}
	x.heads = append(x.heads, a.heads...)
	if len(x.given) > 0 || len(results) == 0 {
		x.stitch.Calls, x.stitch.Results = calls, results
		return x.answerClient()
	}
	if x.round++; x.round == x.p.o.MaxRounds {
		return &loop.ProviderError{Err: errors.New("the model does not stop calling tools")}
	}
	x.stitch.Before = append(x.stitch.Before, x.shape.said(a, results)...)
	x.showItems()
	return x.ask()
}

// judge makes a plugin's call, or lets the plugins judge the client's. A call that the client is not to see has a
// result; one that cannot be judged is refused.
func (x *exchange) judge(it *item) (result object, err error) {
	c := x.shape.call(it.body)
	var r loop.Result
	if name, ok := x.names.Tool(c.Tool); ok && !x.host[c.Tool] {
		c.Tool = name
		r, err = x.agent.Tool(x.ctx, c)
	} else {
		var refused *loop.Refused
		var checked loop.Call
		if checked, refused, err = x.agent.CheckTool(x.ctx, c); err == nil && refused == nil {
			if it.rewritten = !bytes.Equal(checked.Arguments, c.Arguments); it.rewritten {
				err = x.shape.setArguments(&it.body, checked.Arguments)
			}
			if err == nil {
				x.given[c.ID] = checked
				return result, nil
			}
		}
		if kind := it.body.text("type"); refused != nil && x.shape.index == "output_index" && kind != "function_call" && kind != "custom_tool_call" {
			return result, refused // no result can carry the refusal
		}
		if r.IsError = true; refused != nil {
			r.Text = refused.Error()
		}
	}
	if err != nil && x.ctx.Err() == nil && !errors.Is(err, runtime.ErrTurnEnded) && !errors.Is(err, runtime.ErrClosed) {
		r, err = loop.Result{Text: "the call could not be judged: " + err.Error(), IsError: true}, nil
	}
	it.hidden = true
	return x.shape.result(it.body, c.ID, r.Text, r.IsError), err
}

// showItems shows what was held back and is not hidden.
func (x *exchange) showItems() {
	for _, it := range x.answer.items {
		if it.hidden {
			continue
		}
		x.items = append(x.items, encode(it.body))
		if x.streamed && it.held {
			x.show(it)
		}
	}
}

// answerClient ends the answer. The turn waits for the client from here on, so that it cannot be too fast.
func (x *exchange) answerClient() error {
	x.text = x.answer.said()
	x.finish(nil)
	x.showItems()
	for _, ev := range x.answer.ends {
		if ev.data != nil {
			x.shape.store(x, ev.data)
		}
		x.emit(ev)
	}
	return nil
}

// finish ends the exchange once: the turn waits for the client to answer calls, or for a request that failed to be sent
// again, or has one user less.
func (x *exchange) finish(err error) {
	if x.done = true; x.ended || x.turn == nil {
		return
	}
	x.ended = true
	if gone := x.ctx.Err(); err != nil && gone != nil {
		err = gone
	}
	x.remember()
	_, upstream := errors.AsType[*loop.ProviderError](err)
	switch {
	case err == nil && len(x.given) > 0:
		x.waits = &waiting{turn: x.turn, calls: x.given, judged: map[string]bool{}, since: time.Now()}
		for id := range x.given {
			for _, at := range x.after() {
				x.waits.keys = append(x.waits.keys, x.key(at, id))
			}
		}
		x.p.wait(x.waits)
	case upstream && x.group != nil:
		x.p.wait(x.group)
	default:
		x.p.release(context.WithoutCancel(x.ctx), x.turn, x.text, err)
	}
}

// remember keeps what the client does not know of the conversation.
func (x *exchange) remember() {
	for i, at := range x.after() {
		s := x.stitch
		if i > 0 { // the provider knows what stands before
			s = stitch{Results: s.Results}
		}
		if len(s.Before)+len(s.Results) > 0 {
			x.p.memory.put(x.turn.stitches(at), encode(s))
		}
	}
}

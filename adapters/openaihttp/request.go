package openaihttp

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/phases"
)

// read reads the request, and refuses what the plugins could not judge.
func (x *exchange) read() error {
	if x.out.Body == nil {
		x.out.Body = http.NoBody
	}
	raw, err := io.ReadAll(io.LimitReader(x.out.Body, x.p.o.MaxBody+1))
	switch {
	case err != nil:
		return err
	case int64(len(raw)) > x.p.o.MaxBody:
		return &badRequest{http.StatusRequestEntityTooLarge, errors.New("the request is too large for the proxy")}
	}
	if x.body, err = parse(raw); err == nil {
		err = x.shape.checkRequest(x.body)
	}
	if err != nil {
		return &badRequest{http.StatusBadRequest, err}
	}
	if text := x.body.text(x.shape.list); text != "" {
		x.list = []json.RawMessage{encode(newObject("role", "user", "content", text))}
	} else {
		x.list = x.body.list(x.shape.list)
	}
	x.roles = make([]string, len(x.list))
	for i, raw := range x.list {
		o, err := parse(raw)
		if err != nil {
			return &badRequest{http.StatusBadRequest, err}
		}
		if x.roles[i] = x.shape.role(o); len(x.leading) == i && (x.roles[i] == "system" || x.roles[i] == "developer") && !x.body.has("instructions") {
			x.leading = append(x.leading, o)
		}
	}
	x.list, x.roles = x.list[len(x.leading):], x.roles[len(x.leading):]
	for x.end = len(x.roles); x.end > 0 && x.roles[x.end-1] == "assistant"; {
		x.end-- // what the model is to go on with
	}
	x.calls = map[string]loop.Call{}
	each(x.list, x.shape.callsIn, x.shape.isCall, func(o *object) bool {
		c := x.shape.call(*o)
		x.calls[c.ID] = c
		return false
	})
	return nil
}

// said is what the user said since the model's last answer, or last at all.
func (x *exchange) said() string {
	var texts []string
	for i := x.end - 1; i >= 0 && (x.roles[i] != "assistant" || len(texts) == 0); i-- {
		o, _ := parse(x.list[i]) // it was read before
		if text := textOf(o.values["content"]); o.text("role") == "user" && text != "" {
			texts = append(texts, text)
		}
	}
	slices.Reverse(texts)
	return strings.Join(texts, "\n\n")
}

// instructions are the client's own.
func (x *exchange) instructions() string {
	texts := []string{textOf(x.body.values["instructions"]), textOf(x.body.values["system"])}
	for _, o := range x.leading {
		texts = append(texts, textOf(o.values["content"]))
	}
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n\n")
}

// tools are the client's own; the provider's have no name.
func (x *exchange) tools() []phases.Tool {
	var out []phases.Tool
	each(x.body.list("tools"), "", func(object) bool { return true }, func(o *object) bool {
		in, _ := x.shape.inner(*o)
		t := phases.Tool{Name: textOf(in.values["name"]), Description: textOf(in.values["description"])}
		for _, name := range []string{"parameters", "input_schema"} {
			if in.has(name) && in.values[name][0] == '{' {
				t.InputSchema = in.values[name]
			}
		}
		if t.Name != "" {
			out = append(out, t)
		}
		return false
	})
	return out
}

// judgeResults lets the plugins see results that they have not seen, and puts in what they made of all of them. The last result
// of a call that the client was to make is always new: some providers number the calls of each answer alike.
func (x *exchange) judgeResults() error {
	left := map[string]int{}
	x.results(func(id string, _ *object) bool { left[id]++; return false })
	var failed error
	x.results(func(id string, o *object) bool {
		if failed != nil {
			return false
		}
		left[id]--
		call, took, asked := x.calls[id], time.Duration(0), false
		if g := x.group; g != nil && left[id] == 0 && g.calls[id].ID != "" {
			call, took, asked = g.calls[id], time.Since(g.since), !g.judged[id]
		}
		text := textOf(o.values[x.shape.resultText])
		at := x.scope.then("result").then(id).then(text)
		became, known := x.p.memory.get(at)
		if asked || !known {
			call.ID = id
			var r loop.Result
			if r, failed = x.agent.FinishTool(x.ctx, call, text, string(o.values["is_error"]) == "true", took); failed != nil {
				return false
			}
			if became = nil; r.Changed {
				became = encode(r.Text)
			}
			if x.p.memory.put(at, became); asked {
				x.group.judged[id] = true
			}
		}
		if became == nil {
			return false
		}
		o.set(x.shape.resultText, json.RawMessage(became))
		return true
	})
	return failed
}

// results calls f for each result in the request, which f reports to have changed.
func (x *exchange) results(f func(id string, o *object) bool) {
	each(x.list, x.shape.resultsIn, x.shape.isResult, func(o *object) bool { return f(o.text(x.shape.resultID), o) })
}

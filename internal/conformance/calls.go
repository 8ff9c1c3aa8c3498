package conformance

import (
	"encoding/json"
	"time"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	concurrent = 32 // calls at once, unless the plugin wants fewer
	callTime   = 10 * time.Second
	noSuchTool = "no_such_tool_of_the_check"
	noSuchHook = "no_such_hook_of_the_check"
)

// sample is what the inputs of hooks and tools are made of.
type sample struct {
	text string // every text of the input
	tool string // every name of a tool
}

func plain() sample { return sample{"What is in this directory?", "read_file"} }

// input makes up the input of a phase. Fields that this function does not know stay empty.
func (s sample) input(p phases.Phase) phases.Input {
	row, ok := phases.Standard().Lookup(p)
	if !ok {
		return &phases.CustomInput{Name: p}
	}
	preview := phases.Preview{Text: s.text, OriginalLength: len([]rune(s.text))}
	fields := map[string]any{
		"source": "startup", "user_text": s.text, "model": "m", "provider": "p", "tool_calling": true,
		"existing_tools": []string{s.tool}, "available_tools": []string{s.tool}, "sections": []string{"identity"},
		"manifest": struct{}{}, "prompt_text": s.text, "tool": s.tool, "arguments": s.arguments(), "touched_paths": []string{"/nonexistent/a"},
		"result": preview, "outcome": "ok", "status": phases.TurnSucceeded, "assistant_text": preview, "summary": preview,
		"text": s.text, "open_tasks": []string{s.text}, "facts": phases.Facts{Secrets: []string{s.text}, Unparsed: true, Why: s.text},
	}
	if p == phases.PostTurn {
		fields["user_text"] = preview
	}
	in := row.NewInput()
	if err := json.Unmarshal(encode(fields), in); err != nil {
		return row.NewInput() // it has other types of fields
	}
	return in
}

func (s sample) arguments() json.RawMessage {
	return encode(map[string]string{"path": "/nonexistent/a", "command": s.text})
}

func dispatch(hook *phases.Hook, s sample) *phases.Dispatch {
	return &phases.Dispatch{
		Subscription: instance + "." + hook.Name, Hook: hook.Name, Phase: hook.Phase, Context: callContext(), Input: s.input(hook.Phase),
		Attempt: 1, Budget: phases.AnswerBudget{MaxChars: 20_000, MaxBytes: wire.DefaultFrame}, Remaining: callTime, Generation: 1,
	}
}

func callContext() phases.Context {
	return phases.Context{
		WorkspaceID: "w", ThreadID: "t", TurnID: "u", SessionID: "s", Now: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC),
	}
}

func unknownTool(s sample, left time.Duration) *phases.ToolCall {
	return &phases.ToolCall{
		Tool: noSuchTool + s.tool, Arguments: s.arguments(), Context: callContext(), Remaining: left, Generation: 1,
		Budget: phases.AnswerBudget{MaxChars: 20_000, MaxBytes: wire.DefaultFrame},
	}
}

// calls makes n calls: of the plugin's hooks in turn or, if it has none, of a tool that it does not have.
func (t *trial) calls(n int, left time.Duration) (list []any, err error) {
	d := t.configured
	for i := range n {
		switch {
		case len(d.Hooks) > 0:
			one := dispatch(&d.Hooks[i%len(d.Hooks)], plain())
			one.Remaining = left
			list = append(list, one)
		case len(d.Tools) > 0:
			list = append(list, unknownTool(plain(), left))
		default:
			return nil, skipped("the plugin has neither hooks nor tools")
		}
	}
	return list, nil
}

// slots is how many calls the plugin wants at once.
func (t *trial) slots() int {
	if n := t.configured.Limits.Concurrency; n > 0 {
		return min(n, concurrent)
	}
	return concurrent
}

// alive fails if the plugin no longer answers a call or, if it has nothing to call, a ping.
func (h *host) alive(after string) error {
	var m any = ping
	if list, err := h.t.calls(1, callTime); err == nil {
		m = list[0]
	}
	if f, err := h.ask(m); err != nil {
		return failf([]uint64{h.id}, "after %s: %v", after, err)
	} else if f.Noise || f.Body == "" && f.Invalid == nil {
		return failf([]uint64{h.id}, "after %s: the answer is not one: %s", after, cut(f.Text))
	}
	return nil
}

func answersOnce(h *host) error {
	list, err := h.t.calls(concurrent, callTime)
	if err != nil {
		return err
	}
	var ids []uint64
	for n := h.t.slots(); len(list) > 0; list = list[min(n, len(list)):] {
		batch := h.sendAll(list[:min(n, len(list))])
		if err := h.all(batch); err != nil {
			return err
		}
		ids = append(ids, batch...)
	}
	return h.once(ids)
}

func unknownCalls(h *host) error {
	var list []any
	d := h.t.configured
	if len(d.Hooks) > 0 {
		hook := d.Hooks[0]
		hook.Name = noSuchHook
		list = append(list, dispatch(&hook, plain()))
	}
	if len(d.Tools) > 0 {
		list = append(list, unknownTool(plain(), callTime))
	}
	if len(list) == 0 {
		return skipped("the plugin has neither hooks nor tools")
	}
	if err := h.all(h.sendAll(list)); err != nil {
		return err
	}
	return h.alive("a call of a hook or tool that it does not have")
}

func cancels(h *host) error {
	list, err := h.t.calls(min(h.t.slots(), 8), callTime)
	if err != nil {
		return err
	}
	ids := h.sendAll(list)
	for _, id := range ids {
		h.write(id, incarnation, cancel, false)
	}
	if err := h.once(ids); err != nil {
		return err
	}
	h.write(ids[0], incarnation, cancel, false) // it was answered
	return h.once(ids)
}

func deadline(h *host) error {
	const left = 50 * time.Millisecond
	list, err := h.t.calls(min(h.t.slots(), 8), left)
	if err != nil {
		return err
	}
	ids := h.sendAll(list)
	h.until(left, func(came []wire.RawFrame) bool { return len(missingIn(came, ids)) == 0 })
	for _, id := range missingIn(h.frames(), ids) {
		h.write(id, incarnation, cancel, false) // as a host does
	}
	return h.all(ids)
}

func pingsWhenBusy(h *host) error {
	list, _ := h.t.calls(h.t.slots(), callTime) // a plugin without hooks is not busy
	h.sendAll(list)
	return h.pong(ping, quickly)
}

// pong fails if the answer to ping or drain does not come in time, or is something else.
func (h *host) pong(word wire.RawWord, limit time.Duration) error {
	f, err := h.answerIn(limit, h.send(word))
	if err == nil && f.Body != bodyPong {
		return failf([]uint64{f.ID}, "the answer to %s is %q, want pong", word, f.Body)
	}
	return err
}

func drains(h *host) error {
	list, _ := h.t.calls(min(h.t.slots(), 8), callTime) // a plugin may have nothing to call
	ids := h.sendAll(list)
	if err := h.pong(drain, h.t.o.Patience); err != nil {
		return err
	}
	came := h.frames()
	for i := range came {
		if came[i].ID == h.id {
			came = came[:i]
			break
		}
	}
	if missing := missingIn(came, ids); len(missing) > 0 {
		return failf(append(missing, h.id), "the pong to drain comes before the answers to %d calls", len(missing))
	}
	return nil
}

func hostCallsRefused(h *host) error {
	list, err := h.t.calls(max(h.t.slots(), len(h.t.configured.Hooks)), callTime)
	if err != nil {
		return err
	}
	for _, code := range []phases.Cause{phases.CauseForbidden, phases.CauseUnavailable, phases.CauseOverloaded} {
		h.refusal.Store(&code)
		if err := h.all(h.sendAll(list)); err != nil {
			return failf(nil, "host calls are answered %s: %v", code, err)
		}
	}
	if h.asked.Load() == 0 {
		return skipped("the plugin made no host calls")
	}
	return nil
}

package providers

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/history"
)

// Message is all that one side says before the other one does.
type Message struct {
	// Assistant tells the model's messages from the user's.
	Assistant bool
	// Parts are in order; a user's results stand before its texts.
	Parts []Part
}

// Part is a piece of a message: exactly one field is set.
type Part struct {
	Text   string
	Call   *history.Call
	Result *history.Result
	// Native is a piece of an assistant's message in a provider's own words. Plain
	// is the same in ours, for all other providers.
	Native *history.Native
	Plain  []Part
}

// layMessages makes the conversation: messages of the prompt, the summary, the
// history, the current turn.
func (l *Layout) layMessages(r Request) {
	for _, m := range r.Prompt.UserMessages {
		l.add(false, text(m.Text)...)
	}
	l.add(false, text(r.History.Summary)...)
	entries, dropped := history.Repair(slices.Concat(r.History.Entries, r.Turn))
	for _, d := range dropped {
		l.Warnf(CodeEntry, "entry %s of turn %s was left out in part or whole: %s", d.EntryID, d.TurnID, d.Reason)
	}
	calls := map[string]made{} // those not answered yet
	for i := range entries {
		e := &entries[i]
		if e.Role == history.RoleAssistant {
			l.add(true, assistantParts(e)...)
			for _, c := range e.Calls {
				calls[c.ID] = made{message: len(l.Messages) - 1, tool: c.Tool}
			}
			continue
		}
		for _, result := range e.Results {
			call := calls[result.CallID]
			result.Tool = cmp.Or(result.Tool, call.tool)
			l.answer(call.message, &result)
			delete(calls, result.CallID)
		}
		l.add(false, text(e.Text)...)
	}
}

// made is where a call stands, and what it calls.
type made struct {
	message int
	tool    string
}

func text(s string) []Part {
	if strings.TrimSpace(s) == "" {
		return nil // providers refuse blank text
	}
	return []Part{{Text: s}}
}

func assistantParts(e *history.Entry) []Part {
	parts := text(e.Text)
	for j := range e.Calls {
		parts = append(parts, Part{Call: &e.Calls[j]})
	}
	if e.Native != nil {
		return []Part{{Native: e.Native, Plain: parts}}
	}
	return parts
}

// add appends to the last message if that is of the same side.
func (l *Layout) add(assistant bool, parts ...Part) {
	if len(parts) == 0 {
		return
	}
	if n := len(l.Messages); n > 0 && l.Messages[n-1].Assistant == assistant {
		l.Messages[n-1].Parts = append(l.Messages[n-1].Parts, parts...)
		return
	}
	l.Messages = append(l.Messages, Message{Assistant: assistant, Parts: parts})
}

// answer puts a result into the message behind that of its call, before any
// text there.
func (l *Layout) answer(call int, result *history.Result) {
	if call+1 == len(l.Messages) {
		l.Messages = append(l.Messages, Message{})
	}
	m := &l.Messages[call+1]
	at := slices.IndexFunc(m.Parts, func(p Part) bool { return p.Result == nil })
	if at < 0 {
		at = len(m.Parts)
	}
	m.Parts = slices.Insert(m.Parts, at, Part{Result: result})
}

// For returns the part's pieces for one provider: the native form if it is that
// provider's and read takes it, else the plain parts. Parts that are plain are
// returned as they are.
func (l *Layout) For(provider string, p Part, read func(json.RawMessage) error) []Part {
	if p.Native == nil {
		return []Part{p}
	}
	if p.Native.Provider != provider {
		return p.Plain
	}
	if err := read(p.Native.Data); err != nil {
		l.Warnf(CodeNative, "an entry's own form of %s cannot be read: %v", provider, err)
		return p.Plain
	}
	return nil
}

// Arguments returns the arguments of a call as a JSON object, in the bytes of
// the model where they are one. Whatever else it wrote stands in a member
// "arguments".
func (l *Layout) Arguments(c *history.Call) json.RawMessage {
	if len(c.Arguments) == 0 {
		return json.RawMessage(`{}`)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(c.Arguments, &object); err == nil && object != nil {
		return c.Arguments
	}
	l.Warnf(CodeArguments, "the arguments of call %s are no JSON object", c.ID)
	wrapped, err := json.Marshal(map[string]string{"arguments": string(c.Arguments)})
	if err != nil {
		return json.RawMessage(`{}`) // strings always encode
	}
	return wrapped
}

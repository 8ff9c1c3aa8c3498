package providers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
)

// Message is everything that one side says before the other one does.
type Message struct {
	// Assistant is true for the model's messages, false for the user's.
	Assistant bool
	// Parts are in order; a user's results stand before its media and texts.
	Parts []Part
}

// Part is a piece of a message: exactly one field is set.
type Part struct {
	Text   string
	Call   *history.Call
	Result *history.Result
	Media  *history.Media
	// Native is a piece of an assistant's message in a provider's own form. Plain is
	// the same for all other providers.
	Native *history.Native
	Plain  []Part
}

// layMessages makes the conversation: messages of the prompt, the summary, the history, the current turn.
func (l *Layout) layMessages(r Request) {
	for _, m := range r.Prompt.UserMessages {
		l.add(false, text(m.Text)...)
	}
	l.add(false, text(r.History.Summary)...)
	entries, dropped := history.Repair(slices.Concat(r.History.Entries, r.Turn))
	for _, d := range dropped {
		l.Warnf(codeEntry, "entry %s of turn %s was omitted in part or whole: %s", d.EntryID, d.TurnID, d.Reason)
	}
	calls := map[string]made{} // that are not answered yet
	ids := callIDs{Layout: l, used: map[string]bool{}}
	media := 0
	for i := range entries {
		e := entries[i]
		if e.Role == history.RoleAssistant {
			real := e.Calls
			e.Calls, e.Native = ids.rewrite(&e)
			l.add(true, assistantParts(&e)...)
			for j, c := range e.Calls {
				calls[real[j].ID] = made{message: len(l.Messages) - 1, tool: c.Tool, id: c.ID}
			}
			continue
		}
		for _, result := range e.Results {
			call := calls[result.CallID]
			delete(calls, result.CallID)
			result.Tool = cmp.Or(result.Tool, call.tool)
			result.CallID = call.id
			l.sayWhy(&result)
			l.answer(call.message, &result)
		}
		for j := range e.Media {
			media++
			l.add(false, l.media(&e.Media[j], media))
		}
		l.add(false, text(e.Text)...)
	}
}

type made struct {
	message  int
	tool, id string
}

// sayWhy gives a result that is an error a text, which Anthropic wants and without which others take it for success.
func (l *Layout) sayWhy(r *history.Result) {
	if r.IsError && strings.TrimSpace(r.Text) == "" {
		r.Text = "The tool failed without saying why."
		l.Warnf(codeResultText, "the result of call %s is an error without text", r.CallID)
		l.change(manifest.RequestErrorText, r.CallID, "", r.Text)
	}
}

// media returns a part for an image or document, or a note where the provider does not accept it.
func (l *Layout) media(m *history.Media, number int) Part {
	rule := ruleDocument
	if m.Image() {
		rule = ruleImage
	}
	var why string
	switch r := l.rules[rule]; {
	case r.match != nil && !r.match.MatchString(m.Type):
		why = "its type is not accepted"
	case r.Max > 0 && len(m.Data) > r.Max:
		why = fmt.Sprintf("it has more than %d bytes", r.Max)
	case l.rules.has(ruleMediaCount) && number > l.rules[ruleMediaCount].Max:
		why = fmt.Sprintf("there are more than %d", l.rules[ruleMediaCount].Max)
	case len(m.Data) == 0 && m.URI == "":
		why = "it has no data"
	default:
		return Part{Media: m}
	}
	name := cmp.Or(m.Name, "without a name")
	l.Warnf(codeMedia, "the attachment %s (%s) is not sent: %s", name, m.Type, why)
	l.change(manifest.RequestMedia, m.Name, m.Type, "")
	return Part{Text: fmt.Sprintf("[An attachment, %s (%s), could not be sent.]", name, m.Type)}
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

// answer puts a result into the message after its call's, before any text.
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

// For returns the part's plain pieces for one provider; nil if read accepts the provider's native form.
func (l *Layout) For(provider string, p Part, read func(json.RawMessage) error) []Part {
	if p.Native == nil {
		return []Part{p}
	}
	if p.Native.Provider != provider {
		return p.Plain
	}
	if err := read(p.Native.Data); err != nil {
		l.Warnf(codeNative, "an entry's own form of %s cannot be read: %v", provider, err)
		return p.Plain
	}
	return nil
}

// Arguments returns the arguments of a call, wrapped into an object with the member
// "arguments" if the model did not write an object.
func (l *Layout) Arguments(c *history.Call) json.RawMessage {
	if len(c.Arguments) == 0 {
		return json.RawMessage(`{}`)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(c.Arguments, &object); err == nil && object != nil {
		return c.Arguments
	}
	l.Warnf(codeArguments, "the arguments of call %s are not a JSON object", c.ID)
	wrapped, _ := json.Marshal(map[string]string{"arguments": string(c.Arguments)}) //nolint:errchkjson // strings always encode
	return wrapped
}

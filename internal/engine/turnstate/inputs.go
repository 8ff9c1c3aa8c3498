package turnstate

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// Source is where a dispatch came from.
type Source struct {
	Context *phases.Context
	// CallID is the host's id of the tool call; empty if it is unknown.
	CallID string
	// Facts are those of the call; nil if nobody needed them.
	Facts *phases.Facts
	At    time.Time
}

// maxTextBytes bounds the inputs and facts of calls and the texts of reminders that are kept with one record.
const maxTextBytes = 1 << 20

// room takes texts that are to be kept with the next record.
type room struct {
	state   *State
	texts   []manifest.Text
	omitted int // bytes of those that did not fit
}

// add keeps a text if it fits, and returns its hash.
func (r *room) add(content string) string {
	hash := manifest.Hash(content, r.state.key)
	if r.state.textBytes+len(content) > maxTextBytes || strings.IndexByte(content, 0) >= 0 || !utf8.ValidString(content) {
		r.omitted += len(content)
		return hash
	}
	r.state.textBytes += len(content)
	r.texts = append(r.texts, manifest.Text{Hash: hash, Text: content})
	return hash
}

// addJSON is add for JSON in its canonical form. Nothing is the empty object.
func (r *room) addJSON(raw json.RawMessage) string {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if canonical, err := digest.JSON(nil, raw); err == nil {
		raw = canonical
	}
	return r.add(string(raw))
}

// addArguments keeps the arguments of a tool call, where they are kept.
func (r *room) addArguments(in phases.Input) {
	if call, ok := in.(*phases.ToolPreCallInput); ok && (r.state.KeepTexts || r.state.KeepInputs) {
		r.addJSON(call.Arguments)
	}
}

// hasInput reports whether the input of a dispatch is kept: that of a tool call, its result, or a prompt.
func (s *State) hasInput(in phases.Input) bool {
	switch in := in.(type) {
	case *phases.ToolPreCallInput, *phases.ToolPostCallInput:
		return s.KeepInputs
	case *phases.PrePolicyInput:
		return s.KeepInputs && in.UserText.Value != ""
	}
	return false
}

// addInput keeps what it takes to repeat a dispatch, beside the arguments that are kept already, and notes it in its call.
// A result is kept as it went, and not at all if its phase failed closed: what a hook hides is not kept.
func (r *room) addInput(c *manifest.Call, from *Source, in phases.Input, out *phases.Outcome) {
	if !r.state.hasInput(in) {
		return
	}
	c.CallID, c.Input = text.Head(text.Repair(from.CallID), phases.MaxIDBytes), &manifest.CallInput{At: from.At.UTC()}
	w := from.Context
	place := manifest.Place{AgentID: w.AgentID, Dir: w.Dir, Host: w.Agent(), ParentSessionID: w.ParentSessionID}
	switch in := in.(type) {
	case *phases.PrePolicyInput:
		raw, _ := json.Marshal(in) //nolint:errchkjson // inputs are checked
		r.addJSON(raw)
	case *phases.ToolPreCallInput:
		place.Paths = in.TouchedPaths
	case *phases.ToolPostCallInput:
		place.Paths, c.Input.Chars = in.TouchedPaths, in.Result.OriginalLength
		c.Input.Arguments = r.addJSON(in.Arguments)
		if went, ok := out.Rewritten.(*phases.ToolPostCallInput); ok && out.Error == nil {
			r.add(went.Result.Text)
		} else {
			r.omitted += max(1, len(in.Result.Text))
		}
	}
	raw, _ := json.Marshal(place) //nolint:errchkjson // strings
	c.Input.Place = r.addJSON(raw)
	c.Input.Omitted = r.omitted
}

// addFacts notes the facts of a call, and keeps them where arguments are kept.
func (r *room) addFacts(c *manifest.Call, facts *phases.Facts) {
	if facts == nil {
		return
	}
	raw, _ := json.Marshal(facts) //nolint:errchkjson // texts and lists of them
	c.Facts, c.FactsHash = facts.Summary(), manifest.HashRaw(raw, r.state.key)
	if r.state.KeepTexts || r.state.KeepInputs {
		r.addJSON(raw)
	}
	if c.Input != nil {
		c.Input.Omitted = r.omitted
	}
}

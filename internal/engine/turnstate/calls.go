package turnstate

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// addDecided adds a call for a dispatch that was decided or rewritten, would have been, judges a tool's call, says how a
// call of the host's own tool ended, or has an input to keep.
func (s *State) addDecided(from *Source, in phases.Input, out *phases.Outcome) {
	c := manifest.Call{Phase: out.Phase}
	if out.Decision != nil {
		c.Verdict = out.Decision.Verdict
		for _, r := range out.Decision.Reasons {
			c.DecidedBy = append(c.DecidedBy, decider(r.Subscription, r.Verdict, r.ReasonCode, r.ContributionID))
		}
	}
	for i := range out.Shadowed {
		if d, ok := out.Shadowed[i].Value.(*phases.Decision); ok {
			by := decider(out.Shadowed[i].Subscription, d.Verdict, d.ReasonCode, d.ContributionID)
			by.Shadow = true
			c.DecidedBy = append(c.DecidedBy, by)
		}
	}
	if out.Error == nil {
		c.RewrittenBy = merge.Owners(out.Merged.Rewrites)
	}
	c.Tool, c.Came = s.judgedInput(in)
	c.Owner = s.ownerOf(c.Tool)
	if post, ok := in.(*phases.ToolPostCallInput); ok && c.Owner == phases.OwnerHost {
		c.State = phases.StateSucceeded
		if c.Code = text.Sanitize(post.Outcome, MaxWordChars); c.Code == "ok" {
			c.Code = ""
		}
	} else if out.Phase == phases.ToolPreCall && out.Error != nil {
		c.State, c.Code = phases.StateFailed, string(out.Error.Code)
	}
	if out.Phase != phases.ToolPreCall && c.State == "" && len(c.DecidedBy)+len(c.RewrittenBy) == 0 && !s.hasInput(in) {
		return
	}
	kept := room{state: s}
	kept.addArguments(in)
	if c.Went = c.Came; len(c.RewrittenBy) > 0 {
		_, c.Went = s.judgedInput(out.Rewritten)
		kept.addArguments(out.Rewritten)
	}
	kept.addInput(&c, from, in, out)
	kept.addFacts(&c, from.Facts)
	s.addCall(c, kept.texts)
}

// Texts are the inputs and facts of the calls in the record that was made last, and the texts of its reminders.
func (s *State) Texts(m *manifest.Manifest) []manifest.Text {
	s.mu.Lock()
	defer s.mu.Unlock()
	texts := slices.Concat(s.arguments[s.recorded.kept.calls:s.recorded.made.calls]...)
	for i := range m.Reminders {
		if text := s.reminderTexts[m.Reminders[i].Hash]; text != "" {
			texts = append(texts, manifest.Text{Hash: m.Reminders[i].Hash, Text: text})
		}
	}
	return texts
}

func (s *State) addCall(c manifest.Call, texts []manifest.Text) {
	if c.Tool != "" {
		c.Tool = text.Head(text.Repair(c.Tool), phases.MaxIDBytes) // a model may have made it up
	}
	s.calls, s.arguments = append(s.calls, c), append(s.arguments, texts)
	s.ledger.bytes += 256 + len(c.Tool) + len(c.CallID) + len(c.FactsHash) + 16*len(c.Facts)
	if c.Input != nil {
		s.ledger.bytes += 384
	}
	for i := range c.DecidedBy {
		s.ledger.bytes += 96 + len(c.DecidedBy[i].Subscription) + len(c.DecidedBy[i].ReasonCode) + len(c.DecidedBy[i].ContributionID)
	}
}

func decider(subscription string, v phases.Verdict, code, id string) manifest.Decider {
	if strings.HasPrefix(id, subscription+"#") {
		id = "" // the runtime's own
	}
	return manifest.Decider{Subscription: subscription, Verdict: v, ReasonCode: text.Sanitize(code, MaxWordChars), ContributionID: id}
}

// judgedInput returns the tool that an input is about, and the hash of what is judged in it: the tool's
// arguments or its result, a compiled prompt's text, or else all of it.
func (s *State) judgedInput(in phases.Input) (tool, hash string) {
	switch in := in.(type) {
	case *phases.ToolPreCallInput:
		return in.Tool, s.argumentsOf(in.Arguments)
	case *phases.ToolPostCallInput:
		return in.Tool, manifest.Hash(in.Result.Text, s.key)
	case *phases.PostPromptCompileInput: // the manifest beside it has ids and times
		return "", manifest.Hash(in.PromptText.Value, s.key)
	}
	raw, _ := json.Marshal(in) //nolint:errchkjson // inputs are checked
	return "", manifest.HashRaw(raw, s.key)
}

func (s *State) argumentsOf(raw json.RawMessage) string {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	return manifest.HashRaw(raw, s.key)
}

// ownerOf returns who answers a tool; empty if nobody does.
func (s *State) ownerOf(tool string) string {
	for i := range s.brought {
		if j := slices.IndexFunc(s.brought[i].tools, func(t phases.MergedTool) bool { return t.Name == tool }); j >= 0 {
			return s.brought[i].tools[j].Owner
		}
	}
	switch {
	case tool == phases.RequestTools:
		return phases.OwnerBuiltin
	case tool == "" || slices.ContainsFunc(s.calls, func(c manifest.Call) bool { return c.Phase == phases.PhaseToolCall && c.Tool == tool && c.Owner == "" }):
		return ""
	}
	return phases.OwnerHost
}

package runtime

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// A host may leave a phase out, and may go on after a deny. It does so at its own
// risk, but not in silence: the ledger says which hooks were never asked, and whose
// word was not heeded.

// maxJudged is how many judged tool calls a turn remembers that were not made yet.
const maxJudged = 256

// conduct is how a host has gone through its turn. The scope's lock guards it.
type conduct struct {
	// passed holds the phases that were dispatched: whether the turn may go on after
	// the last dispatch of each.
	passed map[phases.Phase]bool
	// refused is the decision that ended the turn, if the host had heeded it, and text
	// what turn.pre_policy has judged last.
	refused *phases.Error
	text    fingerprint
	// judged are the tool calls that tool.pre_call has seen, the oldest first.
	judged []judgedCall
}

// fingerprint is what a turn remembers of a text to recognize it. The text itself may
// have megabytes, and hosts keep many turns.
type fingerprint = [sha256.Size]byte

// judgedCall is one call of a tool, as tool.pre_call has let it go on.
type judgedCall struct {
	tool      fingerprint
	arguments fingerprint
	refused   *phases.Error
}

// judged is a call of a tool that tool.pre_call sees.
func judged(tool string, arguments json.RawMessage, refused *phases.Error) judgedCall {
	return judgedCall{sha256.Sum256([]byte(tool)), sha256.Sum256(canonical(arguments)), refused}
}

// note takes the end of a phase.
func (c *conduct) note(out *phases.Outcome) {
	if c.passed == nil {
		c.passed = map[phases.Phase]bool{}
	}
	c.passed[out.Phase] = out.Error == nil && (out.Decision == nil || out.Decision.Verdict != phases.VerdictDeny)
	var refused *phases.Error
	if err := blockedBy(out); err != nil {
		refused = codedError(err)
	}
	switch in := out.Rewritten.(type) {
	case *phases.PrePolicyInput:
		text := sha256.Sum256([]byte(in.UserText.Value))
		if c.refused == nil || text == c.text { // another text does not take a deny back
			c.refused = refused
		}
		c.text = text
	case *phases.ToolPreCallInput:
		if len(c.judged) >= maxJudged {
			oldest := slices.IndexFunc(c.judged, func(j judgedCall) bool { return j.refused == nil }) // a deny is kept longest
			c.judged = slices.Delete(c.judged, max(0, oldest), max(0, oldest)+1)
		}
		c.judged = append(c.judged, judged(in.Tool, in.Arguments, refused))
	}
}

// dispatched reports whether a phase was dispatched in the turn, whatever it said.
func (c *conduct) dispatched(p phases.Phase) bool {
	_, ok := c.passed[p]
	return ok
}

// hasPassed reports whether the turn may go on after a phase: it was dispatched, and
// the last dispatch did not stop the turn.
func (s *scope) hasPassed(p phases.Phase) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conduct.passed[p]
}

// stop keeps the turn from going on after a phase that was dispatched.
func (s *scope) stop(p phases.Phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conduct.dispatched(p) {
		s.conduct.passed[p] = false
	}
}

// canonical is the one form of JSON by which arguments are compared: members sorted,
// numbers as they are written, but for those that are whole.
func canonical(raw json.RawMessage) []byte {
	if text := string(bytes.TrimSpace(raw)); text == "" || text == "null" {
		return []byte("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return raw // was refused, or will be
	}
	out, err := json.Marshal(wholeNumbers(v))
	if err != nil {
		return raw
	}
	return out
}

// wholeNumbers writes 1.0 as 1, which is the same number. Numbers that a long time
// would be needed to look at stay as they are.
func wholeNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = wholeNumbers(v[name])
		}
	case []any:
		for i := range v {
			v[i] = wholeNumbers(v[i])
		}
	case json.Number:
		if len(v) > 64 || strings.ContainsAny(string(v), "eE") {
			return v
		}
		if r, ok := new(big.Rat).SetString(string(v)); ok && r.IsInt() {
			return json.Number(r.Num().String())
		}
	}
	return v
}

// remarks says what the host has left out before it compiles, or does all the same.
func (t *Turn) remarks(userText string) []phases.Diagnostic {
	t.scope.mu.Lock()
	defer t.scope.mu.Unlock()
	c := &t.scope.conduct
	var list []phases.Diagnostic
	if c.refused != nil {
		list = append(list, phases.Diagnostic{
			Code: phases.CodeDenyIgnored, Severity: phases.SeverityError, Subscription: c.refused.Subscription,
			Message: fmt.Sprintf("%s answered %q for this turn, and the host compiled its prompt all the same", phases.PrePolicy, c.refused.Code),
		})
	}
	if len(t.gen.subscribed(phases.PrePolicy)) > 0 && c.dispatched(phases.PrePolicy) && userText != "" && sha256.Sum256([]byte(userText)) != c.text {
		list = append(list, phases.Diagnostic{
			Code: phases.CodeJudgedEarlier, Severity: phases.SeverityWarning,
			Message: fmt.Sprintf("the host compiles another text of the user's than %s has judged", phases.PrePolicy),
		})
	}
	for _, phase := range []phases.Phase{phases.PrePolicy, phases.PrePromptContext, phases.PreTools} {
		if hooks := t.gen.subscribed(phase); len(hooks) > 0 && !c.dispatched(phase) {
			list = append(list, phases.Diagnostic{
				Code: phases.CodePhaseSkipped, Severity: phases.SeverityWarning,
				Message: fmt.Sprintf("the host has compiled without %s: %s never ran", phase, strings.Join(hooks, ", ")),
			})
		}
	}
	return list
}

// subscribed are the subscriptions that a dispatch of the phase runs, with those that
// their condition may keep from it.
func (g *generation) subscribed(phase phases.Phase) []string {
	var hooks []string
	for _, s := range g.planned.Load().phases[phase].Stages {
		for _, sub := range slices.Concat(s.Layers...) {
			hooks = append(hooks, sub.ID)
		}
	}
	return hooks
}

// callRemark says what is wrong with a call of a tool that the host makes, if
// something is: nobody has judged it, it is not the one that was judged, or it was
// denied. A call that was judged counts once.
func (t *Turn) callRemark(call *phases.ToolCall) (remark phases.Diagnostic, wrong bool) {
	hooks := t.gen.subscribed(phases.ToolPreCall)
	if len(hooks) == 0 {
		return remark, false
	}
	t.scope.mu.Lock()
	defer t.scope.mu.Unlock()
	c, made := &t.scope.conduct, judged(call.Tool, call.Arguments, nil)
	same := func(j judgedCall) bool { return j.tool == made.tool && j.arguments == made.arguments }
	i := lastIndex(c.judged, same)
	remark = phases.Diagnostic{Code: phases.CodePhaseSkipped, Severity: phases.SeverityWarning}
	switch {
	case c.refused != nil:
		remark.Code, remark.Severity, remark.Subscription = phases.CodeDenyIgnored, phases.SeverityError, c.refused.Subscription
		remark.Message = fmt.Sprintf("%s answered %q for this turn, and the host calls the tool %q all the same", phases.PrePolicy, c.refused.Code, call.Tool)
	case i < 0 && slices.ContainsFunc(c.judged, func(j judgedCall) bool { return j.tool == made.tool }):
		remark.Code = phases.CodeJudgedEarlier
		remark.Message = fmt.Sprintf("the host calls the tool %q with other arguments than %s has judged", call.Tool, phases.ToolPreCall)
	case i < 0:
		remark.Message = fmt.Sprintf("the host calls the tool %q without a dispatch of %s for this call: %s did not judge it", call.Tool, phases.ToolPreCall, strings.Join(hooks, ", "))
	default:
		last := c.judged[i]
		c.judged = slices.Delete(c.judged, i, i+1)
		if last.refused == nil || last.refused.Code == codeAsk { // who was asked may have said yes
			c.judged = slices.DeleteFunc(c.judged, func(j judgedCall) bool { return same(j) && j.refused != nil }) // it was judged again
			return remark, false
		}
		remark.Code, remark.Severity, remark.Subscription = phases.CodeDenyIgnored, phases.SeverityError, last.refused.Subscription
		remark.Message = fmt.Sprintf("%s denied a call of the tool %q, and the host makes it all the same", phases.ToolPreCall, call.Tool)
	}
	t.scope.notes.add([]phases.Diagnostic{remark})
	return remark, true
}

// lastIndex is the index of the last call that fits; -1 for none.
func lastIndex(list []judgedCall, fits func(judgedCall) bool) int {
	for i, j := range slices.Backward(list) {
		if fits(j) {
			return i
		}
	}
	return -1
}

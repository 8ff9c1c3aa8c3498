package turnstate

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

const (
	codeDenyIgnored  = "deny_ignored"  // a hook denied the turn, a tool call or the turn's end, and the host went on
	codePhaseSkipped = "phase_skipped" // the host called a tool without a tool.pre_call for it, or ended a turn without turn.pre_end
)

// CodeAsk means: a hook asks for consent, so no prompt is compiled.
const CodeAsk phases.Cause = "ask"

// Blocked returns a *phases.Error if a phase decided anything but allow; nil otherwise.
func Blocked(out *phases.Outcome) error {
	if refused := blocked(out); refused != nil {
		return refused
	}
	return nil
}

func blocked(out *phases.Outcome) *phases.Error {
	if out.Decision == nil || out.Decision.Verdict == phases.VerdictAllow {
		return nil
	}
	code := phases.CauseDenied
	if out.Decision.Verdict == phases.VerdictAsk {
		code = CodeAsk
	}
	err := &phases.Error{Code: code, Phase: out.Phase, DecisionRef: out.DecisionRef}
	for _, r := range out.Decision.Reasons {
		if r.Verdict == out.Decision.Verdict {
			err.Subscription, err.Message = r.Subscription, r.Reason
			break
		}
	}
	return err
}

// maxJudged bounds the judged tool calls that a turn remembers until they are made.
const maxJudged = 256

// conduct is how a host has gone through its turn. A host may call tools that no phase has judged, or after a deny, at
// its own risk: the ledger says so. The state's lock guards it.
type conduct struct {
	passed  map[phases.Phase]bool // passed says of each dispatched phase whether the turn may go on after it
	refused *phases.Error         // the decision that blocks the turn, and text what turn.pre_policy has judged last
	failed  bool                  // turn.pre_policy failed, so refused is no decision
	text    fingerprint
	judged  []judgedCall  // the tool calls that tool.pre_call has seen, the oldest first
	end     *phases.Error // the deny with which turn.pre_end has answered last
}

// fingerprint recognizes a text, which may have megabytes.
type fingerprint = [sha256.Size]byte

type judgedCall struct {
	tool      fingerprint
	arguments fingerprint
	refused   *phases.Error
}

func judged(tool string, arguments json.RawMessage, refused *phases.Error) judgedCall {
	return judgedCall{sha256.Sum256([]byte(tool)), sha256.Sum256(canonical(arguments)), refused}
}

func (c *conduct) note(out *phases.Outcome) {
	if c.passed == nil { // outside of a turn
		return
	}
	c.passed[out.Phase] = out.Error == nil && (out.Decision == nil || out.Decision.Verdict != phases.VerdictDeny)
	refused := blocked(out)
	if out.Phase == phases.PreEnd {
		if c.end = nil; refused != nil && refused.Code == phases.CauseDenied && out.Error == nil {
			c.end = refused
		}
	}
	switch in := out.Rewritten.(type) {
	case *phases.PrePolicyInput:
		text := sha256.Sum256([]byte(in.UserText.Value))
		if c.denied() == nil || text == c.text && out.Error == nil { // another text does not take a deny back
			c.refused, c.failed, c.text = refused, out.Error != nil, text
		}
	case *phases.ToolPreCallInput:
		if len(c.judged) >= maxJudged {
			oldest := slices.IndexFunc(c.judged, func(j judgedCall) bool { return j.refused == nil }) // a deny is kept longest
			c.judged = slices.Delete(c.judged, max(0, oldest), max(0, oldest)+1)
		}
		c.judged = append(c.judged, judged(in.Tool, in.Arguments, refused))
	}
}

func (c *conduct) dispatched(p phases.Phase) bool {
	_, ok := c.passed[p]
	return ok
}

// Passed reports whether a phase was dispatched, did not stop the turn the last time, and, if it judges what the user
// said, has judged that text. No text counts as judged.
func (s *State) Passed(p phases.Phase, userText string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.conduct
	return c.passed[p] && (p != phases.PrePolicy || userText == "" || sha256.Sum256([]byte(userText)) == c.text)
}

// Denied returns the deny of turn.pre_policy that holds for the turn; nil without one, and for one of a failed phase.
func (s *State) Denied() *phases.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if denied := s.conduct.denied(); denied != nil {
		return new(*denied)
	}
	return nil
}

func (c *conduct) denied() *phases.Error {
	if c.refused == nil || c.failed || c.refused.Code != phases.CauseDenied {
		return nil
	}
	return c.refused
}

// Dispatched reports whether a phase was dispatched in the turn.
func (s *State) Dispatched(p phases.Phase) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conduct.dispatched(p)
}

// NeverCompiled reports whether a turn that ends so was stopped by its message, before a compilation.
func (s *State) NeverCompiled(end phases.TurnStatus) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.round == 0 && s.conduct.dispatched(phases.PrePolicy) && (end == phases.TurnBlocked || !s.conduct.passed[phases.PrePolicy])
}

// Stop keeps the turn from going on after a dispatched phase.
func (s *State) Stop(p phases.Phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conduct.dispatched(p) {
		s.conduct.passed[p] = false
	}
}

// canonical is the form of JSON by which arguments are compared: sorted members, whole numbers without a fraction.
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

// wholeNumbers writes 1.0 as 1. Numbers that take long to parse stay as they are.
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

// CallRemark says what is wrong with a host's call of a tool, if something is: it was not judged by tool.pre_call, or
// differs from what was judged, or was denied. A judged call counts once.
func (s *State) CallRemark(call *phases.ToolCall, hooks []string) (remark phases.Diagnostic, wrong bool) {
	if len(hooks) == 0 {
		return remark, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, made := &s.conduct, judged(call.Tool, call.Arguments, nil)
	same := func(j judgedCall) bool { return j.tool == made.tool && j.arguments == made.arguments }
	i := len(c.judged) - 1
	for i >= 0 && !same(c.judged[i]) {
		i--
	}
	remark = phases.Diagnostic{Code: codePhaseSkipped, Severity: phases.SeverityWarning}
	switch {
	case c.refused != nil:
		remark.Code, remark.Severity, remark.Subscription = codeDenyIgnored, phases.SeverityError, c.refused.Subscription
		remark.Message = fmt.Sprintf("%s answered %q for this turn, and the host calls the tool %q anyway", phases.PrePolicy, c.refused.Code, call.Tool)
	case i < 0 && slices.ContainsFunc(c.judged, func(j judgedCall) bool { return j.tool == made.tool }):
		remark.Code = phases.CodeJudgedEarlier
		remark.Message = fmt.Sprintf("the host calls the tool %q with other arguments than %s has judged", call.Tool, phases.ToolPreCall)
	case i < 0:
		remark.Message = fmt.Sprintf("the host calls the tool %q without a dispatch of %s for this call: %s did not judge it", call.Tool, phases.ToolPreCall, strings.Join(hooks, ", "))
	default:
		last := c.judged[i]
		c.judged = slices.Delete(c.judged, i, i+1)
		if last.refused == nil || last.refused.Code == CodeAsk { // the answer may have been yes
			c.judged = slices.DeleteFunc(c.judged, func(j judgedCall) bool { return same(j) && j.refused != nil }) // it was judged again
			return remark, false
		}
		remark.Code, remark.Severity, remark.Subscription = codeDenyIgnored, phases.SeverityError, last.refused.Subscription
		remark.Message = fmt.Sprintf("%s denied a call of the tool %q, and the host makes it anyway", phases.ToolPreCall, call.Tool)
	}
	s.notes.add([]phases.Diagnostic{remark})
	return remark, true
}

// EndRemark says what is wrong with a host's end of a turn that has succeeded, if something is: nobody was asked whether
// it may end, though hooks want to be, or one has denied it.
func (s *State) EndRemark(hooks []string) (remark phases.Diagnostic, wrong bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.conduct
	switch {
	case c.end != nil:
		return phases.Diagnostic{
			Code: codeDenyIgnored, Severity: phases.SeverityError, Subscription: c.end.Subscription,
			Message: fmt.Sprintf("%s denied the turn's end, and the host ends it anyway", phases.PreEnd),
		}, true
	case len(hooks) > 0 && !c.dispatched(phases.PreEnd):
		return phases.Diagnostic{
			Code: codePhaseSkipped, Severity: phases.SeverityWarning,
			Message: fmt.Sprintf("the host ends the turn without a dispatch of %s (Turn.PreEnd, or GoOn of package loop): %s did not judge it", phases.PreEnd, strings.Join(hooks, ", ")),
		}, true
	}
	return remark, false
}

// CheckContext refuses a context that phases.CheckContext refuses, a relative directory,
// and a root that does not contain the directory.
func CheckContext(c *phases.Context) error {
	if err := phases.CheckContext(c); err != nil {
		return err
	}
	if c.Dir != "" && !filepath.IsAbs(c.Dir) {
		return fmt.Errorf("the context's dir %q is not an absolute path", c.Dir)
	}
	if c.Dir == "" || c.DirRoot == "" {
		return nil
	}
	rel, err := filepath.Rel(c.DirRoot, c.Dir)
	if err != nil || !filepath.IsAbs(c.DirRoot) || !filepath.IsLocal(rel) {
		return fmt.Errorf("the context's dir %q is not below its dir_root %q", c.Dir, c.DirRoot)
	}
	return nil
}

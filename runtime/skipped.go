package runtime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

// A host may leave a phase out, and may go on after a deny. It does so at its own
// risk, but not in silence: the ledger says which hooks were never asked, and whose
// word was not heeded.

// maxJudged is how many judged tool calls a turn remembers that were not made yet.
const maxJudged = 256

// conduct is how a host has gone through its turn. The scope's lock guards it.
type conduct struct {
	// passed are the phases that were dispatched.
	passed map[phases.Phase]bool
	// refused is the decision that ended the turn, if the host had heeded it.
	refused *phases.Error
	// judged are the tool calls that tool.pre_call has seen, the oldest first.
	judged []judgedCall
}

// judgedCall is one call of a tool, as tool.pre_call has let it go on.
type judgedCall struct {
	tool      string
	arguments []byte
	refused   *phases.Error
}

// note takes the end of a phase.
func (c *conduct) note(out *phases.Outcome) {
	if c.passed == nil {
		c.passed = map[phases.Phase]bool{}
	}
	c.passed[out.Phase] = true
	var refused *phases.Error
	if err := blockedBy(out); err != nil {
		refused = codedError(err)
	}
	switch in := out.Rewritten.(type) {
	case *phases.PrePolicyInput:
		c.refused = refused
	case *phases.ToolPreCallInput:
		if len(c.judged) >= maxJudged {
			c.judged = slices.Delete(c.judged, 0, 1)
		}
		c.judged = append(c.judged, judgedCall{in.Tool, canonical(in.Arguments), refused})
	}
}

// canonical is the one form of JSON by which arguments are compared.
func canonical(raw json.RawMessage) []byte {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	out, err := digest.JSON(nil, raw)
	if err != nil {
		return raw // was refused, or will be
	}
	return out
}

// remarks says what the host has left out before it compiles, or does all the same.
func (t *Turn) remarks() []phases.Diagnostic {
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
	for _, phase := range []phases.Phase{phases.PrePolicy, phases.PrePromptContext, phases.PreTools} {
		if hooks := t.gen.subscribed(phase); len(hooks) > 0 && !c.passed[phase] {
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
	c, arguments := &t.scope.conduct, canonical(call.Arguments)
	i := slices.IndexFunc(c.judged, func(j judgedCall) bool { return j.tool == call.Tool && bytes.Equal(j.arguments, arguments) })
	remark = phases.Diagnostic{Code: phases.CodePhaseSkipped, Severity: phases.SeverityWarning}
	switch {
	case i < 0 && slices.ContainsFunc(c.judged, func(j judgedCall) bool { return j.tool == call.Tool }):
		remark.Code = phases.CodeJudgedEarlier
		remark.Message = fmt.Sprintf("the host calls the tool %q with other arguments than %s has judged", call.Tool, phases.ToolPreCall)
	case i < 0:
		remark.Message = fmt.Sprintf("the host calls the tool %q without %s: %s never ran", call.Tool, phases.ToolPreCall, strings.Join(hooks, ", "))
	default:
		judged := c.judged[i]
		if c.judged = slices.Delete(c.judged, i, i+1); judged.refused == nil || judged.refused.Code == codeAsk {
			return remark, false // who was asked may have said yes
		}
		remark.Code, remark.Severity, remark.Subscription = phases.CodeDenyIgnored, phases.SeverityError, judged.refused.Subscription
		remark.Message = fmt.Sprintf("%s denied a call of the tool %q, and the host makes it all the same", phases.ToolPreCall, call.Tool)
	}
	t.scope.notes.add([]phases.Diagnostic{remark})
	return remark, true
}

package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// Refused says that a hook refused a turn, a prompt or a call, or wants a person to allow it. It is an error, and the
// question for [Options.Ask].
type Refused struct {
	Phase phases.Phase
	// Verdict is deny (also if a phase failed closed) or ask.
	Verdict phases.Verdict
	// By is the subscription that decided; empty if unknown.
	By string
	// Reason and ReasonCode are the hook's own.
	Reason, ReasonCode string
	// Call is the refused call; its tool is empty for a turn or a prompt.
	Call Call
	// DecisionRef names the prompt in force; nil if none is known.
	DecisionRef *phases.DecisionRef
	// Err is set if no hook decided: the phase failed closed, or the person who was asked said no or could not be asked.
	Err error
}

// Error implements error: what is refused, by whom, and why.
func (r *Refused) Error() string {
	what := "the turn"
	switch {
	case r.Phase == phases.PostPromptCompile:
		what = "the prompt"
	case r.Call.Tool != "":
		what = fmt.Sprintf("the call of the tool %.80q", r.Call.Tool)
	}
	what += " was refused"
	if r.By != "" {
		what += " by " + r.By
	}
	if r.Reason != "" {
		what += ": " + r.Reason
	}
	if r.Err != nil {
		what += " (" + r.Err.Error() + ")"
	}
	return what
}

// Unwrap returns Err.
func (r *Refused) Unwrap() error { return r.Err }

func refusedBy(e *phases.Error) *Refused {
	r := &Refused{Phase: e.Phase, Verdict: phases.VerdictDeny, By: e.Subscription, Reason: e.Message, DecisionRef: e.DecisionRef}
	if e.Code == "ask" { // of [runtime.Turn.Compile]
		r.Verdict = phases.VerdictAsk
	} else if e.Code != phases.CauseDenied {
		r.Reason, r.Err = "", e
	}
	return r
}

// decide returns nil if a phase allows its subject, after asking a person if a hook wants that; otherwise it fills in r and
// returns it as the error. Other errors mean that the turn cannot go on.
func (t *Turn) decide(ctx context.Context, out *phases.Outcome, failed error, r *Refused) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case out == nil && !unsendable(failed):
		return failed
	case failed == nil && (out.Decision == nil || out.Decision.Verdict == phases.VerdictAllow):
		return nil
	}
	if r.Err, r.Verdict = failed, phases.VerdictDeny; out != nil && out.Decision != nil {
		r.Verdict, r.DecisionRef = out.Decision.Verdict, out.DecisionRef
		all := out.Decision.Reasons
		if i := slices.IndexFunc(all, func(reason phases.Reason) bool { return reason.Verdict == r.Verdict }); i >= 0 {
			r.By, r.Reason, r.ReasonCode = all[i].Subscription, all[i].Reason, all[i].ReasonCode
		}
	}
	answer := ""
	if r.Verdict == phases.VerdictAsk && failed == nil {
		allowed := false
		if r.Err = errors.New("there is nobody to ask"); t.options.Ask != nil {
			allowed, r.Err = t.options.Ask(ctx, new(*r))
		}
		switch answer = "no"; {
		case errors.Is(r.Err, ErrNotYet):
			return r
		case allowed && r.Err == nil && ctx.Err() == nil:
			answer = "yes"
		case r.Err == nil:
			r.Err = errors.New("the person who was asked said no")
		}
	}
	if err := t.remindOf(r, answer); err != nil {
		return errors.Join(r, err)
	}
	if answer == "yes" {
		return nil
	}
	return r
}

// unsendable reports whether a phase was not dispatched because of what a model or a user wrote, such as a NUL.
func unsendable(err error) bool {
	return phases.CodeOf(err) != phases.CauseBudgetExhausted && !errors.Is(err, runtime.ErrTurnEnded) && !errors.Is(err, runtime.ErrClosed)
}

// ErrNotYet is the error of an [Options.Ask] that cannot wait for a person. The call is refused for now, with the verdict
// ask. The host asks the person and checks the call again, this time with the answer. Without another check before the next
// prompt or the end of the turn, the answer counts as no.
var ErrNotYet = errors.New("a person has to allow it, and nobody has been asked yet")

// callKey identifies a call.
type callKey struct{ id, tool string }

// wait keeps a refused call until there is an answer.
func (s *sum) wait(r Refused) {
	r.Call.Arguments, r.Call.Paths, r.Err = nil, nil, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks == nil {
		s.asks = map[callKey]Refused{}
	}
	s.asks[callKey{r.Call.ID, r.Call.Tool}] = r
}

// answered forgets a call that waited.
func (s *sum) answered(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asks, callKey{c.ID, c.Tool})
}

// denyWaiting denies the calls that still wait, and returns them by id.
func (t *Turn) denyWaiting() []Refused {
	t.sum.mu.Lock()
	waiting := slices.SortedFunc(maps.Values(t.sum.asks), func(a, b Refused) int {
		return cmp.Or(cmp.Compare(a.Call.ID, b.Call.ID), cmp.Compare(a.Call.Tool, b.Call.Tool))
	})
	t.sum.asks = nil
	t.sum.mu.Unlock()
	for i := range waiting {
		t.called(waiting[i].Call, outcomeDenied, 0)
	}
	return waiting
}

// remindOf reminds the model of a decision about a call, unless the host tells it. A refused turn or prompt reaches no model.
func (t *Turn) remindOf(r *Refused, answer string) error {
	if r.Call.Tool == "" || answer == "" && t.options.TellsRefusals {
		return nil
	}
	about := map[string]string{
		"verdict": string(r.Verdict), "by": r.By, "reason_code": r.ReasonCode, "tool": sdk.PlainName(r.Call.Tool), "call_id": sdk.PlainName(r.Call.ID), "answer": answer,
	}
	maps.DeleteFunc(about, func(_, value string) bool { return value == "" })
	text := "A hook of the host has decided about a call of a tool. Do not try to get around it."
	if answer == "yes" {
		text = "A hook of the host has asked a person about a call of a tool, who allowed it."
	}
	return t.Remind(phases.Reminder{Type: "permission.decision", Attributes: about, Text: text})
}

// Call is one tool call that a model made.
type Call struct {
	// ID pairs the call with its result, and is the idempotency key for a plugin's tool.
	ID   string `json:"id,omitempty"`
	Tool string `json:"tool"`
	// Arguments are a JSON object.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Paths are the files and directories that the call is about. If empty, [Tool.Paths] provides them.
	Paths []string `json:"paths,omitempty"`
	// DecisionRef is set by [Turn.CheckTool] if hooks decided: the prompt in force, if known.
	DecisionRef *phases.DecisionRef `json:"-"`
}

package bridge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// tool lets the plugins judge a call, or see its result. Calls of one turn may run at once. If the gateway has not seen the
// turn's prompt, because it started later, it judges calls in a new turn. It also does so if the turn's ledger is full,
// or another configuration is in force: agents work for hours on one prompt.
func (b *Bridge) tool(ctx context.Context, s *session, where phases.Context, e *agent.Event) (out agent.Outcome, err error) {
	key := verdictKey(e, &where)
	if out, again := s.judged(key, e, b.now()); again {
		return out, nil
	}
	t, whole, err := b.turnOf(ctx, s, where, e, nil)
	if err != nil {
		return out, err
	}
	remark(e, t)
	if out, err = s.judge(ctx, t, e); phases.CodeOf(err) == phases.CauseBudgetExhausted {
		if t, _, err = b.turnOf(ctx, s, where, e, whole); err == nil {
			out, err = s.judge(ctx, t, e)
		}
	}
	if err == nil && (e.Step != agent.StepToolResult || out.Result != nil) {
		err = t.Keep(ctx) // before the agent acts on it: the gateway may be killed at any time
	}
	if err != nil {
		return agent.Outcome{}, err
	}
	if key != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.verdicts.keep(key, verdict{out, e.FromMod, e.TurnID, b.now()})
	}
	return out, nil
}

// judged returns the verdict on a call that our mod got if a hook asks now with the same arguments, or the other way round.
func (s *session) judged(key string, e *agent.Event, now time.Time) (out agent.Outcome, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, asked := s.verdicts.of[key]
	if !asked || before.ofMod == e.FromMod || now.Sub(before.at) > memoTime || before.turn != "" && e.TurnID != "" && before.turn != e.TurnID {
		return out, false
	}
	if s.turn != nil {
		_ = report(s.turn, e) // a ledger that is full takes no facts
	}
	delete(s.verdicts.of, key)
	s.verdicts.keys = slices.DeleteFunc(s.verdicts.keys, func(k string) bool { return k == key })
	return before.Outcome, true
}

func (s *session) judge(ctx context.Context, t *loop.Turn, e *agent.Event) (out agent.Outcome, err error) {
	with := phases.ToolPreCall
	if e.Step == agent.StepToolResult {
		with = phases.ToolPostCall
		var r loop.Result
		if r, err = t.FinishTool(ctx, loop.Call(e.Call), e.Result, e.IsError, e.Took); r.Changed {
			out.Result = &r.Text
		}
	} else if err = report(t, e); err == nil {
		out, err = check(ctx, t, e)
	}
	switch {
	case err != nil:
		return agent.Outcome{}, err
	case out.Verdict == phases.VerdictDeny: // some of the reminders that wait are about the call
		ref := len(out.Referring()) - len(out.Reason)
		out.Reason, err = withReminders(t, agent.Room{Most: 10_000 - ref}, out.Reason, with)
	case out.Verdict != "" || out.Result != nil: // there is no room beside a question or another result
	default:
		out.Context, err = s.bring(t, e.Room(), with)
	}
	return out, err
}

func check(ctx context.Context, t *loop.Turn, e *agent.Event) (agent.Outcome, error) {
	checked, refused, err := t.CheckTool(ctx, loop.Call(e.Call))
	switch {
	case err != nil:
		return agent.Outcome{}, err
	case refused != nil:
		if refused.Err != nil && !errors.Is(refused.Err, loop.ErrNotYet) { // no hook has decided: the reason names what failed
			refused.Reason = refused.Error()
		}
		return agent.Outcome{Verdict: refused.Verdict, Reason: cmp.Or(refused.Reason, refused.Error()), DecisionRef: refused.DecisionRef}, nil
	case !bytes.Equal(checked.Arguments, e.Call.Arguments) || e.Replaced > 0 && checked.Arguments != nil: // what was judged is what runs
		return agent.Outcome{Arguments: checked.Arguments}, nil
	}
	return agent.Outcome{}, nil
}

// bring returns the text for the model in an answer to a tool event: text that did not fit into the answer to the prompt,
// and reminders that would otherwise wait for the next prompt. What does not fit here keeps waiting.
func (s *session) bring(t *loop.Turn, r agent.Room, with phases.Phase) (string, error) {
	if r.Most == 0 {
		return "", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ""
	if s.late != "" && s.turn != nil {
		var cut *manifest.RequestChange
		text, cut = fit(r, s.late, nil)
		placed := manifest.RequestChange{Kind: manifest.RequestPlacement, Manifest: string(phases.PlacementUserMessage), Sent: string(with)}
		if err := ignoreUnknown(s.report(text, cut, placed)); err != nil {
			return "", err
		}
		s.late = ""
	}
	text, err := withReminders(t, r, text, with)
	s.gives(text)
	return text, err
}

// turnOf returns the turn of a call, and the whole turn of the session, which an agent's turn is a part of. It is the one
// under way, unless that belongs to another prompt, is the full one, or has an earlier configuration, whose plugins are
// stopped soon and then judge nothing.
func (b *Bridge) turnOf(ctx context.Context, s *session, where phases.Context, e *agent.Event, full *loop.Turn) (of, whole *loop.Turn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	another := e.TurnID != "" && s.id != "" && s.id != e.TurnID && !ofSubagent(e, &where) // a subagent has one turn
	if s.turn == nil || another || s.turn == full || s.turn.Outdated() {
		if err := b.renew(ctx, s, where, e); err != nil {
			return nil, nil, err
		}
	}
	of = s.turn
	if e.AgentID != "" && where.ParentSessionID == "" {
		of, err = s.turn.ForAgent(e.AgentID, b.options())
	}
	if err == nil && where.Dir != "" && where.Dir != of.Context().Dir {
		of = of.In(where.Dir) // a call runs where its own event says
	}
	return of, s.turn, err
}

// renew begins a turn for a call, replacing the one under way. If that is the prompt's own, the prompt and the host's data of
// it carry over except for the id: the same one would repeat the keys of dispatches.
func (b *Bridge) renew(ctx context.Context, s *session, where phases.Context, e *agent.Event) error {
	where.Epoch = s.epoch
	id, said, late, says, begins := e.TurnID, "", "", (*Prompt)(nil), *e
	var of *loop.Turn
	if s.turn != nil && (id == "" || id == s.id || ofSubagent(e, &where)) {
		id, said, late, says, begins.TurnID, s.late, of = s.id, s.said, s.late, s.says.Load(), "", "", s.turn
	}
	begun, err := b.begin(ctx, s, where, &begins)
	if err != nil {
		return err
	}
	if of != nil {
		begun.Input.UserText = of.Input.UserText
		err = ignoreUnknown(begun.Continue(of.Turn))
	}
	if err := errors.Join(err, s.finish(ctx, "", context.Canceled)); err != nil {
		return begun.Done(ctx, "", err)
	}
	s.turn, s.id, s.said, s.late = begun, id, said, late
	s.says.Store(says)
	return nil
}

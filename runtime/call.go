package runtime

import (
	"context"
	"time"

	"github.com/grapnelhq/grapnel/internal/cond"
	"github.com/grapnelhq/grapnel/internal/engine/bounded"
	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// call runs one hook: attempts within its budgets, then the check of its answer. It returns at until at the latest.
func (d *dispatch) call(ctx context.Context, c *call, until time.Time) {
	attempts := 1
	var backoff time.Duration
	if r := c.sub.Retry; r != nil {
		attempts, backoff = max(1, r.Attempts), r.Backoff.D()
	}
	ctx, c.span = d.engine.beginRun(ctx, phases.Trace{}, c.run)
	defer c.span.done()
	for attempt := 1; ; attempt++ {
		failure := d.try(ctx, c, attempt, until)
		if failure == nil {
			d.keepAnswer(c)
			return
		}
		if attempt == attempts || !pool.Retryable(failure) || !bounded.Pause(ctx, backoff, until) {
			c.fail(failure)
			return
		}
		d.engine.logFailure(c.run, failure)
	}
}

func (d *dispatch) try(ctx context.Context, c *call, attempt int, until time.Time) *phases.Error {
	c.run.Attempts = attempt
	if time.Until(until) <= 0 {
		return phases.Errorf(phases.CauseBudgetExhausted, "there was no time left when its turn came")
	}
	return d.engine.invoke(ctx, c.invocation(until))
}

// send sends a call whose answer collect waits for. It returns false if that could take time; what cannot be called
// at all is settled.
func (d *dispatch) send(ctx context.Context, c *call, until time.Time) bool {
	if c.sub.Retry != nil || c.once != nil || time.Until(until) <= 0 {
		return false
	}
	i := c.invocation(until)
	if !i.tryAcquire(ctx) {
		return false
	}
	c.run.Attempts = 1
	ctx, c.span = d.engine.beginRun(ctx, phases.Trace{}, c.run)
	if failure := d.engine.send(ctx, i); failure != nil {
		c.fail(failure)
		c.span.done()
		return true
	}
	c.sent = i
	return true
}

// collect waits for the answer of a call that was sent.
func (d *dispatch) collect(c *call) {
	i := c.sent
	if failure := d.engine.receive(i); failure != nil {
		c.fail(failure)
	} else {
		d.keepAnswer(c)
	}
	if c.span.over = i.arrived; !i.shared {
		*i = invocation{}
		d.engine.over.Put(i)
	}
}

func (c *call) invocation(until time.Time) *invocation {
	d := c.dispatch
	i, ok := d.engine.over.Get().(*invocation)
	if !ok {
		i = &invocation{}
	}
	// Field by field: a literal would be made first and copied then.
	i.frame, i.in, i.run, i.kind, i.breaker, i.subscription = c, c.hook.in, c.run, ExchangeDispatch, c.hook.breaker, c.sub.ID
	i.once, i.timeout, i.until = c.once, c.sub.Timeout.D(), until
	at := &i.call.Site
	at.plugin, at.turn, at.state, at.subscription, at.generation = c.sub.Plugin, d.rq.context, d.rq.state, c.sub.ID, d.gen.number
	return i
}

func (d *dispatch) refuse(ctx context.Context, c *call, until time.Time) bool {
	if c.sub.Retry != nil {
		return false
	}
	failure := refusal(c.hook.in, c.hook.breaker, c.sub.ID)
	if failure == nil || time.Until(until) <= 0 {
		return false
	}
	_, c.span = d.engine.beginRun(ctx, phases.Trace{}, c.run)
	c.run.Attempts = 1
	c.fail(failure)
	c.span.done()
	return true
}

var _ frame = (*call)(nil)

func (c *call) send(ctx context.Context, inc *pool.Incarnation, remaining time.Duration, l *pool.Lease) {
	c.judged = c.dispatch.applied
	c.dispatch.message(c, inc, remaining)
	c.pending = inc.Send(ctx, &c.asked, l)
}

func (c *call) wait(ctx context.Context) (wire.Stats, error) {
	return c.pending.Answer(ctx, &c.answer)
}

func (c *call) show(x *Exchange) {
	asked, answer := c.asked, c.answer
	x.Dispatch, x.Result = &asked, &answer
}

func (c *call) timeUp(caller context.Context, sent bool) *phases.Error {
	if !sent && !bounded.Cancelled(caller) {
		return phases.Errorf(phases.CauseBudgetExhausted, "the plugin was busy until the time was over")
	}
	return bounded.TimeUp(caller)
}

// message makes the call as the plugin sees it: what was not granted is withheld.
func (d *dispatch) message(c *call, inc *pool.Incarnation, remaining time.Duration) {
	h, m := c.hook, &c.asked
	*m = phases.Dispatch{}
	m.Subscription, m.Hook, m.Phase, m.Context = c.sub.ID, c.sub.Name, d.phase.Row.Phase, d.rq.context
	m.Input, m.Policies, m.Contexts = d.inputOf(c), d.policies, d.contexts
	m.Attempt, m.Trace, m.Remaining, m.Generation, m.Incarnation = c.run.Attempts, c.span.trace, remaining, d.gen.number, inc.Number
	m.Budget = phases.AnswerBudget{MaxChars: d.textBudget(c), MaxBytes: pool.FrameSize(&h.in.Declared)}
	if d.rq.key != "" {
		m.IdempotencyKey = d.rq.key + "/" + c.sub.ID
	}
	h.sight.Withhold(m)
}

// admit implements frame: it checks the answer and settles the call with it.
func (c *call) admit(*pool.Incarnation) *phases.Error {
	d, res := c.dispatch, &c.answer
	var admitted merge.Admitted
	var err error
	if d.engine.opts.OnExchange == nil {
		admitted, err = merge.AdmitOwned(d.phase.Row, &c.hook.merge, res.Contributions, c.space[:0])
	} else { // it has the answer, too
		admitted, err = merge.Admit(d.phase.Row, &c.hook.merge, res.Contributions)
	}
	if err != nil {
		return codedError(err)
	}
	c.entries, c.dropped, c.settled = admitted.Entries, admitted.Dropped, true
	c.notes = append(c.notes, admitted.Diagnostics...)
	for _, note := range res.Diagnostics {
		note = note.Remark(c.sub.Visibility)
		note.Plugin, note.Subscription = c.sub.Plugin, c.sub.ID
		c.notes = append(c.notes, note)
	}
	c.hook.in.Redact(c.notes)
	d.engine.logRemarks(c.sub.ID, c.notes)
	remarks := merge.Remarks(&c.hook.merge, c.entries)
	c.hook.in.Redact(remarks)
	d.engine.logRemarks(c.sub.ID, remarks) // merging makes the same rows of them, which are not logged again
	c.run.State = phases.StateSucceeded
	c.run.Verdict, c.run.ReasonCode = merge.Verdict(c.entries)
	c.declined = isFiltered(res.Contributions)
	switch {
	case c.sub.Shadow:
		c.run.State = phases.StateShadowed
	case len(c.dropped) > 0:
		first := c.dropped[0]
		c.fail(phases.Errorf(first.Cause, "%s", first.Message))
	case c.run.Verdict == phases.VerdictDeny:
		c.run.State, c.run.Code = phases.StateDenied, string(phases.CauseDenied)
	case c.declined:
		c.run.State = phases.StateFiltered
	}
	return nil
}

// isFiltered reports whether a hook says that it does not apply to its input.
func isFiltered(answer []phases.Contribution) bool {
	return len(answer) == 1 && phases.KindOf(answer[0]) == phases.KindNoop && answer[0].Head().ContributionID == phases.IDFiltered
}

// condition settles a hook whose condition is false or fails, judged by what its handler would be sent now.
func (d *dispatch) condition(c *call) {
	if c.settled {
		return
	}
	c.judged, c.run.RewrittenBy = d.applied, merge.Owners(d.applied)
	ok, err := d.holds(c.sub.Condition, d.policies)
	switch {
	case err != nil:
		c.fail(&phases.Error{Code: phases.CauseCondition, Message: "its condition could not be evaluated", Detail: err.Error(), Err: err})
	case !ok:
		c.run.State, c.settled, c.declined = phases.StateFiltered, true, false
	case c.sub.Facts:
		d.inform()
	}
}

// holds evaluates a condition on the input as it is now.
func (d *dispatch) holds(c *cond.Condition, policies []phases.PolicyEntry) (bool, error) {
	in := d.input
	if c.Facts() {
		in = d.inform()
	}
	return c.Eval(cond.Env{Context: &d.rq.context, Input: in, Policies: policies})
}

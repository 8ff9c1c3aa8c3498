package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// enqueue queues the run of one observing hook.
func (d *dispatch) enqueue(ctx context.Context, c *call) error {
	sub, in := c.sub, d.input
	payload, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("input of %s: %w", in.Phase(), err)
	}
	j := Job{Plugin: sub.Plugin, Subscription: sub.ID, Phase: in.Phase(), Context: d.rq.context, Payload: payload, Trace: c.span.trace}
	if len(sub.Condition.Policies()) > 0 || c.hook.sight.Policy {
		j.Policies = d.policies
	}
	if c.hook.sight.Context {
		j.Contexts = d.contexts
	}
	if d.rq.key != "" {
		j.IdempotencyKey = d.rq.key + "/" + sub.ID
	}
	if r := sub.Retry; r != nil {
		j.Attempts, j.Backoff = r.Attempts, r.Backoff.D()
	}
	return d.engine.add(ctx, j)
}

// addJobs queues the background_job contributions of a phase, and tells of those
// that were refused.
func (d *dispatch) addJobs(ctx context.Context, merged *merge.Result) []phases.Diagnostic {
	e := d.engine
	var refused []phases.Diagnostic
	for _, owned := range merged.Jobs {
		job := owned.Value
		j := Job{
			Kind: job.JobKind, Plugin: owned.Hook.Plugin, Subscription: owned.Hook.Subscription, Context: d.rq.context, Payload: job.Payload, Trace: d.traceOf(owned.Hook.Subscription),
			IdempotencyKey: job.IdempotencyKey, NotBefore: job.NotBefore, Attempts: jobAttempts, Backoff: time.Second,
		}
		if in := d.gen.byName[j.Plugin]; in != nil && phases.Allows(in.declared.Grants.See, "policy") {
			j.Policies = merged.Policies
		}
		if err := e.add(ctx, j); err != nil {
			e.jobEvent(j, jobRefused, err)
			cause := phases.CodeOf(err)
			refused = append(refused, phases.Diagnostic{
				Code: phases.CodeJobRefused, Severity: phases.SeverityWarning, Cause: cause, Plugin: j.Plugin, Subscription: j.Subscription, SafeForUser: true,
				Message: fmt.Sprintf("a background_job of %s was not queued (%s)", j.Subscription, cause),
			})
		}
	}
	return refused
}

// traceOf is the trace of the run that contributed something.
func (d *dispatch) traceOf(subscription string) phases.Trace {
	for i := range d.calls {
		if d.calls[i].sub.ID == subscription {
			return d.calls[i].span.trace
		}
	}
	return phases.Trace{}
}

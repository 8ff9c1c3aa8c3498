package runtime

import (
	"slices"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/phases"
)

func (d *dispatch) rewrite() error {
	in, err := merge.RewriteInput(d.rq.input, d.merged.Merged.Rewrites)
	if err == nil {
		d.stale = d.stale || d.facts != nil && !sameArguments(d.input, in)
		d.input, d.informed, d.applied = in, nil, d.merged.Merged.Rewrites
	}
	return err
}

// merge merges the answers so far, and applies the failure policies of hooks that lost a slot or judged an input that
// does not go on.
func (d *dispatch) merge() {
	d.mergeLosses()
	for d.rewriteAll() && d.discardJudged() {
		d.mergeLosses()
	}
}

// mergeLosses merges until no further hook loses a slot: a fallback may take another hook's.
func (d *dispatch) mergeLosses() {
	for again := true; again; {
		again = false
		d.mergeOnce()
		for _, loss := range d.merged.Losses {
			c := &d.calls[loss.Reply]
			if c.failure != nil {
				continue
			}
			before := len(c.entries)
			if c.run.Verdict != "" && c.run.Verdict != phases.VerdictDeny && c.rewrites() {
				c.entries = nil // its verdict is about its rewrite
			}
			c.fail(phases.Errorf(loss.Cause, "another subscription holds %s", loss.Slot))
			d.applyPolicy(c)
			again = again || len(c.entries) != before
		}
	}
}

func (c *call) rewrites() bool {
	return slices.ContainsFunc(c.entries, func(e merge.Entry) bool { return phases.KindOf(e.Value) == phases.KindRewrite })
}

// rewriteAll applies the merged rewrites without those that fail to apply. It reports false if the phase failed over
// them.
func (d *dispatch) rewriteAll() bool {
	for err := d.rewrite(); err != nil; err = d.rewrite() {
		if !d.discardRewrite(err) {
			d.failed = phases.Errorf(phases.CauseInvalidReply, "the rewrites cannot be applied: %w", err)
			d.failed.Phase = d.phase.Row.Phase
			return false
		}
	}
	return true
}

// discardJudged discards the replies of deciding hooks that judged another input than the one that goes on, by the
// policies of these hooks. It reports whether there were any.
func (d *dispatch) discardJudged() bool {
	found := false
	for i := range d.calls {
		c := &d.calls[i]
		if !c.sub.Decides() || c.sub.Stage == phases.RoleObserve {
			continue
		}
		other := merge.Differs(c.judged, d.applied, c.sub.ID)
		if other == "" || !d.outdated(c) {
			continue
		}
		how := "it judged the input before %s rewrote it"
		if c.sub.Stage != phases.RoleValidate {
			how += "; give it the role validate"
		}
		found, c.entries = true, nil
		c.fail(phases.Errorf(phases.CauseConflict, how, other))
		d.applyPolicy(c)
	}
	return found
}

// outdated reports whether a deciding hook must judge the final input: it judged another one, or its condition
// excluded that and does not exclude this one.
func (d *dispatch) outdated(c *call) bool {
	switch c.run.State {
	case phases.StateSucceeded:
		return true
	case phases.StateFiltered:
		if c.declined {
			return true
		}
		ok, err := d.holds(c.sub.Condition, d.merged.Policies)
		if err == nil && !ok {
			c.judged, c.run.RewrittenBy = d.applied, merge.Owners(d.applied)
			return false
		}
		return true
	}
	return false
}

// discardRewrite discards a reply whose rewrite cannot be applied, by the policy of its hook. It returns false if no
// hook owns the rewrite.
func (d *dispatch) discardRewrite(err error) bool {
	owner := codedError(err).Subscription
	for i := range d.calls {
		c := &d.calls[i]
		if c.sub.ID != owner || len(c.entries) == 0 {
			continue
		}
		c.entries = nil
		if c.failure == nil { // a fallback that cannot be applied either is dropped
			c.fail(phases.Errorf(phases.CauseInvalidReply, "%w", err))
			d.applyPolicy(c)
		}
		d.mergeOnce()
		return true
	}
	return false
}

func (d *dispatch) mergeOnce() {
	d.merges++
	d.replies = d.replies[:0]
	for i := range d.calls {
		c := &d.calls[i]
		d.replies = append(d.replies, merge.Reply{Hook: &c.hook.merge, Entries: c.entries, Dropped: c.dropped, CachedFrom: c.run.CachedFrom})
	}
	limits := merge.Limits{TotalChars: d.chars, CountTokens: d.engine.opts.CountTokens}
	d.scratch.Merge(&d.merged, d.phase.Row, d.replies, d.sets, limits)
}

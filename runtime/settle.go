package runtime

import (
	"bytes"
	"slices"

	"github.com/grapnelhq/grapnel/internal/cond"
	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// What the answers of a dispatch come to: merged, with the rewrites applied, and
// without those that do not fit, that lost their place, or that judged an input which
// does not go on.

// rewrite applies the merged rewrites to the request's input.
func (d *dispatch) rewrite() error {
	in, err := rewritten(d.rq.input, d.merged.Merged.Rewrites)
	if err == nil {
		d.input, d.applied = in, d.merged.Merged.Rewrites
	}
	return err
}

// merge merges what has been answered so far, and applies the failure policies
// of those who lost a slot or judged what does not go on.
func (d *dispatch) merge() {
	d.mergeLosses()
	for d.rewriteAll() && d.discardJudged() {
		d.mergeLosses()
	}
}

// mergeLosses merges until nobody loses a slot that has not lost one before: a
// fallback may take another hook's.
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
				c.entries = nil // its verdict is about what it wanted to be written
			}
			c.fail(phases.Errorf(loss.Cause, "another subscription holds %s", loss.Slot))
			d.applyPolicy(c)
			again = again || len(c.entries) != before
		}
	}
}

// rewrites reports whether a rewrite is among the contributions.
func (c *call) rewrites() bool {
	return slices.ContainsFunc(c.entries, func(e merge.Entry) bool { return e.Value.Kind() == phases.KindRewrite })
}

// rewriteAll applies the rewrites, without those that do not apply. It reports false
// if the phase failed over them.
func (d *dispatch) rewriteAll() bool {
	for err := d.rewrite(); err != nil; err = d.rewrite() {
		if !d.unfit(err) {
			d.failed = phases.Errorf(phases.CauseInvalidReply, "the rewrites do not fit: %w", err)
			d.failed.Phase = d.phase.Row.Phase
			return false
		}
	}
	return true
}

// discardJudged discards the replies of hooks that did not deny another input than
// the one that goes on, by the policies of these hooks. It reports whether there were
// any.
func (d *dispatch) discardJudged() bool {
	found := false
	for i := range d.calls {
		c := &d.calls[i]
		if !c.sub.Decides() || c.sub.Stage == phases.RoleObserve {
			continue
		}
		other := differs(c.judged, d.applied, c.sub.ID)
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

// outdated reports whether the word of a hook that decides does not stand for the
// input as it is now: one that was asked about another input, or that its condition
// kept from it and would not keep from this one.
func (d *dispatch) outdated(c *call) bool {
	switch c.run.State {
	case phases.StateSucceeded:
		return true
	case phases.StateFiltered:
		ok, err := c.sub.Condition.Eval(cond.Env{Context: &d.rq.context, Input: d.input, Policies: d.merged.Policies})
		if err == nil && !ok {
			c.judged, c.run.RewrittenBy = d.applied, owners(d.applied)
			return false
		}
		return true
	}
	return false
}

// differs returns the owner of the first rewrite that only one of the lists has, of
// those that are not the given subscription's; "" if there is none.
func differs(before, after []phases.MergedRewrite, subscription string) string {
	others := func(list []phases.MergedRewrite) []phases.MergedRewrite {
		return slices.DeleteFunc(slices.Clone(list), func(r phases.MergedRewrite) bool { return r.Owner == subscription })
	}
	before, after = others(before), others(after)
	for i := range max(len(before), len(after)) {
		switch {
		case i >= len(after):
			return before[i].Owner
		case i >= len(before), before[i].Path != after[i].Path, before[i].Owner != after[i].Owner, !bytes.Equal(before[i].Value, after[i].Value):
			return after[i].Owner
		}
	}
	return ""
}

// owners names the subscriptions of some rewrites, each once; nil for none.
func owners(list []phases.MergedRewrite) []string {
	var names []string
	for i := range list {
		if !slices.Contains(names, list[i].Owner) {
			names = append(names, list[i].Owner)
		}
	}
	return names
}

// unfit takes the answer back whose rewrite does not apply, by the policy of its
// hook. It reports false if that is nobody's.
func (d *dispatch) unfit(err error) bool {
	owner := codedError(err).Subscription
	for i := range d.calls {
		c := &d.calls[i]
		if c.sub.ID != owner || len(c.entries) == 0 {
			continue
		}
		c.entries = nil
		if c.failure == nil { // a fallback that does not fit either is dropped
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
	d.merged = merge.Merge(d.phase.Row, d.replies, d.sets, limits)
}

package runtime

import (
	"fmt"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/answers"
	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/phases"
)

// recall settles a call from the cache if it can; otherwise it notes where to keep the answer. The calls of a
// dispatch are recalled one after the other.
func (d *dispatch) recall(c *call) {
	inc := c.hook.in.Live()
	if c.settled || c.hook.vary == nil || inc == nil || d.gen.dropped.Load() {
		return
	}
	q := answers.Question{Context: &d.rq.context, Input: d.inputOf(c), Session: d.engine.sessions.Number(d.rq.context), Chars: d.textBudget(c)}
	if c.hook.sight.Policy {
		q.Policies = sharedKey(&d.keys.policies, d.policies)
	}
	if c.hook.sight.Context {
		q.Contexts = sharedKey(&d.keys.contexts, d.contexts)
	}
	var space [256]byte // longer keys are allocated
	key := c.hook.vary.AppendKey(space[:0], q)
	found, epoch := c.hook.answers.Get(key, inc.Number)
	if found == nil {
		c.key, c.epoch = string(key), epoch
		return
	}
	c.entries, c.notes, c.settled = merge.AppendClones(c.space[:0], found.Entries), slices.Clip(found.Notes), true
	c.run.State, c.run.CachedFrom, c.run.Incarnation = phases.StateCached, found.Run, inc.Number
}

func sharedKey[T any](key *string, list []T) string {
	if list == nil {
		return "null" // as below, and quickly
	}
	if *key == "" {
		*key = answers.JSON(list)
	}
	return *key
}

func (d *dispatch) keepAnswer(c *call) {
	if c.key == "" || c.run.State != phases.StateSucceeded {
		return
	}
	a := &answers.Answer{
		Entries: merge.AppendClones(nil, c.entries), Notes: slices.Clone(c.notes), Incarnation: c.run.Incarnation,
		Run: fmt.Sprintf("%s/%d/%d", c.sub.ID, c.run.Incarnation, d.engine.runs.Add(1)),
	}
	if ttl := c.sub.Cache.TTL.D(); ttl > 0 {
		a.Until = time.Now().Add(ttl)
	}
	c.hook.answers.Put(c.key, c.epoch, a)
}

package runtime

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/phases"
)

// Bounds of the answers that are kept of one subscription.
const (
	maxAnswers     = 256
	maxAnswerBytes = 4 << 20
)

// answers are the reusable answers of one subscription. An answer is used again
// while the fields that it depends on have the same values, its life has not
// passed, and the plugin has neither said that it is not true any more nor been
// started anew.
type answers struct {
	mu sync.Mutex
	// epoch is raised by Invalidate; what was asked before is not kept after.
	epoch uint64
	kept  recent.Map[*answer]
	bytes int
}

func newAnswers() *answers { return &answers{kept: recent.New[*answer](maxAnswers)} }

// answer is what a hook once said, as it came through the boundary. It does not
// change: who uses it copies what others could change.
type answer struct {
	entries     []merge.Entry
	notes       []phases.Diagnostic
	run         string
	incarnation uint64
	until       time.Time
	bytes       int
}

// get returns the answer of a key that the running incarnation gave, nil if there
// is none, and the epoch under which a new one may be kept.
func (a *answers) get(key []byte, incarnation uint64) (*answer, uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.kept.Lookup(key)
	if !ok || found.incarnation != incarnation || !found.until.IsZero() && time.Now().After(found.until) {
		return nil, a.epoch
	}
	return found, a.epoch
}

// put keeps an answer, if nothing was invalidated since it was asked for. The
// oldest ones make room.
func (a *answers) put(key string, epoch uint64, found *answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if epoch != a.epoch || found.bytes > maxAnswerBytes/4 {
		return
	}
	if before, ok := a.kept.Get(key); ok {
		a.bytes -= before.bytes
		a.kept.Drop(key)
	}
	for a.bytes+found.bytes > maxAnswerBytes || a.kept.Len() >= maxAnswers {
		oldest, ok := a.kept.Evict("")
		if !ok {
			break
		}
		a.bytes -= oldest.bytes
	}
	a.kept.Put("", key, found)
	a.bytes += found.bytes
}

// invalidate forgets everything, and what is being asked now.
func (a *answers) invalidate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.epoch++
	a.kept, a.bytes = recent.New[*answer](maxAnswers), 0
}

// recall settles a call from memory if it can. Otherwise it notes where the
// answer to come is to be kept. The calls of a dispatch are recalled one after
// the other.
func (d *dispatch) recall(c *call) {
	inc := c.hook.in.live.Load()
	if c.settled || c.hook.varying == nil || inc == nil || d.gen.dropped.Load() {
		return
	}
	var room [keyRoom]byte
	key := d.appendKey(room[:0], c)
	found, epoch := c.hook.answers.get(key, inc.number)
	if found == nil {
		c.key, c.epoch = string(key), epoch
		return
	}
	c.entries, c.notes, c.settled = merge.Clone(found.entries), slices.Clip(found.notes), true
	c.run.State, c.run.CachedFrom, c.run.Incarnation = phases.StateCached, found.run, inc.number
}

// keepAnswer keeps what a hook has just answered, if it may be and all of it was
// accepted.
func (d *dispatch) keepAnswer(c *call) {
	if c.key == "" || c.run.State != phases.StateSucceeded {
		return
	}
	found := &answer{
		entries: merge.Clone(c.entries), notes: slices.Clone(c.notes), incarnation: c.run.Incarnation, bytes: len(c.key),
		run: fmt.Sprintf("%s/%d/%d", c.sub.ID, c.run.Incarnation, d.engine.runs.Add(1)),
	}
	for i := range found.entries {
		found.bytes += found.entries[i].Size()
	}
	for i := range found.notes {
		found.bytes += noteBytes(&found.notes[i])
	}
	if ttl := c.sub.Cache.TTL.D(); ttl > 0 {
		found.until = time.Now().Add(ttl)
	}
	c.hook.answers.put(c.key, c.epoch, found)
}

// invalidate forgets cached answers of one plugin: of the named subscriptions,
// of those under the named tags, or of all.
func (e *Engine) invalidate(in *instance, what phases.Invalidation) {
	e.mu.Lock()
	generations := slices.Clone(e.generations)
	e.mu.Unlock()
	for _, g := range generations {
		for id, h := range g.planned.Load().hooks {
			if h.in == in && concerns(what, id, h.tags) {
				h.answers.invalidate()
			}
		}
	}
}

// concerns reports whether an invalidation is about a subscription.
func concerns(what phases.Invalidation, id string, tags []string) bool {
	if len(what.Subscriptions) == 0 && len(what.Tags) == 0 {
		return true
	}
	return slices.Contains(what.Subscriptions, id) ||
		slices.ContainsFunc(what.Tags, func(tag string) bool { return slices.Contains(tags, tag) })
}

package runtime

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/merge"
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
	kept  recent[answer]
	bytes int
}

type answer struct {
	entries     []merge.Entry
	notes       []phases.Diagnostic
	run         string
	incarnation uint64
	until       time.Time
	bytes       int
}

// get returns the answer of a key that the running incarnation gave, and the
// epoch under which a new one may be kept.
func (a *answers) get(key string, incarnation uint64, now time.Time) (answer, uint64, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.kept.get(key)
	if !ok || found.incarnation != incarnation || !found.until.IsZero() && now.After(found.until) {
		return answer{}, a.epoch, false
	}
	return found, a.epoch, true
}

// put keeps an answer, if nothing was invalidated since it was asked for.
func (a *answers) put(key string, epoch uint64, found answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if epoch != a.epoch || found.bytes > maxAnswerBytes/4 {
		return
	}
	before, _ := a.kept.get(key)
	if a.bytes+found.bytes-before.bytes > maxAnswerBytes || len(a.kept.order) >= maxAnswers {
		a.clear()
		before = answer{}
	}
	a.kept.put(key, found)
	a.bytes += found.bytes - before.bytes
}

// invalidate forgets everything, and what is being asked now.
func (a *answers) invalidate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.epoch++
	a.clear()
}

// clear empties the cache; the caller holds the lock.
func (a *answers) clear() {
	a.kept, a.bytes = recent[answer]{limit: maxAnswers}, 0
}

// cached settles a call from memory if it can. Otherwise it returns a function
// that keeps the answer to come; nil for hooks that are not cached.
func (d *dispatch) cached(c *call) (hit bool, keep func()) {
	inc := c.hook.in.live.Load()
	if c.sub.Cache == nil || c.sub.Shadow || inc == nil {
		return false, nil
	}
	key := d.cacheKey(c)
	found, epoch, ok := c.hook.answers.get(key, inc.number, time.Now())
	if ok {
		c.entries, c.notes, c.settled = found.entries, slices.Clone(found.notes), true
		c.run.State, c.run.CachedFrom, c.run.Incarnation = phases.StateCached, found.run, inc.number
		return true, nil
	}
	return false, func() { d.keepAnswer(c, key, epoch) }
}

// keepAnswer keeps what a hook has just answered, if all of it was accepted.
func (d *dispatch) keepAnswer(c *call, key string, epoch uint64) {
	if c.run.State != phases.StateSucceeded {
		return
	}
	found := answer{
		entries: c.entries, notes: slices.Clone(c.notes), incarnation: c.run.Incarnation, bytes: len(key) + c.run.BytesOut,
		run: fmt.Sprintf("%s/%d/%d", c.sub.ID, c.run.Incarnation, d.engine.runs.Add(1)),
	}
	for i := range c.entries {
		found.bytes += 256 + len(c.entries[i].Hash)
	}
	if ttl := c.sub.Cache.TTL.D(); ttl > 0 {
		found.until = time.Now().Add(ttl)
	}
	c.hook.answers.put(key, epoch, found)
}

// cacheKey names everything that the answer may depend on: always the workspace,
// the actor, the room for text and the sets that the plugin may see, and what the
// subscription says it varies with. Parts have their lengths before them, so that
// no two lists of parts give one key.
func (d *dispatch) cacheKey(c *call) string {
	ctx := &d.rq.context
	var b strings.Builder
	part := func(s string) {
		b.WriteString(strconv.Itoa(len(s)))
		b.WriteByte(':')
		b.WriteString(s)
	}
	part(ctx.WorkspaceID)
	part(ctx.Actor.Kind)
	part(ctx.Actor.ID)
	part(strconv.Itoa(d.room(c)))
	if c.hook.seesPolicy {
		part(asJSON(d.policies))
	}
	if c.hook.seesContext {
		part(asJSON(d.contexts))
	}
	var fields map[string]any
	for _, name := range c.sub.Cache.Vary {
		if field, isInput := strings.CutPrefix(name, "input."); isInput {
			if fields == nil {
				fields = phases.InputFields(d.input)
			}
			part(asJSON(fields[field]))
			continue
		}
		part(contextField(ctx, name))
	}
	return b.String()
}

// contextField returns a field of the context by its JSON name, as text.
func contextField(c *phases.Context, name string) string {
	switch name {
	case "dir":
		return c.Dir
	case "workspace_id":
		return c.WorkspaceID
	case "thread_id":
		return c.ThreadID
	case "conversation_thread_id":
		return c.Conversation()
	case "turn_id":
		return c.TurnID
	case "session_id":
		return c.SessionID
	case "mode":
		return string(c.Mode)
	case "epoch":
		return strconv.Itoa(c.Epoch)
	}
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(asJSON(c)), &all) != nil {
		return ""
	}
	return string(all[name])
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%#v", v) // never equal to JSON, and never an error for inputs
	}
	return string(b)
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

package merge

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

type policyClaim = claim[*phases.Policy]

// policies gives each (domain, key) one value: the one of the strongest rank.
// Weaker ones are left out; one of equal priorities and another value is a
// conflict; one that says the same agrees and is kept.
func (m *merger) policies() {
	list := claims[*phases.Policy](m)
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(a, b policyClaim) int {
		return cmp.Or(compareKey(a.value, b.value), compareRank(a.item, b.item))
	})
	turn := slices.Clone(m.state.Policies)
	slices.SortStableFunc(turn, func(a, b phases.PolicyEntry) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Key, b.Key))
	})
	var added []phases.PolicyEntry
	runs(list, func(a, b policyClaim) bool { return compareKey(a.value, b.value) == 0 }, func(run []policyClaim) {
		i, ok := slices.BinarySearchFunc(turn, run[0].value, func(e phases.PolicyEntry, p *phases.Policy) int {
			return cmp.Or(cmp.Compare(e.Domain, p.Domain), cmp.Compare(e.Key, p.Key))
		})
		switch {
		case ok && holds(turn[i], run[0]):
			m.settlePolicies(policyHolder{turn[i].Owner, turn[i].Value, turn[i].Priority, nil}, run)
		default:
			best := run[0]
			entry := entryOf(best)
			m.settlePolicies(policyHolder{best.hook.Subscription, best.value.Value, best.hook.Priority, best.item}, run[1:])
			m.out.Merged.Policies = append(m.out.Merged.Policies, entry)
			if ok {
				turn[i] = entry
			} else {
				added = append(added, entry)
			}
		}
	})
	m.out.Policies = mergeSorted(turn, added)
}

func compareKey(a, b *phases.Policy) int {
	return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Key, b.Key))
}

// holds reports whether an entry of an earlier dispatch keeps its place: unless
// the new one is stronger, or of the same subscription, which may change its
// mind.
func holds(e phases.PolicyEntry, c policyClaim) bool {
	return e.Owner != c.hook.Subscription && e.Priority >= c.hook.Priority
}

// policyHolder is who has a key. An entry of an earlier dispatch has no item,
// and only its subscription's priority is known.
type policyHolder struct {
	subscription string
	value        json.RawMessage
	priority     int
	item         *item
}

func (h policyHolder) equalPriorities(c policyClaim) bool {
	if h.item != nil {
		return h.item.samePriorities(c.item)
	}
	return h.priority == c.hook.Priority
}

// settlePolicies decides about those who do not hold the key. The message of a
// conflict does not show the values: policies may be secrets of the operator.
func (m *merger) settlePolicies(holder policyHolder, others []policyClaim) {
	for _, c := range others {
		slot := c.value.Domain + "/" + c.value.Key
		switch {
		case sameJSON(holder.value, c.value.Value):
			// Agreement: kept, though it changes nothing.
		case holder.equalPriorities(c):
			m.lose(c.item, c.id(), string(phases.CauseConflict), 0)
			m.conflict(c.item, holder.subscription, slot, "policy")
		default:
			m.lose(c.item, c.id(), ReasonOutranked, 0)
		}
	}
}

// entryOf is the set's entry for a policy that holds its key. The set knows only
// the subscription's priority: that is what later phases compare with.
func entryOf(c policyClaim) phases.PolicyEntry {
	return phases.PolicyEntry{
		Domain: c.value.Domain, Key: c.value.Key, Value: c.value.Value, Priority: c.hook.Priority, Owner: c.hook.Subscription,
	}
}

// mergeSorted puts the new entries, which are sorted, among the old ones.
func mergeSorted(old, added []phases.PolicyEntry) []phases.PolicyEntry {
	out := slices.Concat(old, added)
	slices.SortStableFunc(out, func(a, b phases.PolicyEntry) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Key, b.Key))
	})
	return out
}

// sameJSON compares by value: order of members and spelling of numbers do not
// count. Both have been through Admit, so both have a canonical form.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	ca, errA := digest.JSON(nil, a)
	cb, errB := digest.JSON(nil, b)
	return errA == nil && errB == nil && bytes.Equal(ca, cb)
}

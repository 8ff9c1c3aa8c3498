package merge

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

type policyClaim = claim[*phases.Policy]

// policies gives each (domain, key) the value of the strongest rank. Weaker values are omitted, an equally strong
// different one is a conflict, an equal value is kept.
func (m *merger) policies() {
	list := claims[*phases.Policy](m, nil)
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(a, b policyClaim) int {
		return cmp.Or(compareEntries(entryOf(a), entryOf(b)), compareRank(a.item, b.item))
	})
	turn := slices.SortedStableFunc(slices.Values(m.state.Policies), compareEntries)
	var added []phases.PolicyEntry
	same := func(a, b policyClaim) bool { return compareEntries(entryOf(a), entryOf(b)) == 0 }
	runs(list, same, func(run []policyClaim) {
		i, ok := slices.BinarySearchFunc(turn, entryOf(run[0]), compareEntries)
		if ok && holds(turn[i], run[0]) {
			m.settlePolicies(policyHolder{turn[i].Owner, turn[i].Value, turn[i].Priority, nil}, run)
			return
		}
		best := run[0]
		entry := entryOf(best)
		m.settlePolicies(policyHolder{best.hook.Subscription, best.value.Value, best.hook.Priority, best.item}, run[1:])
		m.out.Merged.Policies = append(m.out.Merged.Policies, entry)
		if ok {
			turn[i] = entry
		} else {
			added = append(added, entry)
		}
	})
	m.out.Policies = slices.SortedStableFunc(slices.Values(slices.Concat(turn, added)), compareEntries)
}

func compareEntries(a, b phases.PolicyEntry) int {
	return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Key, b.Key))
}

func holds(e phases.PolicyEntry, c policyClaim) bool {
	return e.Owner != c.hook.Subscription && e.Priority >= c.hook.Priority
}

// policyHolder is the owner of a key. An entry of an earlier dispatch has no item; only its subscription's priority
// is known.
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

// settlePolicies drops those who do not hold the key. Messages do not show the values: policies may be secrets of the
// operator.
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

func entryOf(c policyClaim) phases.PolicyEntry {
	return phases.PolicyEntry{
		Domain: c.value.Domain, Key: c.value.Key, Value: c.value.Value, Priority: c.hook.Priority, Owner: c.hook.Subscription,
	}
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	ca, errA := digest.JSON(nil, a)
	cb, errB := digest.JSON(nil, b)
	return errA == nil && errB == nil && bytes.Equal(ca, cb)
}

type offer struct {
	*item
	bundle string
	tool   *phases.Tool
	kept   *int // the bundle's remaining tools
}

// tools gives each name one owner: the engine, the host, or the first in plan order. A tool that loses its name is
// dropped alone; a bundle is lost with its last tool.
func (m *merger) tools() {
	m.checkHostTools()
	bundles := claims[*phases.ToolBundle](m, nil)
	if len(bundles) == 0 {
		return
	}
	kept := make([]int, len(bundles))
	var offers []offer
	for i, b := range bundles {
		kept[i] = len(b.value.Tools)
		for j := range b.value.Tools {
			offers = append(offers, offer{b.item, b.value.BundleID, &b.value.Tools[j], &kept[i]})
		}
	}
	slices.SortFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.tool.Name, b.tool.Name), cmp.Compare(a.seq, b.seq))
	})
	host := slices.Sorted(slices.Values(m.state.HostTools))
	runs(offers, func(a, b offer) bool { return a.tool.Name == b.tool.Name }, func(run []offer) {
		if run[0].tool.Name == phases.RequestTools {
			m.loseTools(run, phases.OwnerBuiltin)
			return
		}
		if _, ok := slices.BinarySearch(host, run[0].tool.Name); ok {
			m.loseTools(run, phases.OwnerHost)
			return
		}
		m.out.Merged.Tools = append(m.out.Merged.Tools, mergedTool(run[0]))
		m.loseTools(run[1:], run[0].hook.Subscription)
	})
}

// checkHostTools warns a host whose tool has the engine's name; the engine then omits its own.
func (m *merger) checkHostTools() {
	if !slices.Contains(m.state.HostTools, phases.RequestTools) {
		return
	}
	m.diagnose(len(m.replies), phases.Diagnostic{
		Code: string(phases.CauseConflict), Severity: phases.SeverityWarning, Slot: phases.RequestTools,
		Message: fmt.Sprintf("tool %q belongs to %s: the %s has one of that name; until it is renamed, no model can ask for hidden tools", phases.RequestTools, phases.OwnerBuiltin, phases.OwnerHost),
	})
}

// loseTools drops tools whose name belongs to owner, each with a row of its own.
func (m *merger) loseTools(losers []offer, owner string) {
	for _, o := range losers {
		m.omitPart(o.item, o.tool.Name, string(phases.CauseConflict), 0)
		m.conflict(o.item, owner, o.tool.Name, "tool")
		if *o.kept--; *o.kept == 0 {
			o.lost = true
		}
	}
}

// mergedTool gives a tool its hash and its canonical schema, so that providers' caches do not depend on how a plugin
// spells it.
func mergedTool(o offer) phases.MergedTool {
	def := *o.tool
	if schema, err := digest.JSON(nil, def.InputSchema); err == nil {
		def.InputSchema = schema
	}
	out := phases.MergedTool{Name: def.Name, BundleID: o.bundle, Owner: o.hook.Plugin, Definition: def}
	if b, err := toolEncoder().Append(nil, &def); err == nil { // Admit encoded the same parts
		out.Hash = digest.Hash(o.hook.Key, b)
	}
	return out
}

// decisions takes the strongest verdict (deny > ask > allow) and keeps all reasons.
func (m *merger) decisions() {
	list := claims[*phases.Decision](m, nil)
	if len(list) == 0 {
		return
	}
	d := &phases.Decided{Reasons: make([]phases.Reason, 0, len(list))}
	for _, c := range list {
		if c.value.Verdict.Strength() > d.Verdict.Strength() {
			d.Verdict = c.value.Verdict
		}
		d.Reasons = append(d.Reasons, phases.Reason{
			Subscription: c.hook.Subscription, Verdict: c.value.Verdict, Reason: c.value.Reason, ReasonCode: c.value.ReasonCode, ContributionID: c.id(),
		})
	}
	m.out.Decision = d
}

// reminders keeps the first of one plugin's reminders with one dedupe key. A key does not silence other plugins'
// reminders.
func (m *merger) reminders() {
	list := claims[*phases.Reminder](m, nil)
	if len(list) == 0 {
		return
	}
	type key struct{ plugin, dedupe string }
	seen := map[key]bool{}
	for _, c := range list {
		k := key{c.hook.Plugin, c.value.DedupeKey}
		if k.dedupe != "" && seen[k] {
			m.lose(c.item, c.id(), ReasonDuplicate, charsOf(c.value))
			continue
		}
		seen[k] = true
		m.out.Merged.Reminders = append(m.out.Merged.Reminders, phases.MergedReminder{
			Type: c.value.Type, Attributes: c.value.Attributes, Text: c.value.Text, DedupeKey: c.value.DedupeKey, Owner: c.hook.Subscription,
			ContributionID: c.id(),
		})
	}
}

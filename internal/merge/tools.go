package merge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

// offer is one tool of one bundle.
type offer struct {
	*item
	bundle string
	tool   *phases.Tool
	// kept counts what is left of the bundle; its offers share it.
	kept *int
}

// tools gives each name one owner: the engine, the host, or the first in plan
// order. A tool that loses its name is dropped alone; a bundle is lost with its
// last tool.
func (m *merger) tools() {
	m.checkHostTools()
	bundles := claims[*phases.ToolBundle](m)
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

// checkHostTools tells a host that it has a tool under the engine's name. Nothing
// can be dropped of it: the engine keeps its own tool back as long as it is there.
func (m *merger) checkHostTools() {
	if !slices.Contains(m.state.HostTools, phases.RequestTools) {
		return
	}
	m.diagnose(len(m.replies), phases.Diagnostic{
		Code: string(phases.CauseConflict), Severity: phases.SeverityWarning, Slot: phases.RequestTools,
		Message: fmt.Sprintf("tool %q belongs to %s: the %s has one of that name; until it is renamed, no model can ask for hidden tools", phases.RequestTools, phases.OwnerBuiltin, phases.OwnerHost),
	})
}

// loseTools drops tools whose name belongs to owner. Each has a row of its own
// under its name, because its bundle may stay.
func (m *merger) loseTools(losers []offer, owner string) {
	for _, o := range losers {
		m.leaveOut(o.item, o.tool.Name, string(phases.CauseConflict), 0)
		m.conflict(o.item, owner, o.tool.Name, "tool")
		if *o.kept--; *o.kept == 0 {
			o.lost = true
		}
	}
}

// mergedTool gives a tool its canonical schema and its hash.
func mergedTool(o offer) phases.MergedTool {
	def := *o.tool
	def.InputSchema = canonicalSchema(def.InputSchema)
	out := phases.MergedTool{Name: def.Name, BundleID: o.bundle, Owner: o.hook.Plugin, Definition: def}
	if b, err := toolEncoder.Append(nil, &def); err == nil { // Admit encoded the same parts
		out.Hash = digest.Fingerprint(o.hook.Key, b)
	}
	return out
}

// canonicalSchema makes equal schemas equal bytes, so that providers' caches and
// fingerprints do not depend on how a plugin spells them.
func canonicalSchema(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	out, err := digest.JSON(nil, raw)
	if err != nil {
		return raw // cannot happen behind Admit
	}
	return out
}

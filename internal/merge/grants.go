package merge

import (
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
)

// checkGrants refuses what the operator did not grant: the kind, the domain,
// and the slot that the contribution wants.
func checkGrants(h *Hook, c phases.Contribution) (Drop, bool) {
	g := h.Grants
	if g == nil {
		g = &phases.Grants{}
	}
	if k := c.Kind(); k.NeedsGrant() && !phases.Allows(g.Contribute, string(k)) {
		return forbidden(h, "", "may not contribute %s", k)
	}
	if p, ok := c.(*phases.Policy); ok {
		// The grant of a policy names its domain, so none is needed beside it.
		if slot := p.Domain + "/" + p.Key; !phases.Allows(g.Policies, slot) {
			return forbidden(h, slot, "may not set policy %q", slot)
		}
		return Drop{}, false
	}
	if d := c.Head().Domain; d != "" && !phases.Allows(g.Domains, d) {
		return forbidden(h, "", "may not speak for domain %q", d)
	}
	switch c := c.(type) {
	case *phases.PromptSection:
		return checkSection(h, g, c)
	case *phases.ToolBundle:
		for i := range c.Tools {
			if name := c.Tools[i].Name; !phases.Allows(g.Tools, name) {
				return forbidden(h, name, "may not offer tool %q", name)
			}
		}
	}
	return Drop{}, false
}

// checkSection checks the grants for a section id. A stable section needs the
// grant for stable ones, which is enough; a row of the compiler's table keeps
// its own stability, so there the word does not matter.
func checkSection(h *Hook, g *phases.Grants, c *phases.PromptSection) (Drop, bool) {
	id := c.SectionID
	_, known := knownTitle(id)
	switch {
	case houseOwned(id):
		return forbidden(h, id, "may not contribute section %q: it belongs to builtin", id)
	case c.Stability == phases.StabilityStable && !known:
		if !names(g.StableSections, id) {
			return forbidden(h, id, "may not contribute section %q as a stable one", id)
		}
	case !names(g.Sections, id) && !names(g.Join, id):
		return forbidden(h, id, "may not contribute section %q", id)
	}
	return Drop{}, false
}

// forbidden words a refusal; the plugin's name comes first.
func forbidden(h *Hook, slot, format string, args ...any) (Drop, bool) {
	msg := fmt.Sprintf("plugin %s "+format, append([]any{h.Plugin}, args...)...)
	return Drop{Cause: phases.CauseForbidden, Slot: slot, Message: msg}, true
}

// ownsSection reports whether the plugin may have the section as its own, and
// not only add to somebody else's.
func (h *Hook) ownsSection(id string) bool {
	return h.Grants != nil && (names(h.Grants.Sections, id) || names(h.Grants.StableSections, id))
}

// joinsSection reports whether the plugin may add to another's section.
func (h *Hook) joinsSection(id string) bool {
	return h.Grants != nil && names(h.Grants.Join, id)
}

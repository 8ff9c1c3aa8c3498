package merge

import "github.com/grapnelhq/grapnel/phases"

// reminders keeps reminders in plan order, and of those of one plugin with one
// dedupe key the first. A key says nothing about other plugins' reminders, or
// one plugin could silence another. Once per epoch is the engine's business.
func (m *merger) reminders() {
	list := claims[*phases.Reminder](m)
	type key struct{ plugin, dedupe string }
	var seen map[key]bool
	for _, c := range list {
		if k := (key{c.hook.Plugin, c.value.DedupeKey}); k.dedupe != "" && len(list) > 1 {
			if seen[k] {
				m.lose(c.item, c.id(), ReasonDuplicate, charsOf(c.value))
				continue
			}
			if seen == nil {
				seen = make(map[key]bool, len(list))
			}
			seen[k] = true
		}
		m.out.Merged.Reminders = append(m.out.Merged.Reminders, phases.MergedReminder{
			Type: c.value.Type, Attributes: c.value.Attributes, Text: c.value.Text, DedupeKey: c.value.DedupeKey, Owner: c.hook.Subscription,
			ContributionID: c.id(),
		})
	}
}

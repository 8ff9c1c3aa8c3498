package merge

import "github.com/grapnelhq/grapnel/phases"

// decisions takes the strongest verdict (deny > ask > allow) and keeps the
// reasons of all, in plan order.
func (m *merger) decisions() {
	list := claims[*phases.Decision](m)
	if len(list) == 0 {
		return
	}
	d := &phases.Decided{Reasons: make([]phases.Reason, 0, len(list))}
	for _, c := range list {
		if c.value.Verdict.Strength() > d.Verdict.Strength() {
			d.Verdict = c.value.Verdict
		}
		d.Reasons = append(d.Reasons, phases.Reason{
			Subscription: c.hook.Subscription, Verdict: c.value.Verdict, Reason: c.value.Reason, ReasonCode: c.value.ReasonCode,
		})
	}
	m.out.Decision = d
}

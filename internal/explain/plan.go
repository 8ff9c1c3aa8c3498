package explain

import (
	"cmp"
	"fmt"

	"github.com/grapnelhq/grapnel/internal/engine/plan"
	"github.com/grapnelhq/grapnel/phases"
)

// Planned explains a subscription that the record does not have and a plan has: it is off, or its phase was not
// dispatched. It returns nil for any other id.
func (r *Record) Planned(phs []plan.PhaseView, id string) *Result {
	why := ""
	for i := range phs {
		why = cmp.Or(whyNotRun(&phs[i], id), why)
	}
	if why == "" {
		return nil
	}
	e := r.result(id, OfSubscription)
	e.Why = why
	r.addPlugins(e, []string{PluginOf(id)})
	return e
}

// whyNotRun says why a subscription of a phase is not in a record; empty if the phase does not have it.
func whyNotRun(ph *plan.PhaseView, id string) string {
	for _, off := range ph.Off {
		if off.Subscription == id {
			return fmt.Sprintf("it is switched off (%s)", off.Reason)
		}
	}
	for _, stage := range ph.Stages {
		for _, layer := range stage.Layers {
			for i := range layer {
				if layer[i].Subscription != id {
					continue
				}
				when := ""
				if row, ok := phases.Standard().Lookup(ph.Phase); ok {
					when = " (" + row.When + ")"
				}
				return fmt.Sprintf("it is a hook of %s%s; the records of this turn have no run of it", ph.Phase, when)
			}
		}
	}
	return ""
}

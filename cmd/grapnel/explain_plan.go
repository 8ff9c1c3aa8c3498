package main

import (
	"context"

	"github.com/grapnelhq/grapnel/internal/explain"
	"github.com/grapnelhq/grapnel/runtime"
)

// explainPlanned explains an id with what plugins say of their hooks, or a subscription that only the configuration's plan
// has. It returns nil for any other id, and where the plugins cannot be asked.
func (a *app) explainPlanned(ctx context.Context, r *record, id string) *explain.Result {
	cfg, _, err := a.loadConfig()
	if err != nil {
		return nil
	}
	var e *explain.Result
	err = a.withEngine(ctx, cfg, runtime.Options{}, func(_ context.Context, eng *runtime.Engine) error {
		r.Know(cfg, eng.Descriptions())
		if e = r.About(id); e == nil {
			e = r.Planned(eng.Plan("").Phases, id)
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return e
}

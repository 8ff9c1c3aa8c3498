package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// planCommand shows what would run, without running anything but the plugins'
// starts.
func (a *app) planCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "plan [PHASE]",
		Short: "Show which hooks run, in which order, under which policies and budgets",
		Long: "Plan starts the plugins and prints, phase by phase, which subscriptions run: stages in\n" +
			"order, layers inside a stage, and inside a layer by priority. Where a plugin's timeout\n" +
			"was lowered to the phase's budget both are shown, and beside what a hook needs to see\n" +
			"what its plugin is not granted. Subscriptions that are off stand below with the reason. Phases without any are left away unless PHASE names one.",
		Args:              atMost(1, "plan takes at most one PHASE"),
		ValidArgsFunction: completePhases,
		RunE: func(c *cobra.Command, args []string) error {
			var phase phases.Phase
			if len(args) == 1 {
				phase = phases.Phase(args[0])
				if _, ok := phases.Standard().Lookup(phase); !ok {
					return unknownPhase(phase)
				}
			}
			return a.plan(c.Context(), phase)
		},
	}
}

// plan takes a copy of the plan out of the engine and prints when that is closed.
func (a *app) plan(ctx context.Context, phase phases.Phase) error {
	cfg, from, err := a.loadConfig()
	if err != nil {
		return err
	}
	var doc plan.Document
	var rows []phases.PluginRow
	err = a.withEngine(ctx, cfg, runtime.Options{}, func(_ context.Context, eng *runtime.Engine) error {
		doc, rows = eng.Plan(phase), eng.Plugins()
		return nil
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(doc)
	}
	a.printPlan(doc, rows, phase != "", from)
	return nil
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/cond"
	"github.com/grapnelhq/grapnel/internal/engine/plan"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/cedar"
	"github.com/grapnelhq/grapnel/plugins/scripted"
)

// inspect reads the file for checks; see [config.Loader.Inspect].
func inspect(from origin) (*config.Config, error) {
	if from.Path == "" {
		return config.Parse(defaults, from.name())
	}
	return config.Loader{}.Inspect(from.Path)
}

// checkConfiguration finds what the file alone tells beyond its own rules, all of it: names of built-in plugins, the
// configuration of scripted ones, and, of a file that keeps its rules, what the planner says of hooks that
// are known without starting a plugin.
func checkConfiguration(ctx context.Context, cfg *config.Config, keepsRules bool) error {
	launches, err := firstParty().Launches()
	if err != nil {
		return unable(err)
	}
	var all []error
	plugins := make([]plan.Plugin, len(cfg.Plugins))
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		plugins[i] = plan.Plugin{Name: p.Name, Grants: p.Grants, Overrides: p.Subscriptions, Command: p.Command != ""}
		if _, known := launches[p.Builtin]; p.Builtin != "" && !known {
			all = append(all, cfg.PlanError(p.Name, "builtin", fmt.Sprintf("unknown built-in plugin %q%s", p.Builtin, suggest.DidYouMean(p.Builtin, slices.Sorted(maps.Keys(launches)))), nil))
		}
		if p.Builtin == "scripted" { // its configuration is all that it is
			d, err := scripted.New().Configure(ctx, &phases.Configuration{Config: p.Config})
			if rejected, ok := errors.AsType[*phases.ConfigError](err); ok {
				all = append(append(all, cfg.ErrorAt(p.Name, rejected)), conditionsOf(cfg, p)...)
			} else if err == nil {
				plugins[i].Description = d
			}
		}
		if plugins[i].Description == nil {
			plugins[i].Overrides = withoutGuards(p)
		}
	}
	if !keepsRules {
		return errors.Join(all...)
	}
	budgets := map[phases.Phase]plan.Budget{}
	for phase, b := range cfg.Budgets.Phases {
		budgets[phase] = plan.Budget{Time: b.Time.D(), Require: b.Require}
	}
	if _, _, err := plan.Build(plugins, plan.Options{Table: phases.Standard(), Budgets: budgets}); err != nil {
		all = append(all, plan.Located(err, cfg.PlanError))
	}
	return errors.Join(all...)
}

// ruleMistakes are the mistakes in the rules of plugins, by name. The plugins have the rules of before in force, or none.
func ruleMistakes(ctx context.Context, cfg *config.Config) map[string]*phases.ConfigError {
	found := map[string]*phases.ConfigError{}
	for i := range cfg.Plugins {
		if p := &cfg.Plugins[i]; p.Builtin == "cedar" {
			_, err := cedar.New().Configure(ctx, &phases.Configuration{Config: p.Config})
			if rejected, ok := errors.AsType[*phases.ConfigError](err); ok {
				found[p.Name] = rejected
			}
		}
	}
	return found
}

// checkConditions checks the conditions of hooks whose phase is not known: each must be one of some phase, and the mistake
// is that of the phase which gets furthest. The planner checks the others, and these once their plugins have described them.
func checkConditions(cfg *config.Config) error {
	var all []error
	for i := range cfg.Plugins {
		if p := &cfg.Plugins[i]; p.Builtin != "scripted" { // which is described without a process
			all = append(all, conditionsOf(cfg, p)...)
		}
	}
	return errors.Join(all...)
}

func conditionsOf(cfg *config.Config, p *config.Plugin) (all []error) {
	for _, id := range slices.Sorted(maps.Keys(p.Subscriptions)) {
		o := p.Subscriptions[id]
		if o.When == nil || o.Phase != nil {
			continue
		}
		if wrong := furthestMistake(*o.When); wrong != nil {
			all = append(all, cfg.PlanError(p.Name, "subscriptions."+id+".when", fmt.Sprintf("%s: when: %v", id, wrong), wrong))
		}
	}
	return all
}

// furthestMistake returns nil if the condition is one of some phase.
func furthestMistake(when string) (furthest *cond.Error) {
	for _, row := range phases.Standard().Rows() {
		_, err := cond.Compile(when, row, nil)
		mistake, wrong := errors.AsType[*cond.Error](err)
		if !wrong {
			return nil
		}
		if furthest == nil || cmp.Or(cmp.Compare(mistake.Line, furthest.Line), cmp.Compare(mistake.Column, furthest.Column)) > 0 {
			furthest = mistake
		}
	}
	return furthest
}

// withoutGuards are the overrides of a plugin that is not described here. A built-in one is when it runs: then the phases
// of its guards are known.
func withoutGuards(p *config.Plugin) map[string]phases.Override {
	overrides := maps.Clone(p.Subscriptions)
	for id, o := range overrides {
		if o.Phase == nil && p.Builtin != "" {
			o.OnFailure = nil
			overrides[id] = o
		}
	}
	return overrides
}

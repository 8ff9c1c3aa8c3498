package main

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

func (a *app) configCommand() *cobra.Command {
	return group("config", "The configuration: what is in force and why", a.configCheckCommand())
}

// checked is the JSON of config check.
type checked struct {
	// Source is the file, or "built-in defaults"; Why says who named it.
	Source string `json:"source"`
	Why    string `json:"why"`
	// Offline says that no plugin was started: what only they know is absent.
	Offline bool             `json:"offline"`
	Pin     string           `json:"pin"`
	Store   string           `json:"store"`
	Plugins []checkedPlugin  `json:"plugins"`
	Budgets checkedBudgets   `json:"budgets"`
	Lowered []loweredTimeout `json:"lowered"`
	Off     []offHook        `json:"off"`
	// Diagnostics are the planner's.
	Diagnostics []phases.Diagnostic `json:"diagnostics"`
}

// checkedPlugin is one declared plugin.
type checkedPlugin struct {
	Plugin string `json:"plugin"`
	// Builtin or Program says what is started; Program is absolute.
	Builtin string `json:"builtin"`
	Program string `json:"program"`
	// SHA256 is the checksum in the configuration; empty means unpinned.
	SHA256  string        `json:"sha256"`
	Grants  phases.Grants `json:"grants"`
	PassEnv []string      `json:"pass_env"`
	SetEnv  []string      `json:"set_env"`
	// Overrides are the operator's words, by subscription.
	Overrides map[string]phases.Override `json:"overrides"`
	// Status is how it started; null offline.
	Status *phases.PluginRow `json:"status"`
}

// checkedBudgets are the bounds of turns and of every phase.
type checkedBudgets struct {
	TurnMS    float64         `json:"turn_ms"`
	TurnChars int             `json:"turn_chars"`
	Phases    []checkedBudget `json:"phases"`
}

// checkedBudget is one phase's.
type checkedBudget struct {
	Phase phases.Phase `json:"phase"`
	// BudgetMS is in force; DefaultMS is without the configuration.
	BudgetMS  float64  `json:"budget_ms"`
	DefaultMS float64  `json:"default_ms"`
	Require   []string `json:"require"`
}

// loweredTimeout is a plugin's proposal above its phase's budget.
type loweredTimeout struct {
	Phase             phases.Phase `json:"phase"`
	Subscription      string       `json:"subscription"`
	ProposedTimeoutMS float64      `json:"proposed_timeout_ms"`
	TimeoutMS         float64      `json:"timeout_ms"`
}

// offHook is a subscription that does not run.
type offHook struct {
	Phase        phases.Phase `json:"phase"`
	Subscription string       `json:"subscription"`
	Reason       string       `json:"reason"`
}

func (a *app) configCheckCommand() *cobra.Command {
	var offline bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration, and show what is in force and where it comes from",
		Long: "Check reads the configuration, starts its plugins, and plans. It shows which file is in\n" +
			"force and why, each plugin with its program, checksum, grants and overrides, budgets,\n" +
			"timeouts that were lowered, and subscriptions that are off. Mistakes are shown with\n" +
			"their place in the file, and exit code 2. A plugin that does not start is a state.",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.configCheck(c.Context(), offline) },
	}
	c.Flags().BoolVar(&offline, "offline", false, "do not start the plugins: check the file alone")
	return c
}

func (a *app) configCheck(ctx context.Context, offline bool) error {
	cfg, from, err := a.loadConfig()
	if err != nil {
		return err
	}
	result := declared(cfg, from)
	result.Offline = offline
	if !offline {
		err := a.withEngine(ctx, cfg, runtime.Options{}, func(_ context.Context, eng *runtime.Engine) error {
			result.addRunning(eng)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(result)
	}
	a.printChecked(result)
	return nil
}

// declared is what the file alone says.
func declared(cfg *config.Config, from origin) *checked {
	r := &checked{
		Source: from.name(), Why: from.Why, Pin: cfg.Pin, Store: cfg.Store.String(),
		Plugins: []checkedPlugin{}, Lowered: []loweredTimeout{}, Off: []offHook{}, Diagnostics: []phases.Diagnostic{},
	}
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		overrides := p.Subscriptions
		if overrides == nil {
			overrides = map[string]phases.Override{}
		}
		r.Plugins = append(r.Plugins, checkedPlugin{
			Plugin: p.Name, Builtin: p.Builtin, Program: p.Path, SHA256: p.SHA256, Grants: p.Grants, Overrides: overrides,
			PassEnv: append([]string{}, p.Env.Pass...), SetEnv: append([]string{}, slices.Sorted(maps.Keys(p.Env.Set))...),
		})
	}
	r.Budgets = budgetsOf(cfg)
	return r
}

// budgetsOf are the bounds in force, with the defaults filled in.
func budgetsOf(cfg *config.Config) checkedBudgets {
	turn := cfg.Budgets.Turn
	b := checkedBudgets{TurnMS: milliseconds(turn.Time.D()), TurnChars: turn.Chars, Phases: []checkedBudget{}}
	if turn.Time == 0 {
		b.TurnMS = milliseconds(config.DefaultTurnTime)
	}
	if turn.Chars == 0 {
		b.TurnChars = config.DefaultTurnChars
	}
	for _, row := range phases.Standard().Rows() {
		set := cfg.Budgets.Phases[row.Phase]
		one := checkedBudget{
			Phase: row.Phase, BudgetMS: milliseconds(row.Budget), DefaultMS: milliseconds(row.Budget), Require: append([]string{}, set.Require...),
		}
		if set.Time > 0 {
			one.BudgetMS = milliseconds(set.Time.D())
		}
		b.Phases = append(b.Phases, one)
	}
	return b
}

// addRunning adds what only the started plugins know.
func (r *checked) addRunning(eng *runtime.Engine) {
	for _, row := range eng.Plugins() {
		for i := range r.Plugins {
			if r.Plugins[i].Plugin == row.Plugin {
				r.Plugins[i].Status = &row
			}
		}
	}
	r.Diagnostics = append(r.Diagnostics, eng.Diagnostics()...)
	for _, ph := range plan.View(eng.Plan(), "").Phases {
		for _, off := range ph.Off {
			r.Off = append(r.Off, offHook{ph.Phase, off.Subscription, off.Reason})
		}
		for _, stage := range ph.Stages {
			for _, layer := range stage.Layers {
				r.addLowered(ph.Phase, layer)
			}
		}
	}
}

func (r *checked) addLowered(phase phases.Phase, layer []plan.SubscriptionView) {
	for i := range layer {
		if s := &layer[i]; s.TimeoutMS < s.ProposedTimeoutMS {
			r.Lowered = append(r.Lowered, loweredTimeout{phase, s.Subscription, s.ProposedTimeoutMS, s.TimeoutMS})
		}
	}
}

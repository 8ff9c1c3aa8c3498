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

// configCommand holds what is about the operator's file as a whole.
func (a *app) configCommand() *cobra.Command {
	return group("config", "The configuration: what is in force and why", a.configCheckCommand(), a.configReloadCommand())
}

// checked is the JSON of config check.
type checked struct {
	Source  string `json:"source"  jsonschema:"the file, or built-in defaults"`
	Why     string `json:"why"     jsonschema:"who named the file, or why there is none"`
	Offline bool   `json:"offline" jsonschema:"no plugin was started: what only they know is absent"`
	Pin     string `json:"pin"     jsonschema:"required where commands need a checksum"`
	Store   string `json:"store"   jsonschema:"the store; *** where it comes from the environment"`

	Plugins     []checkedPlugin     `json:"plugins"     jsonschema:"the declared plugins, in the order of the file"`
	Budgets     checkedBudgets      `json:"budgets"     jsonschema:"the bounds in force"`
	Lowered     []loweredTimeout    `json:"lowered"     jsonschema:"timeouts that were lowered to the budget of their phase"`
	Off         []offHook           `json:"off"         jsonschema:"subscriptions that do not run"`
	Diagnostics []phases.Diagnostic `json:"diagnostics" jsonschema:"what the planner has to say"`
}

// checkedPlugin is one declared plugin.
type checkedPlugin struct {
	Plugin  string        `json:"plugin"   jsonschema:"the operator's name for it"`
	Builtin string        `json:"builtin"  jsonschema:"the built-in plugin that is started"`
	Program string        `json:"program"  jsonschema:"the absolute path of the program that is started"`
	SHA256  string        `json:"sha256"   jsonschema:"the checksum in the configuration; empty means unpinned"`
	Grants  phases.Grants `json:"grants"   jsonschema:"what it may do"`
	PassEnv []string      `json:"pass_env" jsonschema:"variables that are handed on"`
	SetEnv  []string      `json:"set_env"  jsonschema:"names of variables that are set"`

	Sandbox     string `json:"sandbox"      jsonschema:"the tier that sandbox asks for, or grants of single places: T0, T1 or T2"`
	SandboxKey  string `json:"sandbox_key"  jsonschema:"the key that asks for it, such as sandbox or grants.read"`
	TLS         bool   `json:"tls"          jsonschema:"host and plugin prove with certificates who they are"`
	MemoryLimit int64  `json:"memory_limit" jsonschema:"the bytes that its processes may hold; 0 is unbounded"`

	Overrides map[string]phases.Override `json:"overrides" jsonschema:"the operator's changes, by subscription"`
	Status    *phases.PluginRow          `json:"status"    jsonschema:"how it started; null offline"`
}

// checkedBudgets are the bounds of turns and of every phase.
type checkedBudgets struct {
	TurnMS    float64         `json:"turn_ms"    jsonschema:"wall time of all blocking phases of a turn together"`
	TurnChars int             `json:"turn_chars" jsonschema:"text of all hook sections together"`
	Phases    []checkedBudget `json:"phases"     jsonschema:"one entry per phase"`
}

// checkedBudget is one phase's.
type checkedBudget struct {
	Phase     phases.Phase `json:"phase"`
	BudgetMS  float64      `json:"budget_ms"  jsonschema:"the time in force; 0 in the background"`
	DefaultMS float64      `json:"default_ms" jsonschema:"the time without the configuration"`
	Require   []string     `json:"require"    jsonschema:"subscriptions that must have completed"`
}

// loweredTimeout is a plugin's proposal above its phase's budget.
type loweredTimeout struct {
	Phase             phases.Phase `json:"phase"`
	Subscription      string       `json:"subscription"`
	ProposedTimeoutMS float64      `json:"proposed_timeout_ms" jsonschema:"what the plugin proposes"`
	TimeoutMS         float64      `json:"timeout_ms"          jsonschema:"what is in force"`
}

// offHook is a subscription that does not run.
type offHook struct {
	Phase        phases.Phase `json:"phase"`
	Subscription string       `json:"subscription"`
	Reason       string       `json:"reason"       jsonschema:"operator, not_granted or needs_not_granted"`
}

// configCheckCommand starts the plugins unless it is told not to: conditions,
// dependencies and a plugin's own configuration can only be checked with them.
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

// configCheck succeeds when nobody made a mistake. A plugin that is down is no
// mistake of the file, so it is shown and changes nothing about the exit code.
func (a *app) configCheck(ctx context.Context, offline bool) error {
	cfg, from, err := a.loadConfig()
	if err != nil {
		return err
	}
	result := declared(cfg, from)
	result.Offline = offline
	result.Diagnostics = append(result.Diagnostics, runtime.StoreExposed(cfg)...)
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

// declared is what the file alone says. Values from the environment stay hidden.
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
		tier, key := p.Tier()
		r.Plugins = append(r.Plugins, checkedPlugin{
			Sandbox: tier, SandboxKey: key, TLS: p.TLS, MemoryLimit: int64(p.Limits.Memory),
			Plugin: p.Name, Builtin: p.Builtin, Program: p.Path, SHA256: p.SHA256, Grants: p.Grants, Overrides: overrides,
			PassEnv: append([]string{}, p.Env.Pass...), SetEnv: append([]string{}, slices.Sorted(maps.Keys(p.Env.Set))...),
		})
	}
	r.Budgets = budgetsOf(cfg)
	return r
}

// budgetsOf are the bounds in force, with the defaults filled in: nobody should
// have to know them to read the result. Phases in the background have none.
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

// addRunning adds what only the started plugins know: states, and the plan that
// their descriptions and the operator's words come to.
func (r *checked) addRunning(eng *runtime.Engine) {
	for _, row := range eng.Plugins() {
		for i := range r.Plugins {
			if r.Plugins[i].Plugin == row.Plugin {
				r.Plugins[i].Status = &row
			}
		}
	}
	r.Diagnostics = append(r.Diagnostics, eng.Diagnostics()...)
	for _, ph := range eng.Plan("").Phases {
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

// addLowered notes the timeouts of one layer that are not as proposed. They are
// no mistake, but somebody who wonders about a timeout should find them.
func (r *checked) addLowered(phase phases.Phase, layer []plan.SubscriptionView) {
	for i := range layer {
		if s := &layer[i]; s.TimeoutMS < s.ProposedTimeoutMS {
			r.Lowered = append(r.Lowered, loweredTimeout{phase, s.Subscription, s.ProposedTimeoutMS, s.TimeoutMS})
		}
	}
}

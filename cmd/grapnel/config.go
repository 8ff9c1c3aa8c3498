package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // for what is offered
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/explain"
	"github.com/grapnelhq/grapnel/internal/persona"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

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
	Mistakes    []gateway.Mistake   `json:"mistakes"    jsonschema:"what is wrong in the file, each with its place; the message says what to do. No plugin is listed then"`
}

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

type checkedBudgets struct {
	TurnMS    float64         `json:"turn_ms"    jsonschema:"wall time of all blocking phases of a turn together"`
	TurnChars int             `json:"turn_chars" jsonschema:"text of all hook sections together"`
	Phases    []checkedBudget `json:"phases"     jsonschema:"one entry per phase"`
}

type checkedBudget struct {
	Phase     phases.Phase `json:"phase"`
	BudgetMS  float64      `json:"budget_ms"  jsonschema:"the time in force; 0 in the background"`
	DefaultMS float64      `json:"default_ms" jsonschema:"the time without the configuration"`
	Require   []string     `json:"require"    jsonschema:"subscriptions that must have completed"`
}

type loweredTimeout struct {
	Phase             phases.Phase `json:"phase"`
	Subscription      string       `json:"subscription"`
	ProposedTimeoutMS float64      `json:"proposed_timeout_ms" jsonschema:"what the plugin proposes"`
	TimeoutMS         float64      `json:"timeout_ms"          jsonschema:"what is in force"`
}

type offHook struct {
	Phase        phases.Phase `json:"phase"`
	Subscription string       `json:"subscription"`
	Reason       string       `json:"reason"       jsonschema:"operator, not_granted or needs_not_granted"`
}

type configCheckFlags struct {
	Offline bool `flag:"offline" usage:"do not start the plugins: check the file alone"`
}

// configCheck reports a plugin that does not start as an error, behind the result. Conditions, dependencies and plugins' own
// configuration can only be checked with the plugins running.
func (a *app) configCheck(ctx context.Context, f *configCheckFlags, _ []string) error {
	offline := f.Offline
	from, err := a.configOrigin()
	if err != nil {
		return err
	}
	cfg, err := inspect(from)
	var conditions error
	if cfg != nil {
		err, conditions = errors.Join(err, checkConfiguration(ctx, cfg, err == nil)), checkConditions(cfg)
	}
	if offline || err != nil {
		err = errors.Join(err, conditions)
	}
	if err != nil {
		return a.mistakes(from, offline, err)
	}
	result := declared(cfg, from)
	result.Offline = offline
	result.Diagnostics = append(result.Diagnostics, pool.StoreExposed(cfg)...)
	var rows []phases.PluginRow
	if !offline {
		err := a.withEngine(ctx, cfg, runtime.Options{}, func(_ context.Context, eng *runtime.Engine) error {
			result.addRunning(eng)
			rows = eng.Plugins()
			return nil
		})
		if err = cmp.Or(err, conditions); err != nil { // the plan's mistakes are of the phases that plugins describe
			return a.mistakes(from, offline, err)
		}
	}
	if err := a.print(result, func() { a.printChecked(result) }); err != nil {
		return err
	}
	return downError(rows)
}

// mistakes makes the result of an error that has places in the file; others stay errors.
func (a *app) mistakes(from origin, offline bool, err error) error {
	found := config.Mistakes(err)
	switch {
	case len(found) == 0:
		return err
	case !a.JSON:
		return found
	}
	result := declared(&config.Config{}, from)
	result.Offline, result.Mistakes = offline, gateway.Mistakes(found)
	return errors.Join(a.printJSON(result), &exitError{code: exitUsage})
}

// declared is what the file says. Values from the environment stay hidden.
func declared(cfg *config.Config, from origin) *checked {
	r := &checked{
		Source: from.name(), Why: from.Why, Pin: cfg.Pin, Store: cfg.Store.String(),
		Plugins: []checkedPlugin{}, Lowered: []loweredTimeout{}, Off: []offHook{}, Diagnostics: []phases.Diagnostic{}, Mistakes: []gateway.Mistake{},
	}
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		overrides := map[string]phases.Override{}
		maps.Copy(overrides, p.Subscriptions)
		tier, key := p.Tier()
		program := p.Path
		if p.Absent() != nil {
			program = p.Command
		}
		r.Plugins = append(r.Plugins, checkedPlugin{
			Sandbox: tier, SandboxKey: key, TLS: p.TLS, MemoryLimit: int64(p.Limits.Memory),
			Plugin: p.Name, Builtin: p.Builtin, Program: program, SHA256: p.SHA256, Grants: p.Grants, Overrides: overrides,
			PassEnv: append([]string{}, p.Env.Pass...), SetEnv: append([]string{}, slices.Sorted(maps.Keys(p.Env.Set))...),
		})
	}
	turn := cfg.Budgets.Turn
	r.Budgets.TurnMS = milliseconds(cmp.Or(turn.Time.D(), config.DefaultTurnTime))
	r.Budgets.TurnChars = cmp.Or(turn.Chars, config.DefaultTurnChars)
	for _, row := range phases.Standard().Rows() {
		set := cfg.Budgets.Phases[row.Phase]
		r.Budgets.Phases = append(r.Budgets.Phases, checkedBudget{
			row.Phase, milliseconds(cmp.Or(set.Time.D(), row.Budget)), milliseconds(row.Budget), append([]string{}, set.Require...),
		})
	}
	return r
}

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
				for i := range layer {
					if s := &layer[i]; s.TimeoutMS < s.ProposedTimeoutMS {
						r.Lowered = append(r.Lowered, loweredTimeout{ph.Phase, s.Subscription, s.ProposedTimeoutMS, s.TimeoutMS})
					}
				}
			}
		}
	}
}

type reloadResult struct {
	Target string `json:"target" jsonschema:"where the gateway is called"`
	gateway.Reload
}

func (a *app) configReload(ctx context.Context, f *reachFlags, _ []string) error {
	var result reloadResult
	var err error
	if result.Target, err = f.ask(ctx, askTime, "config/reload", nil, &result.Reload); err != nil {
		return err
	}
	err = a.print(result, func() {
		if result.OK {
			a.printf("%s\n", reloadedText(&result.Reload))
		}
	})
	switch {
	case err != nil || result.OK:
		return err
	case a.JSON:
		return answerNo()
	}
	return refused(fmt.Errorf("nothing was changed, what was in force stays: %s", strings.TrimSpace(reloadError(&result.Reload))))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (a *app) printChecked(r *checked) {
	a.printf("%s", rule("configuration"))
	a.printf("%s (%s)\n", clean(r.Source), clean(r.Why))
	if r.Pin != "" {
		a.println("checksums are", r.Pin)
	}
	if r.Store != "" {
		a.println("store", clean(r.Store))
	}
	for i := range r.Plugins {
		a.printCheckedPlugin(&r.Plugins[i])
	}
	a.printf("\na turn has %s ms and %s characters\n", words.Millis(r.Budgets.TurnMS), text.Thousands(r.Budgets.TurnChars))
	t := newTable("phases with a budget of their own", "phase|>budget ms|>default ms|requires")
	for _, p := range r.Budgets.Phases {
		if p.BudgetMS != p.DefaultMS || len(p.Require) > 0 {
			t.add(p.Phase, p.BudgetMS, p.DefaultMS, strings.Join(p.Require, ", "))
		}
	}
	a.printTable(t)
	printList(a, "timeouts that were lowered to the budget of their phase", "subscription|phase|>proposed ms|>timeout ms", r.Lowered, func(l *loweredTimeout) cells {
		return cells{l.Subscription, l.Phase, l.ProposedTimeoutMS, l.TimeoutMS}
	})
	printList(a, "subscriptions that are off", "subscription|phase|reason", r.Off, func(o *offHook) cells { return cells{o.Subscription, o.Phase, o.Reason} })
	a.printDiagnostics(r.Diagnostics)
	switch {
	case r.Offline:
		a.println("\nthe file has no mistakes; the plugins were not asked (--offline)")
	case slices.ContainsFunc(r.Plugins, func(p checkedPlugin) bool { return p.Status != nil && p.Status.State != phases.PluginReady }):
		a.println("\nthe configuration has no mistakes, but not every plugin started")
	default:
		a.println("\nthe configuration has no mistakes")
	}
}

func (a *app) printCheckedPlugin(p *checkedPlugin) {
	a.printf("\nplugin %s\n", clean(p.Plugin))
	t := newTable("", "")
	if p.Builtin != "" {
		t.add("program", "built in: "+p.Builtin)
	} else if p.Program != "" {
		t.add("program", p.Program)
		t.add("checksum", cmp.Or(words.If(p.SHA256 != "", "pinned "+shortSum(p.SHA256)), "unpinned; see: grapnel plugin pin"))
	}
	if s := p.Status; s != nil {
		t.add("state", string(s.State)+words.If(s.Version != "", ", version "+s.Version)+words.If(s.Code != "", ": "+explain.Detail(s)))
	}
	t.addSome("sandbox", words.If(p.Sandbox != "T0", p.Sandbox+", by "+p.SandboxKey))
	if s := p.Status; s != nil {
		for _, lack := range s.TierLacks {
			t.add("sandbox lacks", lack)
		}
		for _, path := range s.AbsentPaths {
			t.add("not granted", path+" was not there when it started")
		}
	}
	t.addSome("connection", words.If(p.TLS, "with certificates"))
	t.addSome("memory", words.If(p.MemoryLimit > 0, "at most "+config.Size(p.MemoryLimit).String()))
	g := &p.Grants
	for _, row := range []struct {
		name   string
		values []string
	}{ // in the order of the configuration's documentation
		{"may contribute", g.Contribute},
		{"may write sections", g.Sections},
		{"may write stable sections", g.StableSections},
		{"may join sections", g.Join},
		{"may set policies", g.Policies},
		{"may speak for domains", g.Domains},
		{"may offer tools", g.Tools},
		{"may call host services", g.Host},
		{"may read", g.Read},
		{"may write", g.Write},
		{"may reach", g.Net},
		{"may see", g.See},
		{"environment", p.PassEnv},
		{"environment set", p.SetEnv},
	} {
		t.addSome(row.name, strings.Join(row.values, ", "))
	}
	for _, id := range slices.Sorted(maps.Keys(p.Overrides)) {
		data, _ := encodeJSON(p.Overrides[id]) // plain values
		t.add("override "+id, strings.TrimSuffix(strings.TrimPrefix(strings.Join(strings.Fields(string(data)), " "), "{ "), " }"))
	}
	a.printTable(t)
}

type initFlags struct {
	Persona string `flag:"persona" usage:"also prepare the persona directory {DIR}"`
}

type initialised struct {
	Created []string `json:"created"`
	Kept    []string `json:"kept"`
}

func (a *app) initialise(_ context.Context, f *initFlags, _ []string) error {
	path, err := a.configPlace()
	if err != nil {
		return err
	}
	result := initialised{Created: []string{}, Kept: []string{}}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return unable(err)
	}
	switch err := createNew(path, firstConfig()); {
	case errors.Is(err, fs.ErrExist):
		result.Kept = append(result.Kept, path)
	case err != nil:
		return unable(err)
	default:
		result.Created = append(result.Created, path)
	}
	if f.Persona != "" {
		dir, err := filepath.Abs(f.Persona)
		if err != nil {
			return unable(err)
		}
		created, kept, err := persona.Seed(dir)
		if err != nil {
			return unable(err)
		}
		result.Created, result.Kept = append(result.Created, created...), append(result.Kept, kept...)
	}
	return a.print(result, func() {
		for _, p := range result.Created {
			a.println("created", p)
		}
		for _, p := range result.Kept {
			a.println("kept   ", p)
		}
	})
}

// configPlace is where the configuration is, or is to be.
func (a *app) configPlace() (string, error) {
	if path := cmp.Or(a.Config, os.Getenv("GRAPNEL_CONFIG")); path != "" {
		return filepath.Abs(path)
	}
	path, err := userConfigPath()
	if err != nil {
		return "", usagef("there is no home directory to put the configuration in; name a place with --config: %w", err)
	}
	return path, nil
}

// memoryOffer declares the memory plugin in comments: nobody gets a memory without asking for one.
//
//go:embed memory_offer.yaml
var memoryOffer []byte

// firstConfig is the template with the built-in plugins declared, so that writing a configuration turns nothing off.
func firstConfig() []byte {
	const list = "\nplugins:\n"
	_, declared, _ := bytes.Cut(defaults, []byte(list))
	return bytes.Replace(config.Template(), []byte(list), slices.Concat([]byte(list), declared, memoryOffer), 1)
}

// checkPersona refuses a missing directory, which the engine would accept: it is most likely mistyped.
func checkPersona(dir string) error {
	if dir == "" {
		return nil
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return usagef("--persona %s: there is no such directory; prepare one with: grapnel init --persona %s", dir, dir)
	case err != nil:
		return usagef("--persona %s: %w", dir, unwrapPath(err))
	case !info.IsDir():
		return usagef("--persona %s: is not a directory", dir)
	}
	return nil
}

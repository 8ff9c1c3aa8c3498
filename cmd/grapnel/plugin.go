package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/conformance"
	"github.com/grapnelhq/grapnel/internal/explain"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

type pluginList struct {
	Plugins []phases.PluginRow `json:"plugins"`
}

func (a *app) pluginCommands() *cobra.Command {
	return group("plugin", "Plugins: what they are, one-shot runs, replays, checksums",
		command[pluginList](a, "list", "Start the declared plugins and show the state of each", noArgs(), a.pluginList),
		completing(command[phases.Description](a, "describe NAME", "Start one plugin and show what it says of itself: hooks, tools, configuration",
			exactlyOne("plugin describe needs the NAME of a plugin"), a.pluginDescribe), a.completePlugins),
		command[noResult](a, "serve NAME", "Serve a built-in plugin; only a host starts this", exactlyOne("plugin serve needs the NAME of a built-in plugin"), a.pluginServe),
		completing(command[pinResult](a, "pin [NAME]...", "Show the checksums of the plugins' programs, or write them into the configuration", nil, a.pluginPin), a.completePlugins),
		completing(command[phases.Outcome](a, "run NAME | run -- COMMAND [ARG]...", "Run one phase through one plugin alone", nil, a.pluginRun), a.completePlugins),
		completing(command[phases.ToolResult](a, "call NAME TOOL | call TOOL -- COMMAND [ARG]...", "Call one tool of a plugin, outside of any turn", nil, a.pluginCall), a.completePlugins),
		command[replayed](a, "replay FILE", "Send recorded calls to the plugins again, without host or model, and compare the answers", nil, a.pluginReplay),
		command[conformance.Report](a, "check COMMAND | check -- COMMAND [ARG]...", "Check a plugin of any language against the wire contract", nil, a.pluginCheck),
		command[releaseResult](a, "release NAME", "Have a running gateway start a quarantined plugin again", exactlyOne("plugin release takes the name of one plugin"), a.pluginRelease),
		completing(command[newPlugin](a, "new NAME", "Make a directory with a new plugin: source, test, declaration", exactlyOne("plugin new needs the NAME of the plugin"), a.pluginNew), cobra.NoFileCompletions),
	)
}

// strictFlag makes a command's answer "no" where a plugin is not ready.
type strictFlag struct {
	Strict bool `flag:"strict" usage:"exit with code 1 if a plugin is not ready"`
}

// check returns an error if a plugin is not ready; without the flag it only reports it.
func (f *strictFlag) check(a *app, rows []phases.PluginRow) error {
	err := downError(rows)
	if err != nil && !f.Strict {
		reportf(a.err, "grapnel: %v\n", err)
		return nil
	}
	return err
}

// downError returns an error that names the plugins that are not ready, and why; nil if all are.
func downError(rows []phases.PluginRow) error {
	var bad []string
	for _, p := range notReady(rows) {
		bad = append(bad, fmt.Sprintf("%s is %s: %s", p.Plugin, p.State, explain.Detail(&p)))
	}
	if len(bad) == 0 {
		return nil
	}
	return refused(fmt.Errorf("not every plugin is ready: %s", strings.Join(bad, "; ")))
}

func (a *app) pluginList(ctx context.Context, f *strictFlag, _ []string) error {
	cfg, from, err := a.loadConfig()
	if err != nil {
		return err
	}
	list := pluginList{Plugins: []phases.PluginRow{}}
	err = a.withEngine(ctx, cfg, runtime.Options{}, func(_ context.Context, eng *runtime.Engine) error {
		list.Plugins = append(list.Plugins, eng.Plugins()...)
		return nil
	})
	if err != nil {
		return err
	}
	if err := a.print(list, func() {
		if len(list.Plugins) == 0 {
			a.printf("no plugin is declared (%s)\n", clean(from.name()))
		}
		a.printPlugins("plugins", list.Plugins)
	}); err != nil {
		return err
	}
	return f.check(a, list.Plugins)
}

// pluginServe explains itself to people: serve.Builtins serves plugins before any flag is read.
func (a *app) pluginServe(_ context.Context, _ *noFlags, args []string) error {
	if _, err := firstParty().New(args[0]); err != nil {
		return usagef("%w", err)
	}
	return usagef("plugin serve is started by a host and speaks no human language: declare the plugin with \"builtin: %s\" in the configuration, or try it with: grapnel plugin run %s", args[0], args[0])
}

// alone returns the configuration with one plugin; an undeclared built-in one has no grants.
func alone(cfg *config.Config, from origin, name string) (*config.Config, error) {
	i := slices.IndexFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Name == name })
	switch {
	case i >= 0:
		return onlyPlugin(cfg, cfg.Plugins[i]), nil
	case slices.Contains(firstParty().Names(), name):
		return onlyPlugin(cfg, config.Plugin{Name: name, Builtin: name}), nil
	}
	var known []string
	for i := range cfg.Plugins {
		known = append(known, cfg.Plugins[i].Name)
	}
	known = append(known, firstParty().Names()...)
	see := "grapnel plugin list"
	if from.Path == "" {
		see += "; no configuration file is in force: name one with --config"
	}
	return nil, usagef("no plugin %q is declared%s; see: %s", name, suggest.DidYouMean(name, known), see)
}

// onlyPlugin returns a copy of cfg that declares p alone. It still knows the file's lines, for mistakes.
func onlyPlugin(cfg *config.Config, p config.Plugin) *config.Config {
	own := func(id string) bool { return strings.HasPrefix(id, p.Name+".") }
	only := *cfg
	only.Plugins = []config.Plugin{p}
	only.Budgets.Phases = map[phases.Phase]config.PhaseBudget{}
	for phase, b := range cfg.Budgets.Phases {
		b.Require = slices.DeleteFunc(slices.Clone(b.Require), func(id string) bool { return !own(id) })
		only.Budgets.Phases[phase] = b
	}
	overrides := map[string]phases.Override{}
	for id, o := range p.Subscriptions {
		o.After, o.Before = softened(o.After, own), softened(o.Before, own)
		overrides[id] = o
	}
	only.Plugins[0].Subscriptions = overrides
	return &only
}

func softened(ids *[]string, own func(string) bool) *[]string {
	if ids == nil {
		return nil
	}
	soft := slices.Clone(*ids)
	for i, id := range soft {
		if !own(id) && !strings.HasSuffix(id, "?") {
			soft[i] = id + "?"
		}
	}
	return &soft
}

func started(eng *runtime.Engine, name string) error {
	for _, row := range eng.Plugins() {
		if row.Plugin == name && row.State != phases.PluginReady && row.State != phases.PluginDegraded {
			return unable(fmt.Errorf("the plugin %s did not start: %s: %s", name, row.State, explain.Detail(&row)))
		}
	}
	return nil
}

func (a *app) pluginDescribe(ctx context.Context, _ *noFlags, args []string) error {
	cfg, from, err := a.loadConfig()
	if err != nil {
		return err
	}
	d, err := a.describe(ctx, cfg, from, args[0])
	if err != nil {
		return err
	}
	return a.print(d, func() { a.printDescription(args[0], d) })
}

// A hook that cannot be planned without other plugins takes all of the configuration to be described.
func (a *app) describe(ctx context.Context, cfg *config.Config, from origin, name string) (*phases.Description, error) {
	only, err := alone(cfg, from, name)
	if err != nil {
		return nil, err
	}
	var d *phases.Description
	ask := func(_ context.Context, eng *runtime.Engine) error {
		if err := started(eng, name); err != nil {
			return err
		}
		if d = eng.Descriptions()[name]; d == nil {
			return unable(errors.New("the plugin " + name + " has not described itself"))
		}
		return nil
	}
	err = a.withEngine(ctx, only, runtime.Options{}, ask)
	// A mistake in a plan with one plugin is most likely absent from the plan with all.
	if codeOf(err) == exitUsage && len(cfg.Plugins) > 1 {
		err = a.withEngine(ctx, cfg, runtime.Options{}, ask)
	}
	return d, err
}

func (a *app) printDescription(name string, d *phases.Description) {
	a.printf("%s", rule("plugin "+clean(name)))
	a.printf("%s %s\n", clean(d.Name), clean(d.Version))
	if d.Doc != "" {
		a.println(clean(d.Doc))
	}
	if len(d.Requires) > 0 {
		a.println("requires", clean(strings.Join(d.Requires, ", ")))
	}
	if d.Limits.Concurrency > 0 {
		a.println("takes", d.Limits.Concurrency, "calls at once")
	}
	t := newTable("hooks", "hook|phase|role|kinds|>priority|timeout|when|doc")
	for i := range d.Hooks {
		h := &d.Hooks[i]
		t.add(h.Name, h.Phase, h.Role, joined(h.Kinds), h.Priority, words.If(h.Timeout > 0, h.Timeout.String()), h.When, h.Doc)
	}
	a.printTable(t)
	printList(a, "tools", "tool|description", d.Tools, func(tool *phases.Tool) cells { return cells{tool.Name, tool.Description} })
	if len(d.ConfigSchema) == 0 {
		a.println("\nit takes no configuration")
		return
	}
	a.println("\nJSON Schema of its configuration:")
	if schema, err := encodeJSON(d.ConfigSchema); err == nil {
		a.printf("%s", string(schema))
	}
}

func (a *app) completePlugins(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names := firstParty().Names()
	if cfg, _, err := a.loadConfig(); err == nil {
		for i := range cfg.Plugins {
			names = append(names, cfg.Plugins[i].Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

type releaseResult struct {
	Target string `json:"target" jsonschema:"where the gateway is called"`
	runtime.Released
}

func (a *app) pluginRelease(ctx context.Context, f *reachFlags, args []string) error {
	var result releaseResult
	var err error
	if result.Target, err = f.ask(ctx, askTime, "plugin/release", map[string]any{"plugin": args[0]}, &result.Released); err != nil {
		return err
	}
	r := &result.Released
	return a.answer(r.Up(), result, func() {
		a.printf("the plugin %s %s", clean(r.Plugin), words.If(r.From != r.State || !r.Up(), "was "+string(r.From)+" and "))
		a.printf("%s%s", words.If(!r.Up(), "was started again; now it "), "is "+string(r.State))
		if !r.Up() && r.Code != "" {
			a.printf(": %s (%s)", clean(r.Detail), r.Code)
		}
		a.printf("%s\n", words.If(len(r.Breakers) > 0, "; breakers closed: "+strings.Join(r.Breakers, ", ")))
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/builtin"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// pluginCommand holds what is about plugins one by one.
func (a *app) pluginCommand() *cobra.Command {
	return group("plugin", "Plugins: what they are, one-shot runs, replays, checksums",
		a.pluginListCommand(), a.pluginDescribeCommand(), a.pluginServeCommand(), a.pluginPinCommand(), a.pluginRunCommand(),
		a.pluginReplayCommand(), a.pluginReleaseCommand())
}

// pluginList is the JSON of plugin list.
type pluginList struct {
	Plugins []phases.PluginRow `json:"plugins"`
}

// pluginListCommand shows states, and a state is never an error: whatever is
// down, the list is the answer.
func (a *app) pluginListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Start the declared plugins and show the state of each",
		Args:  noArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, from, err := a.loadConfig()
			if err != nil {
				return err
			}
			list := pluginList{Plugins: []phases.PluginRow{}}
			err = a.withEngine(c.Context(), cfg, runtime.Options{}, func(_ context.Context, eng *runtime.Engine) error {
				list.Plugins = append(list.Plugins, eng.Plugins()...)
				return nil
			})
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(list)
			case len(list.Plugins) == 0:
				a.printf("no plugin is declared (%s)\n", clean(from.name()))
			}
			a.printPlugins("plugins", list.Plugins)
			return nil
		},
	}
}

// pluginServeCommand is for people who try by hand what they saw in a process
// list. The real thing happens in builtin.Main, before any flag is read.
func (a *app) pluginServeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve NAME",
		Short: "Serve a built-in plugin; only a host starts this",
		Args:  exactlyOne("plugin serve needs the NAME of a built-in plugin"),
		RunE: func(_ *cobra.Command, args []string) error {
			// builtin.Main has taken this process over if a host started it.
			if _, err := builtin.Plugin(args[0]); err != nil {
				return usagef("%w", err)
			}
			return usagef("plugin serve is started by a host and speaks no human language: declare the plugin with \"builtin: %s\" in the configuration, or try it with: grapnel plugin run %s", args[0], args[0])
		},
	}
}

// alone returns the configuration with one plugin, and a built-in one that is
// not declared as if it were declared without grants. What refers to other
// plugins is left away or made soft.
func alone(cfg *config.Config, name string) (*config.Config, error) {
	i := slices.IndexFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Name == name })
	switch {
	case i >= 0:
		return onlyPlugin(cfg, cfg.Plugins[i]), nil
	case slices.Contains(builtin.Names(), name):
		return onlyPlugin(cfg, config.Plugin{Name: name, Builtin: name}), nil
	}
	var known []string
	for i := range cfg.Plugins {
		known = append(known, cfg.Plugins[i].Name)
	}
	known = append(known, builtin.Names()...)
	return nil, usagef("no plugin %q is declared%s; see: grapnel plugin list", name, phases.DidYouMean(name, known))
}

// onlyPlugin returns a copy of cfg that declares p and nothing else. The copy
// still knows the file's lines, so that mistakes are shown where they are.
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

// softened lets dependencies on others be absent: alone, a plugin waits for
// nobody.
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

// started returns an error with exit code 3 if a plugin is not ready.
func started(eng *runtime.Engine, name string) error {
	for _, row := range eng.Plugins() {
		if row.Plugin == name && row.State != phases.PluginReady && row.State != phases.PluginDegraded {
			return unable(fmt.Errorf("the plugin %s did not start: %s: %s", name, row.State, detailText(&row)))
		}
	}
	return nil
}

// pluginDescribeCommand is about one plugin, so one that is down is exit code 3.
func (a *app) pluginDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe NAME",
		Short: "Start one plugin and show what it says of itself: hooks, tools, configuration",
		Long: "Describe starts one declared plugin, or a built-in one, with its configuration and\n" +
			"prints what it says of itself. Exit code 3 says that it did not start.",
		Args:              exactlyOne("plugin describe needs the NAME of a plugin"),
		ValidArgsFunction: a.completePlugins,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, _, err := a.loadConfig()
			if err != nil {
				return err
			}
			d, err := a.describe(c.Context(), cfg, args[0])
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(d)
			}
			a.printDescription(args[0], d)
			return nil
		},
	}
}

// describe starts a plugin and asks it. A hook that cannot be planned without
// other plugins takes all of the configuration to be described.
func (a *app) describe(ctx context.Context, cfg *config.Config, name string) (*phases.Description, error) {
	only, err := alone(cfg, name)
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
	// A mistake in the plan of one plugin is most likely none in the plan of all.
	if codeOf(err) == exitUsage && len(cfg.Plugins) > 1 {
		err = a.withEngine(ctx, cfg, runtime.Options{}, ask)
	}
	return d, err
}

// printDescription prints a description for people.
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
	t := newTable("hooks", "hook", "phase", "role", "kinds", ">priority", "timeout", "when", "doc")
	for i := range d.Hooks {
		h := &d.Hooks[i]
		kinds := make([]string, len(h.Kinds))
		for j, k := range h.Kinds {
			kinds[j] = string(k)
		}
		timeout := ""
		if h.Timeout > 0 {
			timeout = h.Timeout.String()
		}
		t.add(h.Name, h.Phase, h.Role, strings.Join(kinds, ", "), h.Priority, timeout, h.When, h.Doc)
	}
	a.printTable(t)
	t = newTable("tools", "tool", "description")
	for _, tool := range d.Tools {
		t.add(tool.Name, tool.Description)
	}
	a.printTable(t)
	if len(d.ConfigSchema) == 0 {
		a.println("\nit takes no configuration")
		return
	}
	a.println("\nJSON Schema of its configuration:")
	if schema, err := encodeJSON(d.ConfigSchema); err == nil {
		a.printf("%s", string(schema))
	}
}

// detailText is why a plugin is not ready, with its code once.
func detailText(row *phases.PluginRow) string {
	code := "(" + row.Code + ")"
	if row.Code == "" || strings.HasSuffix(row.Message, code) {
		return clean(row.Message)
	}
	return strings.TrimSpace(clean(row.Message) + " " + code)
}

// completePlugins completes the names of plugins.
func (a *app) completePlugins(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names := builtin.Names()
	if cfg, _, err := a.loadConfig(); err == nil {
		for i := range cfg.Plugins {
			names = append(names, cfg.Plugins[i].Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// pluginOf is the plugin's part of a subscription id.
func pluginOf(subscription string) string {
	plugin, _, _ := strings.Cut(subscription, ".")
	return plugin
}

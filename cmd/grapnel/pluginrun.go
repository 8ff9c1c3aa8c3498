package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// runFlags are the flags of plugin run.
type runFlags struct {
	dispatchFlags
	// phase is empty where the plugin is to say it.
	phase string
	// grantAll replaces the grants of the configuration for this run.
	grantAll bool
}

// pluginRunCommand is for authors: the plugin alone, with all that is around it in
// a real dispatch (grants, deadlines, merging, ledger).
func (a *app) pluginRunCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run NAME | run -- COMMAND [ARG]...",
		Short: "Run one phase through one plugin alone",
		Long: "Run starts one plugin of the configuration, or a program that is in no configuration,\n" +
			"dispatches one phase to it alone, and prints the outcome like dispatch. A program is\n" +
			"granted nothing unless --grant-all is there. Exit code 3 says that it did not start.\n\n" +
			"Without --phase it is the only phase that the plugin has hooks in, or of several\n" +
			"turn.pre_prompt_compile, which needs no --input.",
		Example: "  grapnel plugin run agentsdoc --dir ./service\n" +
			"  grapnel plugin run --grant-all --phase tool.pre_call --input call.json -- ./bin/guard --strict",
		ValidArgsFunction: a.completePlugins,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, name, err := a.runTarget(args, c.ArgsLenAtDash() == 0)
			if err != nil {
				return err
			}
			if f.grantAll {
				cfg.Plugins[0].Grants = allGrants()
			}
			return a.pluginRun(c.Context(), cfg, name, &f)
		},
	}
	flags := c.Flags()
	f.register(c)
	a.record.register(c)
	flags.StringVar(&f.phase, "phase", "", "the `PHASE` to dispatch (default: the one that the plugin has hooks in)")
	flags.BoolVar(&f.grantAll, "grant-all", false, "grant the plugin everything, for this run")
	return c
}

// runTarget is the configuration with the one plugin that the arguments name.
func (a *app) runTarget(args []string, program bool) (*config.Config, string, error) {
	switch {
	case len(args) == 0:
		return nil, "", usagef("plugin run needs the NAME of a plugin, or -- and a COMMAND; see: grapnel plugin run --help")
	case program:
		return programConfig(args)
	case len(args) > 1:
		return nil, "", usagef("plugin run takes one NAME, not %q; put -- before a COMMAND with arguments", args[1])
	}
	cfg, _, err := a.loadConfig()
	if err != nil {
		return nil, "", err
	}
	cfg, err = alone(cfg, args[0])
	return cfg, args[0], err
}

// programConfig declares a program. A bare name is looked up in PATH; any other
// path is relative to the working folder.
func programConfig(args []string) (*config.Config, string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, "", usagef("the working folder: %w", err)
	}
	path, err := config.ResolveCommand(dir, args[0], os.LookupEnv)
	if err != nil {
		return nil, "", unable(fmt.Errorf("the plugin did not start: %w", err))
	}
	// The name is the first part of subscription ids, so a readable one is worth
	// some trouble.
	base := filepath.Base(path)
	name := strings.TrimSuffix(base, filepath.Ext(base))
	if !phases.ValidPluginName(name) {
		name = "program"
	}
	p := config.Plugin{Name: name, Command: args[0], Path: path, Args: args[1:]}
	return &config.Config{Version: 1, Plugins: []config.Plugin{p}}, name, nil
}

// allGrants allows everything, those sections included that no wildcard covers.
func allGrants() phases.Grants {
	all := []string{"*"}
	return phases.Grants{
		Contribute: all, Sections: []string{"*", "agents_md", "memory_recall", "skills_runtime"}, StableSections: all, Join: all,
		Policies: all, Domains: all, Tools: all, Host: all, Read: all, Write: all, Net: all, See: all,
	}
}

// pluginRun finds the phase and dispatches it. Without --phase the plugin is
// started twice: the phase, and thereby the type of the input, is its to say.
func (a *app) pluginRun(ctx context.Context, cfg *config.Config, name string, f *runFlags) error {
	phase := phases.Phase(f.phase)
	if phase == "" {
		d, err := a.describe(ctx, cfg, name)
		if err != nil {
			return err
		}
		if phase, err = defaultPhase(name, d, f.input != ""); err != nil {
			return err
		}
	}
	in, turn, err := a.dispatchInput(phase, &f.dispatchFlags)
	if err != nil {
		return err
	}
	return a.dispatch(ctx, cfg, turn, in, &f.dispatchFlags, func(eng *runtime.Engine) error {
		if err := started(eng, name); err != nil {
			return err
		}
		return takesPart(name, eng.Descriptions()[name], phase)
	})
}

// phasesOf are the phases that a plugin has hooks in.
func phasesOf(d *phases.Description) []string {
	var names []string
	for i := range d.Hooks {
		names = append(names, string(d.Hooks[i].Phase))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// defaultPhase is the phase to run where none is named: the plugin's only one, or
// else the one in which it adds to the prompt, which needs no input. Who brings an
// input means a phase, and has to say which.
func defaultPhase(name string, d *phases.Description, hasInput bool) (phases.Phase, error) {
	switch names := phasesOf(d); {
	case len(names) == 0:
		return "", refused(errors.New("the plugin " + name + " has no hooks: there is nothing to run"))
	case len(names) == 1:
		return phases.Phase(names[0]), nil
	case !hasInput && slices.Contains(names, string(phases.PrePromptCompile)):
		return phases.PrePromptCompile, nil
	default:
		return "", usagef("the plugin %s has hooks in several phases; choose one with --phase: %s", name, strings.Join(names, ", "))
	}
}

// takesPart refuses a phase in which the plugin would not be asked.
func takesPart(name string, d *phases.Description, phase phases.Phase) error {
	if d == nil {
		return nil // the outcome says why
	}
	names := phasesOf(d)
	switch {
	case slices.Contains(names, string(phase)):
		return nil
	case len(names) == 0:
		return refused(errors.New("the plugin " + name + " has no hooks: there is nothing to run"))
	default:
		return usagef("the plugin %s has no hook in the phase %s; those that it has hooks in are: %s", name, phase, strings.Join(names, ", "))
	}
}

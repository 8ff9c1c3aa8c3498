package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/conformance"
	"github.com/grapnelhq/grapnel/internal/pool"
	"github.com/grapnelhq/grapnel/internal/sandbox"
	"github.com/grapnelhq/grapnel/phases"
)

type checkFlags struct {
	transport, sandbox, config, junit, known, requirements string
	only, env                                              []string
	long                                                   bool
}

const longCalls = 10_000

func (a *app) pluginCheckCommand() *cobra.Command {
	var f checkFlags
	c := newCommand("check COMMAND | check -- COMMAND [ARG]...", "Check a plugin of any language against the wire contract", nil,
		func(c *cobra.Command, args []string) error {
			if len(args) == 0 || c.ArgsLenAtDash() > 0 {
				return usagef("plugin check needs the COMMAND of a plugin, with -- before it if it has arguments; see: grapnel plugin check --help")
			}
			return a.pluginCheck(c, args, &f)
		})
	flags := c.Flags()
	flags.StringVar(&f.transport, "transport", "grpc", "the `BINDING` to speak: grpc or stdio")
	flags.StringVar(&f.sandbox, "sandbox", "T0", "the `TIER` of the sandbox that the plugin runs in: T0, T1 or T2")
	flags.StringVar(&f.config, "config", "", "the plugin's configuration, `JSON` or @FILE")
	flags.StringVar(&f.junit, "junit", "", "write the results to `FILE` as JUnit XML")
	flags.StringVar(&f.known, "known-failing", "", "a `FILE` with the ids of checks that are known to fail, one a line; one that passes is an error")
	flags.StringVar(&f.requirements, "requirements", "v1", "the `VERSION` of the list of checks")
	flags.StringSliceVar(&f.only, "only", nil, "only the checks with these `IDS`")
	flags.StringSliceVar(&f.env, "env", nil, "the `NAMES` of environment variables that the plugin inherits")
	flags.BoolVar(&f.long, "long", false, fmt.Sprintf("make %d calls in the check for leaking descriptors, not 1000", longCalls))
	return c
}

func (a *app) pluginCheck(c *cobra.Command, args []string, f *checkFlags) error {
	o, err := f.options(a, args)
	if err != nil {
		return err
	}
	done := a.startCount("%s checks done")
	o.Progress = func(*conformance.Result) { done.add() }
	report, err := conformance.Run(c.Context(), o)
	done.stop()
	if _, wrong := errors.AsType[*conformance.OptionError](err); wrong {
		return usagef("%w", err)
	}
	if err != nil {
		return unable(err)
	}
	if f.junit != "" {
		if err := writeJUnit(f.junit, report); err != nil {
			return unable(err)
		}
	}
	err = a.print(report, func() { a.printConformance(report) })
	if err == nil && !report.Conforms {
		return answerNo()
	}
	return err
}

func (f *checkFlags) options(a *app, args []string) (conformance.Options, error) {
	cfg, _, err := programConfig(args)
	if err != nil {
		return conformance.Options{}, err
	}
	p := &cfg.Plugins[0]
	p.Transport, p.Sandbox = f.transport, f.sandbox
	o := conformance.Options{Path: p.Path, Args: p.Args, Env: f.env, Transport: f.transport, Requirements: f.requirements, Only: f.only}
	if o.Sandbox, err = pool.Confinement(p); err != nil {
		return o, usagef("--sandbox: %w", err)
	}
	if err := sandbox.Probe().Reach(o.Sandbox.Tier, o.Sandbox.Policy, o.Sandbox.Groups); err != nil {
		return o, unable(fmt.Errorf("--sandbox %s: %w", f.sandbox, err))
	}
	if f.long {
		o.Calls = longCalls
	}
	if o.Config, err = a.jsonArgument("config", f.config); err != nil {
		return o, err
	}
	var object map[string]any
	if err := json.Unmarshal(o.Config, &object); len(o.Config) > 0 && err != nil {
		return o, usagef("--config is not a JSON object: %s", phases.Whole(err))
	}
	if f.known == "" {
		return o, nil
	}
	file, err := openNamed(f.known)
	if err != nil {
		return o, usagef("--known-failing %s: %w", f.known, err)
	}
	o.Known, err = conformance.ReadIDs(file)
	return o, errors.Join(err, file.Close())
}

func writeJUnit(name string, report *conformance.Report) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(report.WriteJUnit(file), file.Close())
}

func (a *app) printConformance(r *conformance.Report) {
	a.printf("%s", rule(clean(strings.TrimSpace("plugin "+r.Plugin+" "+r.Version))+" over "+r.Transport))
	for i := range r.Results {
		for _, line := range r.Results[i].Lines() {
			a.println(printable(line))
		}
	}
	a.printf("\n%s\n", r.Summary())
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/conformance"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
	"github.com/grapnelhq/grapnel/phases"
)

type checkFlags struct {
	Transport string   `default:"grpc"       flag:"transport"                                                                                        usage:"the {BINDING} to speak: grpc or stdio"                           words:"grpc|stdio"`
	Sandbox   string   `default:"T0"         flag:"sandbox"                                                                                          usage:"the {TIER} of the sandbox that the plugin runs in: T0, T1 or T2"`
	Config    string   `flag:"config"        usage:"the plugin's configuration, {JSON} or @FILE"`
	JUnit     string   `flag:"junit"         usage:"write the results to {FILE} as JUnit XML"`
	Known     string   `flag:"known-failing" usage:"a {FILE} with the ids of checks that are known to fail, one a line; one that passes is an error"`
	Only      []string `flag:"only"          usage:"only the checks with these {IDS}"`
	Env       []string `flag:"env"           usage:"the {NAMES} of environment variables that the plugin inherits"`
	Long      bool     `flag:"long"          usage:"make 10000 calls in the check for leaking descriptors, not 1000"`

	dash int
}

func (f *checkFlags) parsed(c *cobra.Command) { f.dash = c.ArgsLenAtDash() }

const longCalls = 10_000

func (a *app) pluginCheck(ctx context.Context, f *checkFlags, args []string) error {
	if len(args) == 0 || f.dash > 0 {
		return usagef("plugin check needs the COMMAND of a plugin, with -- before it if it has arguments; see: grapnel plugin check --help")
	}
	o, err := f.options(a, args)
	if err != nil {
		return err
	}
	done := a.startCount("%s checks done")
	o.Progress = func(*conformance.Result) { done.add() }
	report, err := conformance.Run(ctx, o)
	done.stop()
	if _, wrong := errors.AsType[*conformance.OptionError](err); wrong {
		return usagef("%w", err)
	}
	if err != nil {
		return unable(err)
	}
	if f.JUnit != "" {
		if err := writeJUnit(f.JUnit, report); err != nil {
			return unable(err)
		}
	}
	return a.answer(report.Conforms, report, func() { a.printConformance(report) })
}

func (f *checkFlags) options(a *app, args []string) (conformance.Options, error) {
	cfg, _, err := programConfig(args)
	if err != nil {
		return conformance.Options{}, err
	}
	p := &cfg.Plugins[0]
	p.Transport, p.Sandbox = f.Transport, f.Sandbox
	o := conformance.Options{Path: p.Path, Args: p.Args, Env: apartByCommas(f.Env), Transport: f.Transport, Only: apartByCommas(f.Only)}
	if o.Sandbox, err = pool.Confinement(p); err != nil {
		return o, usagef("--sandbox: %w", err)
	}
	if err := sandbox.Probe().Reach(o.Sandbox.Tier, o.Sandbox.Policy, o.Sandbox.Groups); err != nil {
		return o, unable(fmt.Errorf("--sandbox %s: %w", f.Sandbox, err))
	}
	if f.Long {
		o.Calls = longCalls
	}
	if o.Config, err = a.jsonArgument("config", f.Config); err != nil {
		return o, err
	}
	var object map[string]any
	if err := json.Unmarshal(o.Config, &object); len(o.Config) > 0 && err != nil {
		return o, usagef("--config is not a JSON object: %s", phases.Whole(err))
	}
	if f.Known == "" {
		return o, nil
	}
	file, err := openNamed(f.Known)
	if err != nil {
		return o, usagef("--known-failing %s: %w", f.Known, err)
	}
	o.Known, err = conformance.ReadIDs(file)
	return o, errors.Join(err, file.Close())
}

func apartByCommas(lists []string) []string {
	return strings.FieldsFunc(strings.Join(lists, ","), func(r rune) bool { return r == ',' })
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

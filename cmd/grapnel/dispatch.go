package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// dispatchFlags are the flags of dispatch, which plugin run shares.
type dispatchFlags struct {
	// dir goes before the context's own.
	dir string
	// input and context are files, or "-".
	input, context string
	// wait keeps the plugins running until background work is done; without it
	// the end of the command ends that too.
	wait bool
}

// register adds the flags to a command that dispatches a single phase.
func (f *dispatchFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.dir, "dir", "", "working `DIR` (default the current folder)")
	flags.StringVar(&f.input, "input", "", "JSON `FILE` with the phase's input, or -")
	flags.StringVar(&f.context, "context", "", "JSON `FILE` with the context, or -")
	flags.BoolVar(&f.wait, "wait", false, "wait for background work")
}

// dispatchCommand reads the input before the configuration: a mistyped field is
// told without starting a plugin.
func (a *app) dispatchCommand() *cobra.Command {
	var f dispatchFlags
	c := &cobra.Command{
		Use:   "dispatch PHASE",
		Short: "Run one phase on an input and show what came of it",
		Long: "Dispatch runs one phase through the plugins. Input and context are JSON of the phase's\n" +
			"types; see: grapnel schema phase:PHASE. What the context leaves open is filled in as by\n" +
			"compile. Exit code 1 says that the phase failed closed or was denied.",
		Example:           "  echo '{\"tool\": \"shell\"}' | grapnel dispatch tool.pre_call --input -",
		Args:              exactlyOne("dispatch needs one PHASE, such as turn.pre_prompt_compile"),
		ValidArgsFunction: completePhases,
		RunE: func(c *cobra.Command, args []string) error {
			in, turn, err := a.dispatchInput(phases.Phase(args[0]), &f)
			if err != nil {
				return err
			}
			cfg, _, err := a.loadConfig()
			if err != nil {
				return err
			}
			return a.dispatch(c.Context(), cfg, turn, in, f.wait, nil)
		},
	}
	f.register(c)
	a.record.register(c)
	return c
}

// dispatch runs one phase and prints its outcome. Ready, if it is given, may
// refuse the engine first.
func (a *app) dispatch(ctx context.Context, cfg *config.Config, turn phases.Context, in phases.Input, wait bool, ready func(*runtime.Engine) error) error {
	var out *phases.Outcome
	err := a.withEngine(ctx, cfg, runtime.Options{}, func(ctx context.Context, eng *runtime.Engine) error {
		if ready != nil {
			if err := ready(eng); err != nil {
				return err
			}
		}
		var err error
		out, err = eng.Dispatch(ctx, turn, in)
		out = out.For(phases.AudienceOperator)
		if out != nil && wait {
			err = errors.Join(err, eng.WaitBackground(ctx))
		}
		return err
	})
	if out == nil || codeOf(err) == exitInterrupted {
		return err
	}
	if printed := a.printOutcome(out); printed != nil {
		return printed
	}
	switch {
	case out.Error != nil:
		return refused(remedied(out.Error))
	case err != nil:
		return unable(err)
	case out.Decision != nil && out.Decision.Verdict == phases.VerdictDeny:
		return answerNo() // the output has said who, and why
	}
	return nil
}

// dispatchInput reads the phase's input and context.
func (a *app) dispatchInput(phase phases.Phase, f *dispatchFlags) (phases.Input, phases.Context, error) {
	if _, ok := phases.Standard().Lookup(phase); !ok {
		return nil, phases.Context{}, unknownPhase(phase)
	}
	if f.input == "-" && f.context == "-" {
		return nil, phases.Context{}, usagef("--input and --context cannot both be read from standard input")
	}
	data, err := a.readJSON("input", f.input)
	if err != nil {
		return nil, phases.Context{}, err
	}
	in, err := phases.DecodeInput(phases.Standard(), phase, data)
	if err != nil {
		return nil, phases.Context{}, usagef("--input %s: %w; see: grapnel schema phase:%s", f.input, err, phase)
	}
	if data, err = a.readJSON("context", f.context); err != nil {
		return nil, phases.Context{}, err
	}
	turn, err := phases.DecodeContext(data)
	if err != nil {
		return nil, phases.Context{}, usagef("--context %s: %w; see: grapnel schema phase:%s", f.context, err, phase)
	}
	flags := contextFlags{dir: f.dir}
	if turn, err = flags.fill(turn); err != nil {
		return nil, phases.Context{}, err
	}
	// Outside a turn the engine leaves the clock to its caller.
	if turn.Now.IsZero() {
		turn.Now = time.Now()
	}
	return in, turn, nil
}

// unknownPhase refuses a phase and names the nearest.
func unknownPhase(phase phases.Phase) error {
	return usagef("unknown phase %q%s; see: grapnel schema", phase, phases.DidYouMean(string(phase), phases.Standard().Names()))
}

// completePhases completes phase names.
func completePhases(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return phases.Standard().Names(), cobra.ShellCompDirectiveNoFileComp
}

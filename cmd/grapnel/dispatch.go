package main

import (
	"context"
	"errors"
	"fmt"
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
	// inTurn is what the user says in the turn that the phase is dispatched in; without
	// it there is no turn.
	inTurn userText
}

// userText is a text that may be empty, or not there.
type userText struct {
	text  string
	given bool
}

// String implements pflag.Value.
func (u *userText) String() string { return u.text }

// Set implements pflag.Value.
func (u *userText) Set(text string) error {
	u.text, u.given = text, true
	return nil
}

// Type implements pflag.Value.
func (u *userText) Type() string { return "string" }

// register adds the flags to a command that dispatches a single phase.
func (f *dispatchFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.dir, "dir", "", "working `DIR` (default the current folder)")
	flags.StringVar(&f.input, "input", "", "JSON `FILE` with the phase's input, or -")
	flags.StringVar(&f.context, "context", "", "JSON `FILE` with the context, or -")
	flags.BoolVar(&f.wait, "wait", false, "wait for background work, and show how it ended")
	flags.Var(&f.inTurn, "in-turn", "run it in a turn of a user who says `TEXT`, behind the turn's prompt: with policies, contexts and tools")
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
			"compile. Exit code 1 says that the phase failed closed or was denied.\n\n" +
			"Without --in-turn there is no turn: a phase with a hook that needs one, such as a guard\n" +
			"that goes by a policy, is refused with exit code 2.",
		Example: "  echo '{\"tool\": \"shell\"}' | grapnel dispatch tool.pre_call --input -\n" +
			"  grapnel dispatch tool.pre_call --input call.json --in-turn 'Tidy up, but delete nothing.'",
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
			return a.dispatch(c.Context(), cfg, turn, in, &f, nil)
		},
	}
	f.register(c)
	a.record.register(c)
	return c
}

// dispatch runs one phase and prints its outcome. Ready, if it is given, may
// refuse the engine first.
func (a *app) dispatch(ctx context.Context, cfg *config.Config, turn phases.Context, in phases.Input, f *dispatchFlags, ready func(*runtime.Engine) error) error {
	var out *phases.Outcome
	err := a.withEngine(ctx, cfg, runtime.Options{}, func(ctx context.Context, eng *runtime.Engine) error {
		if ready != nil {
			if err := ready(eng); err != nil {
				return err
			}
		}
		return background(ctx, eng, f.wait, &out, func(ctx context.Context) (err error) {
			if f.inTurn.given {
				out, err = dispatchInTurn(ctx, eng, turn, in, f.inTurn.text)
			} else {
				out, err = eng.Dispatch(ctx, turn, in)
			}
			if phases.CodeOf(err) == phases.CauseTurnNeeded {
				return usagef("%w: give --in-turn TEXT, with what the user says in that turn", err)
			}
			return err
		})
	})
	if out == nil || codeOf(err) == exitInterrupted {
		return err
	}
	out = out.For(phases.AudienceOperator)
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

// dispatchInTurn runs one phase behind the prompt of a turn.
func dispatchInTurn(ctx context.Context, eng *runtime.Engine, where phases.Context, in phases.Input, userText string) (*phases.Outcome, error) {
	turn, err := eng.BeginTurn(ctx, where)
	if err != nil {
		return nil, err
	}
	done, err := turn.Round(ctx, runtime.CompileInput{UserText: userText, ToolCalling: true})
	switch {
	case done != nil && done.Error != nil:
		return nil, refused(fmt.Errorf("the turn does not get as far as %s: %w", in.Phase(), remedied(done.Error)))
	case err != nil:
		return nil, unable(err)
	}
	if end, ok := in.(*phases.PostTurnInput); ok {
		return turn.End(ctx, end)
	}
	return turn.Dispatch(ctx, in)
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

// background makes a call and, if it is to be waited for, notes in its outcome how the
// background work ended that it has queued.
func background(ctx context.Context, eng *runtime.Engine, wait bool, out **phases.Outcome, call func(ctx context.Context) error) error {
	if !wait {
		return call(ctx)
	}
	calling, ended := eng.Collect(ctx)
	err := call(calling)
	rows, late := ended(ctx)
	if *out == nil {
		return err
	}
	(*out).Background = rows
	return errors.Join(err, late)
}

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/surface"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// compileFlags are the flags of compile that explain shares.
type compileFlags struct {
	contextFlags
	// message is a text, or "-"; input is a file, or "-".
	message, input string
	// home is the folder of the runtime home; empty is none.
	home string
}

// register adds the flags to a command. Explain compiles too, so that both
// always speak of the same turn.
func (f *compileFlags) register(c *cobra.Command) { f.registerOn(c.Flags()) }

// registerOn is register for a set of flags.
func (f *compileFlags) registerOn(flags *pflag.FlagSet) {
	f.contextFlags.register(flags)
	flags.StringVar(&f.message, "message", "", "the user's `TEXT`, or - for standard input")
	flags.StringVar(&f.input, "input", "", "JSON `FILE`, or -, with model, provider, tools, recall plan and host texts")
	flags.StringVar(&f.home, "home", "", "runtime home `DIR`, with SOUL.md, IDENTITY.md and USER.md (default none)")
}

// compileCommand is the main job: one turn from its beginning to its prompt.
func (a *app) compileCommand() *cobra.Command {
	var f compileFlags
	var out string
	c := &cobra.Command{
		Use:   "compile",
		Short: "Run a turn through the plugins, compile its prompt, and show what went in",
		Long: "Compile begins a turn, runs its phases through the plugins, compiles the prompt, and\n" +
			"prints it with a summary of its manifest: sections with owner, size and cuts, hook\n" +
			"runs with state and time, fingerprints. Without a configuration it uses the AGENTS.md\n" +
			"files from the project's root down to the working folder.\n\n" +
			"With a store (--store, or store: in the configuration) the manifest is kept there, and\n" +
			"the thread's last one is what the prompt cache is predicted from.\n\n" +
			"Exit code 1 says that a phase failed closed, or that a hook denied the turn; 3 that the\n" +
			"manifest could not be kept and the configuration has on_failure: refuse.",
		Example: "  grapnel compile\n" +
			"  grapnel compile --dir ./service --message 'fix the build' --json\n" +
			"  grapnel compile --out prompt.txt\n" +
			"  grapnel compile --store sqlite:./log.db --thread t1",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.compile(c.Context(), &f, out) },
	}
	f.register(c)
	a.record.register(c)
	c.Flags().StringVar(&out, "out", "", "write the prompt (with --json the whole JSON) to `FILE`; the summary stays on standard output")
	return c
}

// compile prints whatever is known of the turn, also when it was blocked: the
// ledger is what people look for then. The error comes after the output, so that
// it is the last thing on a terminal.
func (a *app) compile(ctx context.Context, f *compileFlags, out string) error {
	cfg, from, err := a.loadConfig()
	if err != nil {
		return err
	}
	job, err := a.compileJob(f)
	if err != nil {
		return err
	}
	rec, err := a.openRecorder(ctx, cfg, from)
	if err != nil {
		return err
	}
	done, err := a.compileTurn(ctx, cfg, job, rec)
	if closed := rec.close(); closed != nil && err == nil {
		err = closed
	}
	if done == nil {
		return err
	}
	if printed := a.printCompiled(done, rec, out); printed != nil {
		return printed
	}
	switch {
	case rec.refused():
		return unable(done.Error)
	case done.Error != nil:
		return refused(remedied(done.Error))
	case err != nil:
		return unable(err)
	}
	return nil
}

// compileJob is a turn to compile, read from flags and files and not begun.
type compileJob struct {
	turn phases.Turn
	in   runtime.CompileInput
	opts runtime.Options
}

// compileJob reads what a turn is made of. Nothing is opened or started for
// wrong usage.
func (a *app) compileJob(f *compileFlags) (*compileJob, error) {
	turn, err := f.fill(phases.Context{})
	if err != nil {
		return nil, err
	}
	in, err := a.compileInput(f)
	if err != nil {
		return nil, err
	}
	if err := checkHome(f.home); err != nil {
		return nil, err
	}
	// One clock for all that the prompt and the manifest say about time.
	opts := runtime.Options{Home: f.home}
	at := time.Now()
	if !turn.Now.IsZero() {
		at = turn.Now
		opts.Now = func() time.Time { return at }
	}
	in.Prompt.Facts = surface.HostFacts(at)
	if err := countTokens(&opts, in.Model); err != nil {
		return nil, err
	}
	return &compileJob{turn, in, opts}, nil
}

// compileTurn runs the turn, and has its manifest kept if there is a recorder.
// The result is nil when there was no turn at all.
func (a *app) compileTurn(ctx context.Context, cfg *config.Config, job *compileJob, rec *recorder) (*runtime.Compiled, error) {
	opts := job.opts
	rec.wire(&opts)
	var done *runtime.Compiled
	err := a.withEngine(ctx, cfg, opts, func(ctx context.Context, eng *runtime.Engine) error {
		var err error
		if done, err = eng.CompileTurn(ctx, job.turn, job.in); done == nil && err != nil {
			return unable(err) // there was no turn at all
		}
		done = done.For(phases.AudienceOperator)
		return err
	})
	if codeOf(err) == exitInterrupted {
		return nil, err
	}
	return done, err
}

// printCompiled prints a compiled turn, or writes its prompt to a file.
func (a *app) printCompiled(done *runtime.Compiled, rec *recorder, out string) error {
	switch {
	case out == "" && a.json:
		return a.printJSON(done)
	case out == "":
		a.printPrompt(done.Prompt)
		a.printTurn(done, rec)
		return nil
	}
	var data []byte
	if a.json {
		var err error
		if data, err = encodeJSON(done); err != nil {
			return unable(err)
		}
	} else if done.Prompt != nil {
		data = []byte(promptText(done.Prompt))
	}
	// A turn without a prompt leaves the file of an earlier one alone. Prompts are
	// for their owner: they hold what the user wrote.
	if data != nil {
		if err := os.WriteFile(out, data, 0o600); err != nil {
			return usagef("--out %s: %w", out, unwrapPath(err))
		}
	}
	a.printTurn(done, rec)
	return nil
}

// remedied adds to an error that ended a phase what to do about it. Without a
// subscription there is nobody to do it about.
func remedied(err *phases.Error) error {
	if err.Subscription == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, remedy(err))
}

// remedy is what to do about an error, by its code. Codes that speak of a plugin
// as a whole share the last answer.
func remedy(err *phases.Error) string {
	switch err.Code {
	case phases.CauseDenied, codeAsk:
		return "that is the hook's decision; see: grapnel plan " + string(err.Phase)
	case phases.CauseTimeout, phases.CauseBudgetExhausted:
		return "give it more time (timeout, budgets.phases), or another on_failure; see: grapnel plan " + string(err.Phase)
	case phases.CauseForbidden:
		return "grant it in the configuration, or take the hook out"
	case phases.CauseConflict:
		return "let only one of them have the slot (grants, enabled: false), or grant join"
	case phases.CauseCondition:
		return "correct the subscription's condition (when)"
	case phases.CauseRequiredMissing:
		return "see why with: grapnel explain " + err.Subscription
	case phases.CausePluginError, phases.CauseInvalidReply:
		return "try it alone with: grapnel plugin run " + pluginOf(err.Subscription)
	default:
		return "look at the plugin with: grapnel plugin list"
	}
}

// codeAsk is the code of a turn that a hook wants somebody to be asked about.
const codeAsk phases.Cause = "ask"

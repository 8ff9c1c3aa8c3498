package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/grapnelhq/grapnel/phases"
)

// app is what all commands share: the streams and the global flags.
type app struct {
	in  io.Reader
	err io.Writer
	// out takes results. It is written when the command has ended: nothing of a
	// command that fails for its usage reaches standard output, and nobody waits
	// for a slow reader while plugins run.
	out bytes.Buffer
	// terminal says that results go to one: control characters are then shown,
	// not sent.
	terminal bool
	// answers says that whoever is at the input answers questions though it is no
	// terminal: a test.
	answers bool

	// stdout is where results go that are too large to be held: those of export.
	stdout io.Writer

	// config is --config; see configOrigin for what goes when it is empty.
	config string
	// store is --store; see storeNamed for what goes when it is empty.
	store string
	// logLevel is checked when a logger is needed: commands that log nothing
	// accept any.
	logLevel string
	// record is --record, of those commands that have it.
	record recordFlags
	// format and json are two ways to say the same; settleFormat makes them one.
	format string
	json   bool
}

// run executes one command line and returns its exit code. Results go to
// standard output, errors to standard error as one message.
func run(ctx context.Context, args []string, s streams) int {
	a := &app{in: s.in, err: s.err, stdout: s.out, terminal: isTerminal(s.out)}
	root := a.root() //nolint:contextcheck // commands have the context of the execution
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	code := codeOf(err)
	// What a command printed before it found out that it was called wrongly is no
	// result. What is known when something failed is one.
	if code != exitUsage && code != exitInterrupted {
		if _, failed := io.WriteString(s.out, a.result()); failed != nil && !errors.Is(failed, syscall.EPIPE) {
			code, err = exitUnable, errors.Join(err, fmt.Errorf("writing the result: %w", failed))
		}
	}
	if err != nil && err.Error() != "" {
		tellf(s.err, "grapnel: %s\n", strings.TrimRight(err.Error(), "\n"))
	}
	return code
}

// result is what a command printed: to a file or a pipe as it is, to a terminal without
// what that obeys.
func (a *app) result() string {
	if a.terminal {
		return printable(a.out.String())
	}
	return a.out.String()
}

// root is the command tree.
func (a *app) root() *cobra.Command {
	c := group("grapnel", "A plugin-based hook runtime for AI-agent hosts")
	// Cobra would print usage behind every error. One sentence and "see --help" is
	// enough, and run prints it.
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetOut(&a.out)
	c.SetErr(a.err)
	c.SetIn(a.in)
	c.SetFlagErrorFunc(flagError)
	c.PersistentPreRunE = func(*cobra.Command, []string) error { return a.settleFormat() }
	flags := c.PersistentFlags()
	flags.StringVar(&a.config, "config", "", "configuration `FILE` (default $GRAPNEL_CONFIG, then grapnel/grapnel.yaml in the user's configuration folder)")
	flags.StringVar(&a.store, "store", "", "where manifests are kept: sqlite:PATH or postgres://… (`DSN`; default the configuration's)")
	flags.StringVar(&a.logLevel, "log-level", "error", "what to log to standard error: debug, info, warn, error, off")
	flags.BoolVar(&a.json, "json", false, "print JSON (the same as --format json)")
	flags.StringVar(&a.format, "format", "", "what to print: text or json (default text)")
	c.SetHelpCommand(helpCommand(c))
	c.AddCommand(
		a.compileCommand(), a.dispatchCommand(), a.planCommand(), a.explainCommand(), a.manifestCommand(), a.agentsCommand(),
		a.pluginCommand(), a.configCommand(), a.schemaCommand(), a.initCommand(), a.serveCommand(), a.statusCommand(), a.docsCommand(), a.memoryCommand(),
		a.jobsCommand(), a.versionCommand(),
	)
	return c
}

// group is a command that only holds others. Alone it shows its help. Cobra would
// do that for an unknown command too, with exit code 0; here it is an error.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usagef("unknown command %q for %q%s; see: %s --help", args[0], c.CommandPath(), phases.DidYouMean(args[0], commandNames(c)), c.CommandPath())
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(commands...)
	return c
}

// helpCommand is cobra's, except that an unknown command is an error and that
// nothing is printed then.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("there is no command %q to help with; see: %s --help", strings.Join(args, " "), root.Name())
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// commandNames are the names that a mistyped command is compared with.
func commandNames(c *cobra.Command) []string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// flagError says what is wrong with a flag, and which one may be meant.
func flagError(c *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usagef("%w; see: %s --help", err, c.CommandPath())
	}
	if shorts := unknown.GetSpecifiedShortnames(); shorts != "" {
		return usagef("unknown flag -%s for %q: flags have long names; see: %s --help", shorts, c.CommandPath(), c.CommandPath())
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	name := "--" + unknown.GetSpecifiedName()
	return usagef("unknown flag %s for %q%s; see: %s --help", name, c.CommandPath(), phases.DidYouMean(name, names), c.CommandPath())
}

// settleFormat makes one of --json and --format.
func (a *app) settleFormat() error {
	switch a.format {
	case "":
	case "text":
		if a.json {
			return usagef("--json and --format text contradict each other")
		}
	case "json":
		a.json = true
	default:
		return usagef("--format %q: use text or json", a.format)
	}
	return nil
}

// atMost refuses more than n arguments with a sentence that says what is wanted.
// Cobra's own checks count arguments and name none.
func atMost(n int, message string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%s, not %q; see: %s --help", message, args[n], c.CommandPath())
		}
		return nil
	}
}

// exactlyOne refuses any other number of arguments than one.
func exactlyOne(message string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("%s; see: %s --help", message, c.CommandPath())
		}
		return nil
	}
}

// noArgs refuses all arguments.
func noArgs() cobra.PositionalArgs { return atMost(0, "this command takes no arguments") }

// logger writes the engine's log to standard error at the wanted level.
func (a *app) logger() (*slog.Logger, error) {
	// slog has no level above error, and people do not look for numbers.
	if a.logLevel == "off" {
		return slog.New(slog.DiscardHandler), nil
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return nil, usagef("--log-level %q: use debug, info, warn, error or off", a.logLevel)
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level})), nil
}

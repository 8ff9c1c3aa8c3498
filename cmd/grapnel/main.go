// Grapnel is the command line of the hook runtime: it compiles prompts, runs
// single phases, shows plans, and looks after plugins.
//
// It holds wiring, flags and printing, and no behaviour of its own: what a command does is done by the packages that
// it calls. Results go to standard output, for people or, with --json, for programs in the shapes that "grapnel
// schema" prints. Everything else goes to standard error.
//
// Start reading at [run]. Each group of commands has a file of its own; how its result
// is printed for people stands beside it. Descriptions and examples are in help.txt.
package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // for the help
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/backtest"
	"github.com/grapnelhq/grapnel/internal/engine/plan"
	"github.com/grapnelhq/grapnel/internal/explain"
	"github.com/grapnelhq/grapnel/internal/skillset"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/plugins/cedar"
	"github.com/grapnelhq/grapnel/plugins/commandhooks"
	"github.com/grapnelhq/grapnel/plugins/fileguard"
	"github.com/grapnelhq/grapnel/plugins/mcp"
	"github.com/grapnelhq/grapnel/plugins/memory"
	"github.com/grapnelhq/grapnel/plugins/scripted"
	"github.com/grapnelhq/grapnel/plugins/skills"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

func main() {
	serve.Builtins(firstParty()...) // does not return in a plugin's process
	delayGC()
	// A handler makes writes to a closed pipe fail instead of ending the process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(context.Background(), os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// delayGC lets the heap grow to 16 MiB instead of 4 before the first collection: most commands end before it.
func delayGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		goruntime.AddCleanup(new([64]byte), func(usual int) { debug.SetGCPercent(usual) }, 100)
	}
}

func firstParty() serve.Plugins {
	return serve.Plugins{agentsdoc.New, cedar.New, commandhooks.New, fileguard.New, mcp.New, memory.New, scripted.New, skills.New}
}

type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

const (
	exitOK = iota
	exitNo // the answer is "no": denied, differs, broken, failed closed
	exitUsage
	exitUnable // a store is out of reach, a plugin does not start
)

const exitInterrupted = 130 // what shells show for a program that SIGINT has ended

// exitError carries an exit code. Without an err, everything was printed already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// answerNo ends a command whose output says it all.
func answerNo() error { return &exitError{code: exitNo} }

// refused ends a command whose answer is "no", with the reason.
func refused(err error) error { return &exitError{code: exitNo, err: err} }

// unable ends a command that could not do its work.
func unable(err error) error { return &exitError{code: exitUnable, err: err} }

func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// codeOf returns the exit code of an error; one without a code is a mistake in usage or configuration.
func codeOf(err error) int {
	if err == nil {
		return exitOK
	}
	if coded, ok := errors.AsType[*exitError](err); ok {
		return coded.code
	}
	return exitUsage
}

var version = "0.1.0-dev" // may be set by -ldflags

type versionResult struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func (a *app) printVersion() error {
	v := versionResult{version, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH}
	return a.print(v, func() { a.printf("grapnel %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch) })
}

type app struct {
	in       io.Reader
	err      io.Writer
	out      bytes.Buffer // takes results until the command has ended: plugins do not wait for a slow reader
	spans    []span       // of out
	terminal bool
	colours  bool // the terminal shows them
	answers  bool // makes a test's input answer questions as a terminal would

	stdout io.Writer // where results go that are too large to be held: those of export

	globalFlags

	record recordFlags
	flags  map[*cobra.Command]func() // add those of a command, once

	results map[*cobra.Command]func() (any, error) // the schemas of commands' results
}

// globalFlags are those of all commands.
type globalFlags struct {
	Config   string `flag:"config"   usage:"configuration {FILE} (default $GRAPNEL_CONFIG, then grapnel/grapnel.yaml in the user's configuration directory)"`
	Store    string `flag:"store"    usage:"where manifests are kept: sqlite:PATH or postgres://… ({DSN}; default the configuration's)"`
	LogLevel string `default:"error" flag:"log-level"                                                                                                        usage:"what to log to standard error: debug, info, warn, error, off" words:"debug|info|warn|error|off"`
	JSON     bool   `flag:"json"     usage:"print JSON"`
	Color    string `default:"auto"  flag:"color"                                                                                                            usage:"colours in text: auto (on a terminal), always or never"       words:"auto|always|never"`
}

func run(ctx context.Context, args []string, s streams) int {
	a := &app{in: s.in, err: s.err, stdout: s.out, terminal: isTerminal(s.out)}
	a.colours = a.terminal && hasColours()
	err := a.execute(ctx, args)
	code := codeOf(err)
	// A command that was called wrongly prints no result, even if it had begun one, unless the result says what was wrong.
	if code != exitUsage && code != exitInterrupted || err != nil && err.Error() == "" {
		if _, failed := io.WriteString(s.out, a.result()); failed != nil && !errors.Is(failed, syscall.EPIPE) {
			code, err = exitUnable, errors.Join(err, fmt.Errorf("writing the result: %w", failed))
		}
	}
	if err != nil && err.Error() != "" {
		reportf(s.err, "grapnel: %s\n", strings.TrimRight(err.Error(), "\n"))
	}
	return code
}

func (a *app) execute(ctx context.Context, args []string) error {
	root := a.root() //nolint:contextcheck // commands have the context of the execution
	root.SetArgs(args)
	for i := range min(2, len(args)) { // the command, or the one behind cobra's __complete
		if c, _, err := root.Find(args[i:]); err == nil {
			a.addFlags(c)
		}
	}
	return root.ExecuteContext(ctx)
}

func (a *app) result() string {
	switch {
	case a.coloured():
		return a.painted()
	case a.terminal:
		return printable(a.out.String())
	}
	return a.out.String()
}

func (a *app) root() *cobra.Command {
	a.flags, a.results = map[*cobra.Command]func(){}, map[*cobra.Command]func() (any, error){}
	c := group("grapnel", "A plugin-based hook runtime for AI-agent hosts")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if asked, _ := c.Flags().GetBool("version"); asked {
			return a.printVersion()
		}
		return c.Help()
	}
	c.Flags().Bool("version", false, "print the version")
	// Cobra would print usage behind every error, which run prints.
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetOut(&a.out)
	c.SetErr(a.err)
	c.SetIn(a.in)
	c.SetFlagErrorFunc(flagError)
	c.PersistentPreRunE = refuseEmpty
	addFlags(c, c.PersistentFlags(), reflect.ValueOf(&a.globalFlags).Elem())
	c.SetHelpCommand(a.helpCommand(c))
	c.AddCommand(
		command[demoResult](a, "demo", "Show in seconds what Grapnel does: a conversation with a model that only pretends", noArgs(), a.demo),
		command[runtime.Compiled](a, "compile", "Run a turn through the plugins, compile its prompt, and show what went in", noArgs(), a.compile),
		completing(command[phases.Outcome](a, "dispatch PHASE", "Run one phase on an input and show what came of it",
			exactlyOne("dispatch needs one PHASE, such as turn.pre_prompt_compile"), a.dispatchPhase), completePhases),
		completing(command[plan.Document](a, "plan [PHASE]", "Show which hooks run, in which order, under which policies and budgets",
			atMost(1, "plan takes at most one PHASE"), a.plan), completePhases),
		command[explain.Result](a, "explain SECTION|SUBSCRIPTION|PLUGIN|TOOL", "Say why a section, subscription, plugin or tool is, or is not, in the prompt, or who said a sentence",
			atMost(1, "explain takes one id"), a.explain),
		command[backtest.Report](a, "backtest", "Say what the configuration would have denied of what your agents did", noArgs(), a.backtest),
		a.manifestCommands(), a.agentsCommands(), a.pluginCommands(), a.rulesCommands(), a.docsCommands(), a.memoryCommands(), a.jobsCommands(),
		group("skills", "Skills: what their authors should change",
			command[skillset.LintReport](a, "lint [DIR]", "Check the skills in a directory against the format's rules", atMost(1, "skills lint takes at most one DIR"), a.skillsLint)),
		group("hooks", "Command hooks of other agents: what of them would run here",
			command[hooksImport](a, "import FILE", "Show what the hooks file of another agent would run, and how to have it run",
				exactlyOne("hooks import needs the FILE with hooks, such as .claude/settings.json"), a.hooksImport)),
		group("config", "The configuration: what is in force and why",
			command[checked](a, "check", "Check the configuration, and show what is in force and where it comes from", noArgs(), a.configCheck),
			command[reloadResult](a, "reload", "Have a running gateway read its configuration and tokens again", noArgs(), a.configReload)),
		completing(command[schemaList](a, "schema [NAME]", "Print the JSON Schema of a result, an input or the configuration",
			atMost(1, "schema takes at most one NAME"), a.schema), a.completeSchemas),
		command[initialised](a, "init", "Write a commented grapnel.yaml to the configuration's place", noArgs(), a.initialise),
		command[listening](a, "serve", "Serve the gateway: threads with their AGENTS.md documents, turns and manifests, by JSON-RPC", noArgs(), a.serve),
		command[noResult](a, "mcp", "Be an MCP server on standard input and output, with the tools of a running gateway", noArgs(), a.serveMCP),
		command[statusResult](a, "status", "Show how a running gateway is: plugins, hooks, issues and their hints", noArgs(), a.status),
		completing(command[hookInstall](a, "install HOST", "Install the hooks that put Grapnel behind an agent: "+strings.Join(agents.Names(), ", "),
			exactlyOne("install takes one HOST"), a.install), completeHosts),
		completing(command[hookInstall](a, "uninstall HOST", "Take Grapnel's hooks out of an agent's file again", exactlyOne("uninstall takes one HOST"), a.uninstall), completeHosts),
		group("hook", "The hooks that agents call Grapnel by",
			completing(command[hookCheck](a, "check HOST", "Send made-up events through the installed hooks, and say what the agent would do",
				exactlyOne("check takes one HOST"), a.hookCheck), completeHosts)),
		command[versionResult](a, "version", "Print the version", noArgs(), func(context.Context, *noFlags, []string) error { return a.printVersion() }),
	)
	addCompletion(c)
	addHelp(c)
	return c
}

// addCompletion adds cobra's command before cobra does, so that it refuses unknown shells as other groups refuse commands.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		onlyHolds(c)
	}
}

// helpTexts are the descriptions and examples of commands, one section "== COMMAND" each.
//
//go:embed help.txt
var helpTexts string

func addHelp(root *cobra.Command) {
	for section := range strings.SplitSeq(strings.TrimPrefix(helpTexts, "== "), "\n== ") {
		name, text, _ := strings.Cut(section, "\n")
		c, _, _ := root.Find(strings.Fields(name)) // a test finds unknown ones
		long, examples, _ := strings.Cut("\n"+strings.TrimRight(text, "\n"), "\nExamples:\n")
		c.Long, c.Example = strings.TrimSpace(long), examples
	}
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short}
	c.AddCommand(commands...)
	onlyHolds(c)
	return c
}

// onlyHolds makes an unknown command of a group an error. Cobra would show help for it, with exit code 0.
func onlyHolds(c *cobra.Command) {
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, sub.Name())
			}
		}
		return usagef("unknown command %q for %q%s; see: %s --help", args[0], c.CommandPath(), suggest.DidYouMean(args[0], names), c.CommandPath())
	}
}

// helpCommand is cobra's, except that an unknown command is an error.
func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	return command[noResult](a, "help [COMMAND]", "Help about any command", nil, func(_ context.Context, _ *noFlags, args []string) error {
		c, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 {
			return usagef("there is no command %q to help with; see: %s --help", strings.Join(args, " "), root.Name())
		}
		a.addFlags(c)
		c.InitDefaultHelpFlag()
		return c.Help()
	})
}

// refuseEmpty refuses an empty value, as an unset variable gives, where it would mean the default.
func refuseEmpty(c *cobra.Command, _ []string) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "" && slices.Contains([]string{"record", "listen", "socket", "persona", "token-file"}, f.Name) {
			err = usagef("--%s is empty; omit it for the default", f.Name)
		}
	})
	return err
}

func completeFlag(c *cobra.Command, flag string, words []string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for unknown flags
}

// Cobra's own checks count arguments and name none.
func atMost(n int, message string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%s, not %q; see: %s --help", message, args[n], c.CommandPath())
		}
		return nil
	}
}

func exactlyOne(message string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("%s; see: %s --help", message, c.CommandPath())
		}
		return nil
	}
}

func noArgs() cobra.PositionalArgs { return atMost(0, "this command takes no arguments") }

func (a *app) logger() (*slog.Logger, error) {
	if a.LogLevel == "off" { // slog has no level above error, and people do not look for numbers
		return slog.New(slog.DiscardHandler), nil
	}
	var level slog.Level
	err := level.UnmarshalText([]byte(cmp.Or(a.LogLevel, "error")))
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level})), err
}

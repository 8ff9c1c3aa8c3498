package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// programFlags are those of commands that also run a program that is in no configuration.
type programFlags struct {
	Transport string `flag:"transport" usage:"how the program behind -- speaks: grpc or stdio (default grpc)" words:"grpc|stdio"`
	GrantAll  bool   `flag:"grant-all" usage:"grant the plugin everything, for this run"`

	dash int // how many arguments stand before "--"; -1 without it
}

func (f *programFlags) parsed(c *cobra.Command) { f.dash = c.ArgsLenAtDash() }

// apply changes the one plugin of a configuration. program says that it is one behind --.
func (f *programFlags) apply(cfg *config.Config, program bool) error {
	if f.Transport != "" && !program {
		return usagef("--transport is for a program behind --; that of a declared plugin stands in the configuration")
	}
	p := &cfg.Plugins[0]
	if program {
		p.Transport = f.Transport
	}
	if f.GrantAll {
		p.Grants = allGrants()
	}
	return nil
}

type callFlags struct {
	programFlags
	recordFlags

	Args    string `flag:"args"    usage:"the tool's arguments: {JSON}, @FILE, or - for standard input"`
	Context string `flag:"context" usage:"JSON {FILE} with the context, or -"`
	Dir     string `flag:"dir"     usage:"working {DIR} (default the current directory)"`
}

func (a *app) pluginCall(ctx context.Context, f *callFlags, args []string) error {
	a.record = f.recordFlags
	target, tool, program, err := callTarget(args, f.dash)
	if err != nil {
		return err
	}
	cfg, name, err := a.runTarget(target, program)
	if err != nil {
		return err
	}
	if err := f.apply(cfg, program); err != nil {
		return err
	}
	return a.callTool(ctx, cfg, name, tool, f)
}

// callTarget separates the tool from the plugin's name, or from the program behind "--", which is at dash.
func callTarget(args []string, dash int) (target []string, tool string, program bool, err error) {
	switch {
	case dash < 0 && len(args) == 2:
		return args[:1], args[1], isProgram(args, dash), nil
	case dash == 1 && len(args) > 1:
		return args[1:], args[0], true, nil
	}
	return nil, "", false, usagef("plugin call needs the NAME of a plugin and a TOOL of it, or a TOOL, -- and a COMMAND; see: grapnel plugin call --help")
}

func (a *app) callTool(ctx context.Context, cfg *config.Config, name, tool string, f *callFlags) error {
	if f.Args == "-" && f.Context == "-" {
		return usagef("--args and --context cannot both be read from standard input")
	}
	arguments, err := a.jsonArgument("args", f.Args)
	if err != nil {
		return err
	}
	where, err := a.contextOf(f.Context, f.Dir)
	if err != nil {
		return err
	}
	where.SessionID = cmp.Or(where.SessionID, "local")
	var res *phases.ToolResult
	err = a.withEngine(ctx, cfg, runtime.Options{}, func(ctx context.Context, eng *runtime.Engine) (err error) {
		if err := started(eng, name); err != nil {
			return err
		}
		session, err := eng.StartSession(ctx, where, "startup") // a tool may keep state, which is kept by session
		if err != nil {
			return refused(fmt.Errorf("the session of the call does not begin: %w", err))
		}
		defer func() { _, ended := session.End(ctx, "done"); err = errors.Join(err, ended) }()
		if err := knownTool(ctx, eng, where, name, tool); err != nil {
			return err
		}
		if res, err = eng.CallTool(ctx, name, phases.ToolCall{Tool: tool, Arguments: arguments, Context: where}); err != nil {
			return refused(fmt.Errorf("the tool %s of the plugin %s failed: %w", tool, name, toolFailure(err)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := a.print(res, func() {
		a.printf("%s", endLine(res.Text()))
		a.printDiagnostics(res.Diagnostics)
	}); err != nil {
		return err
	}
	if res.IsError {
		return refused(fmt.Errorf("the tool %s reports an error to the model", tool))
	}
	return nil
}

// jsonArgument reads a flag that is JSON or, behind "@", the name of a file with it; - is standard input.
func (a *app) jsonArgument(flag, arg string) (json.RawMessage, error) {
	if file, named := strings.CutPrefix(arg, "@"); named || arg == "-" {
		if file == "" {
			return nil, usagef("--%s @: name a file behind @", flag)
		}
		return a.readJSON(flag, file)
	}
	if arg != "" && !json.Valid([]byte(arg)) {
		var v any
		return nil, usagef("--%s %.80q is not JSON (%w); a file is @FILE", flag, arg, json.Unmarshal([]byte(arg), &v))
	}
	return json.RawMessage(arg), nil
}

// knownTool looks for a tool among those that a plugin always has, and those that its hooks would bring into a
// turn. The engine has no other plugins.
func knownTool(ctx context.Context, eng *runtime.Engine, where phases.Context, plugin, tool string) error {
	var names []string
	if d := eng.Descriptions()[plugin]; d != nil {
		for i := range d.Tools {
			names = append(names, d.Tools[i].Name)
		}
	}
	if slices.Contains(names, tool) {
		return nil
	}
	out, err := eng.Dispatch(ctx, where, &phases.PreToolsInput{ToolCalling: true})
	switch {
	case phases.CodeOf(err) == phases.CauseTurnNeeded:
		return nil // the plugin alone knows
	case err != nil:
		return unable(fmt.Errorf("the hooks of the plugin %s that may bring the tool %q cannot be asked: %w", plugin, tool, err))
	}
	for i := range out.Merged.Tools {
		names = append(names, out.Merged.Tools[i].Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if slices.Contains(names, tool) {
		return nil
	}
	const most = 2000
	var said strings.Builder
	for _, d := range phases.DiagnosticsFor(out.Diagnostics, phases.AudienceOperator) {
		said.WriteString(words.If(d.Severity != phases.SeverityInfo, "; "+d.Message))
	}
	if len(names) == 0 {
		return usagef("the plugin %s has no tools%s", plugin, text.Sanitize(said.String(), most))
	}
	return usagef("the plugin %s has no tool %q%s; its tools are: %s%s", plugin, tool, suggest.DidYouMean(tool, names), strings.Join(names, ", "), text.Sanitize(said.String(), most))
}

// toolFailure adds what an operator wants to know: the plugin's own code, or what to do about a refusal.
func toolFailure(err error) error {
	failure, ok := errors.AsType[*phases.Error](err)
	switch {
	case !ok:
		return err
	case failure.Code == phases.CauseForbidden:
		return fmt.Errorf("%w; add it to grants.tools, or use --grant-all", err)
	case failure.PluginCode != "":
		return fmt.Errorf("%w: %s", err, clean(failure.PluginCode)) // its words are in the log
	}
	return err
}

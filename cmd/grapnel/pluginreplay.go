package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/builtin"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/replay"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// replayFlags are the flags of plugin replay.
type replayFlags struct {
	plugin, only string
	// command and args are a program in place of the declared one.
	command string
	args    []string
	diff    bool
}

// replayed is the JSON of plugin replay.
type replayed struct {
	File       string           `json:"file"        jsonschema:"the record"`
	Plugins    []replayedPlugin `json:"plugins"     jsonschema:"one for each plugin and configuration that was recorded"`
	Runs       []*replay.Run    `json:"runs"        jsonschema:"the calls, in the recorded order of each of those plugins"`
	Same       int              `json:"same"        jsonschema:"calls with the recorded answer or failure"`
	Differs    int              `json:"differs"     jsonschema:"calls with another one"`
	Failed     int              `json:"failed"      jsonschema:"calls that failed in place of the recorded answer"`
	Skipped    int              `json:"skipped"     jsonschema:"calls that have no recorded answer: their caller had gone"`
	Recorded   replay.Times     `json:"recorded_ms" jsonschema:"what the calls took when they were recorded"`
	Now        replay.Times     `json:"now_ms"      jsonschema:"what they took now"`
	LeftOut    int              `json:"left_out"    jsonschema:"exchanges that are missing in the file"`
	Why        string           `json:"why"         jsonschema:"why they are missing"`
	Unfinished int              `json:"unfinished"  jsonschema:"lines of the file that are cut off"`
}

// replayedPlugin is one plugin that calls were replayed to.
type replayedPlugin struct {
	Plugin          string `json:"plugin"`
	RecordedVersion string `json:"recorded_version"`
	Version         string `json:"version"`
	RecordedSHA256  string `json:"recorded_sha256"`
	SHA256          string `json:"sha256"`
	Runs            int    `json:"runs"`
}

// pluginReplayCommand is for authors and operators: did a change of the plugin change
// its answers, and how does it behave on what happened there and then.
func (a *app) pluginReplayCommand() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Send recorded calls to the plugins again, without host or model, and compare the answers",
		Long: "Replay reads a file of --record, starts each plugin in it alone, configures it as it was,\n" +
			"and sends it the recorded calls, one after another, with their clock and ids. What it\n" +
			"asks of its host, a model included, is answered from the record. Nothing is applied.\n\n" +
			"The program is that of the configuration's plugin of the same name, of the built-in\n" +
			"plugin, or of --command with the arguments behind --. Secrets are not in a record:\n" +
			"they are taken from that configuration, or from the environment.\n\n" +
			"Exit code 1 says that an answer differs, or that a call failed which had not; 3 that a\n" +
			"plugin did not start.",
		Example: "  grapnel compile --record calls.jsonl && grapnel plugin replay calls.jsonl\n" +
			"  grapnel plugin replay calls.jsonl --plugin guard --command ./bin/guard --diff -- --strict",
		RunE: func(c *cobra.Command, args []string) error {
			file, err := f.arguments(args, c.ArgsLenAtDash())
			if err != nil {
				return err
			}
			return a.pluginReplay(c.Context(), file, &f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.plugin, "plugin", "", "only the calls of the plugin of this `NAME`")
	flags.StringVar(&f.only, "only", "", "only the calls of one `SUBSCRIPTION`, or PLUGIN.TOOL")
	flags.StringVar(&f.command, "command", "", "the program `PATH` to replay to; its arguments stand behind --")
	flags.BoolVar(&f.diff, "diff", false, "show what differs")
	return c
}

// arguments takes the file and the program's arguments apart.
func (f *replayFlags) arguments(args []string, dash int) (string, error) {
	if dash >= 0 {
		args, f.args = args[:dash], args[dash:]
	}
	switch {
	case len(args) != 1:
		return "", usagef("plugin replay needs one FILE of --record; see: grapnel plugin replay --help")
	case len(f.args) > 0 && f.command == "":
		return "", usagef("arguments behind -- are those of a program: name it with --command")
	}
	return args[0], nil
}

// pluginReplay plays all parts of a record, each on an engine of its own.
func (a *app) pluginReplay(ctx context.Context, file string, f *replayFlags) error {
	all, err := readRecord(file, f)
	if err != nil {
		return err
	}
	places := make([]*config.Config, len(all.Parts))
	for i, part := range all.Parts { // mistakes are told before anything is started
		if places[i], err = a.replayConfig(part, f); err != nil {
			return err
		}
	}
	result := &replayed{
		File: file, Plugins: []replayedPlugin{}, Runs: []*replay.Run{}, LeftOut: all.LeftOut, Why: all.Why, Unfinished: all.Unfinished,
	}
	for i, part := range all.Parts {
		if err := a.replayPart(ctx, part, places[i], result); err != nil {
			return err
		}
	}
	result.sum()
	if a.json {
		err = a.printJSON(result)
	} else {
		a.printReplayed(result, f.diff)
	}
	if err == nil && result.Differs+result.Failed > 0 {
		return answerNo()
	}
	return err
}

// readRecord reads what is to be played.
func readRecord(file string, f *replayFlags) (*replay.Recording, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, usagef("%s: %w", file, unwrapPath(err))
	}
	all, err := replay.Read(in, replay.Filter{Plugin: f.plugin, Subscription: f.only})
	if err = errors.Join(err, in.Close()); err != nil {
		if _, wrong := errors.AsType[*replay.FilterError](err); wrong {
			return nil, usagef("%s: %w", file, err)
		}
		return nil, unable(fmt.Errorf("%s: %w", file, err))
	}
	var names []string
	for _, part := range all.Parts {
		names = append(names, part.Plugin)
	}
	if names = slices.Compact(names); f.command != "" && len(names) > 1 {
		return nil, usagef("--command is one program, and the record has calls of several plugins; choose one with --plugin: %s", strings.Join(names, ", "))
	}
	return all, nil
}

// replayConfig is a configuration with the one plugin, as it was configured.
func (a *app) replayConfig(part *replay.Part, f *replayFlags) (*config.Config, error) {
	declared, cfg, err := a.replayDeclared(part, f)
	if err != nil {
		return nil, err
	}
	c := part.Configuration
	own, err := config.Filled(c.Config, c.Secrets, func(pointer, name string) (string, error) {
		return secretOf(part.Plugin, declared.Config, pointer, name)
	})
	if err != nil {
		return nil, err
	}
	declared.Name, declared.Config, declared.Subscriptions = part.Plugin, own, nil
	// The engine asks nobody for grants on the way of a replay, but tells the plugin
	// which services there are.
	declared.Grants.Host = c.Services
	cfg = onlyPlugin(cfg, declared)
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{}
	return cfg, nil
}

// replayDeclared says how the plugin is started: by --command, as the configuration
// declares it, or as the built-in plugin that it was.
func (a *app) replayDeclared(part *replay.Part, f *replayFlags) (config.Plugin, *config.Config, error) {
	if f.command != "" {
		cfg, _, err := programConfig(append([]string{f.command}, f.args...))
		if err != nil {
			return config.Plugin{}, nil, err
		}
		program := cfg.Plugins[0]
		if a.config == "" {
			return program, cfg, nil
		}
		// The file is there for the secrets.
		from, _, err := a.loadConfig()
		if err != nil {
			return config.Plugin{}, nil, err
		}
		for i := range from.Plugins {
			if from.Plugins[i].Name == part.Plugin {
				program.Config = from.Plugins[i].Config
			}
		}
		return program, cfg, nil
	}
	cfg, from, err := a.loadConfig()
	if err != nil {
		return config.Plugin{}, nil, err
	}
	for i := range cfg.Plugins {
		if cfg.Plugins[i].Name == part.Plugin {
			return cfg.Plugins[i], cfg, nil
		}
	}
	if part.SHA256 == "builtin" && slices.Contains(builtin.Names(), part.Own) {
		return config.Plugin{Builtin: part.Own}, cfg, nil
	}
	return config.Plugin{}, nil, usagef("the recorded plugin %q is not declared (%s): name a --config that declares it, or its program with --command",
		part.Plugin, from.name())
}

// secretOf finds a value that is not in the record: what the configuration in force
// has at its place, or else the environment.
func secretOf(plugin string, own json.RawMessage, pointer, name string) (string, error) {
	if value, ok := textAt(own, pointer); ok {
		return value, nil
	}
	if value, ok := os.LookupEnv(name); ok {
		return value, nil
	}
	return "", usagef("the plugin %s was recorded without the secret at %s of its configuration: set $%s, or name a --config that has it", plugin, pointer, name)
}

// textAt is the text at a JSON pointer.
func textAt(data json.RawMessage, pointer string) (string, bool) {
	var v any
	if json.Unmarshal(data, &v) != nil {
		return "", false
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, token := range strings.Split(pointer, "/")[1:] {
		switch at := v.(type) {
		case map[string]any:
			v = at[unescape.Replace(token)]
		case []any:
			i := 0
			if _, err := fmt.Sscan(token, &i); err != nil || i < 0 || i >= len(at) {
				return "", false
			}
			v = at[i]
		default:
			return "", false
		}
	}
	text, ok := v.(string)
	return text, ok
}

// replayPart plays one part.
func (a *app) replayPart(ctx context.Context, part *replay.Part, cfg *config.Config, result *replayed) error {
	o := runtime.Options{
		Services: map[string]runtime.Service{},
		Host:     func(string) phases.Host { return part.Host },
	}
	for _, name := range part.Configuration.Services {
		o.Services[name] = runtime.Service{} // it is there; part.Host answers
	}
	standard := phases.Standard()
	for _, phase := range part.Phases {
		if _, known := standard.Lookup(phase); !known && !slices.ContainsFunc(o.Phases, func(r phases.Row) bool { return r.Phase == phase }) {
			o.Phases = append(o.Phases, phases.Custom(phase, "a phase of the recorded host's own", 0))
		}
	}
	return a.withEngine(ctx, cfg, o, func(ctx context.Context, eng *runtime.Engine) error {
		if err := started(eng, part.Plugin); err != nil {
			return err
		}
		row := replayedPlugin{Plugin: part.Plugin, RecordedVersion: part.Version, RecordedSHA256: part.SHA256, Runs: part.Len()}
		for _, now := range eng.Plugins() {
			row.Version, row.SHA256 = now.Version, now.SHA256
		}
		result.Plugins = append(result.Plugins, row)
		played := a.newTally("replaying %s of " + strconv.Itoa(part.Len()))
		defer played.stop()
		err := part.Play(ctx, eng, len(result.Runs)+1, func(run *replay.Run) {
			result.Runs = append(result.Runs, run)
			played.add()
		})
		if err != nil {
			return unable(err)
		}
		return nil
	})
}

// sum counts the outcomes and their times.
func (r *replayed) sum() {
	var was, now []float64
	for _, run := range r.Runs {
		switch run.Outcome {
		case replay.Same:
			r.Same++
		case replay.Differs:
			r.Differs++
		case replay.Failed:
			r.Failed++
		case replay.Skipped:
			r.Skipped++
		}
		was, now = append(was, run.Recorded.MS), append(now, run.Now.MS)
	}
	r.Recorded, r.Now = replay.TimesOf(was), replay.TimesOf(now)
}

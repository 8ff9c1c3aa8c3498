package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/cli/replay"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

type runFlags struct {
	dispatchFlags
	programFlags

	Phase string `flag:"phase" usage:"the {PHASE} to dispatch (default: the one that the plugin has hooks in)"`
}

func (a *app) pluginRun(ctx context.Context, f *runFlags, args []string) error {
	program := isProgram(args, f.dash)
	cfg, name, err := a.runTarget(args, program)
	if err != nil {
		return err
	}
	if err := f.apply(cfg, program); err != nil {
		return err
	}
	return a.runPlugin(ctx, cfg, name, f)
}

// isProgram reports whether the first argument is a program: it stands behind "--", or it is a path, which no name of a
// plugin is.
func isProgram(args []string, dash int) bool {
	return dash == 0 || dash < 0 && len(args) > 0 && filepath.Base(args[0]) != args[0]
}

func (a *app) runTarget(args []string, program bool) (*config.Config, string, error) {
	switch {
	case len(args) == 0:
		return nil, "", usagef("plugin run needs the NAME of a plugin, or -- and a COMMAND; see: grapnel plugin run --help")
	case program:
		return programConfig(args)
	case len(args) > 1:
		return nil, "", usagef("plugin run takes one NAME, not %q; put -- before a COMMAND with arguments", args[1])
	}
	cfg, from, err := a.loadConfig()
	if err != nil {
		return nil, "", err
	}
	cfg, err = alone(cfg, from, args[0])
	return cfg, args[0], err
}

// A bare name is looked up in PATH; any other path is relative to the working directory.
func programConfig(args []string) (*config.Config, string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, "", usagef("the working directory: %w", err)
	}
	path, err := config.ResolveCommand(dir, args[0], os.LookupEnv)
	if err != nil {
		return nil, "", unable(fmt.Errorf("the plugin did not start: %w", err))
	}
	// The name is the first part of subscription ids, so a readable one is worth some code.
	base := filepath.Base(path)
	name := strings.TrimSuffix(base, filepath.Ext(base))
	if !phases.ValidPluginName(name) {
		name = "program"
	}
	p := config.Plugin{Name: name, Command: args[0], Path: path, Args: absoluteFiles(dir, args[1:])}
	return &config.Config{Version: 1, Plugins: []config.Plugin{p}}, name, nil
}

// absoluteFiles returns arguments with the absolute paths of files that they name in dir: a plugin runs in a directory of
// its own, where "python3 plugin.py" would find nothing.
func absoluteFiles(dir string, args []string) []string {
	out := slices.Clone(args)
	for i, arg := range out {
		path := filepath.Join(dir, arg)
		if info, err := os.Stat(path); !filepath.IsAbs(arg) && err == nil && info.Mode().IsRegular() {
			out[i] = path
		}
	}
	return out
}

// allGrants includes the sections that no wildcard covers.
func allGrants() phases.Grants {
	all := []string{"*"}
	return phases.Grants{
		Contribute: all, Sections: []string{"*", "agents_md", "memory_recall", "skills_runtime"}, StableSections: all, Join: all,
		Policies: all, Domains: all, Tools: all, Host: all, Read: all, Write: all, Net: all, See: all,
	}
}

// runPlugin starts the plugin twice without --phase: first to ask for its phases.
func (a *app) runPlugin(ctx context.Context, cfg *config.Config, name string, f *runFlags) error {
	phase := phases.Phase(f.Phase)
	if phase == "" {
		d, err := a.describe(ctx, cfg, origin{}, name) // cfg declares it
		if err != nil {
			return err
		}
		if phase, err = defaultPhase(name, d, f.Input != ""); err != nil {
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

// hookPhases are the phases that a plugin has hooks in. One without any has nothing to run.
func hookPhases(name string, d *phases.Description) ([]phases.Phase, error) {
	var list []phases.Phase
	for i := range d.Hooks {
		list = append(list, d.Hooks[i].Phase)
	}
	if len(list) == 0 {
		return nil, refused(errors.New("the plugin " + name + " has no hooks: there is nothing to run"))
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// defaultPhase is the plugin's only phase, or the one that adds to the prompt, which needs no input.
func defaultPhase(name string, d *phases.Description, hasInput bool) (phases.Phase, error) {
	list, err := hookPhases(name, d)
	switch {
	case err != nil:
		return "", err
	case len(list) == 1:
		return list[0], nil
	case !hasInput && slices.Contains(list, phases.PrePromptCompile):
		return phases.PrePromptCompile, nil
	}
	return "", usagef("the plugin %s has hooks in several phases; choose one with --phase: %s", name, joined(list))
}

// takesPart refuses a phase in which the plugin would not be called.
func takesPart(name string, d *phases.Description, phase phases.Phase) error {
	if d == nil {
		return nil // the outcome says why
	}
	list, err := hookPhases(name, d)
	if err == nil && !slices.Contains(list, phase) {
		return usagef("the plugin %s has no hook in the phase %s; those that it has hooks in are: %s", name, phase, joined(list))
	}
	return err
}

type replayFlags struct {
	Plugin  string `flag:"plugin"  usage:"only the calls of the plugin of this {NAME}"`
	Only    string `flag:"only"    usage:"only the calls of one {SUBSCRIPTION}, or PLUGIN.TOOL"`
	Command string `flag:"command" usage:"the program {PATH} to replay to; its arguments stand behind --"`
	Diff    bool   `flag:"diff"    usage:"show what differs"`

	dash int
	args []string // of the program
}

func (f *replayFlags) parsed(c *cobra.Command) { f.dash = c.ArgsLenAtDash() }

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
	Omitted    int              `json:"omitted"     jsonschema:"exchanges that are missing in the file"`
	Why        string           `json:"why"         jsonschema:"why they are missing"`
	Unfinished int              `json:"unfinished"  jsonschema:"lines of the file that are cut off"`
}

type replayedPlugin struct {
	Plugin          string `json:"plugin"`
	RecordedVersion string `json:"recorded_version"`
	Version         string `json:"version"`
	RecordedSHA256  string `json:"recorded_sha256"`
	SHA256          string `json:"sha256"`
	Runs            int    `json:"runs"`
}

// pluginReplay plays each part of a record on an engine of its own.
func (a *app) pluginReplay(ctx context.Context, f *replayFlags, args []string) error {
	if f.dash >= 0 {
		args, f.args = args[:f.dash], args[f.dash:]
	}
	switch {
	case len(args) != 1:
		return usagef("plugin replay needs one FILE of --record; see: grapnel plugin replay --help")
	case len(f.args) > 0 && f.Command == "":
		return usagef("arguments behind -- are those of a program: name it with --command")
	}
	file := args[0]
	all, err := readRecord(file, f)
	if err != nil {
		return err
	}
	places := make([]*config.Config, len(all.Parts))
	for i, part := range all.Parts { // mistakes are reported before anything is started
		if places[i], err = a.replayConfig(part, f); err != nil {
			return err
		}
	}
	result := &replayed{
		File: file, Plugins: []replayedPlugin{}, Runs: []*replay.Run{}, Omitted: all.Omitted, Why: all.Why, Unfinished: all.Unfinished,
	}
	for i, part := range all.Parts {
		if err := a.replayPart(ctx, part, places[i], result); err != nil {
			return err
		}
	}
	result.sum()
	return a.answer(result.Differs+result.Failed == 0, result, func() { a.printReplayed(result, f.Diff) })
}

func readRecord(file string, f *replayFlags) (*replay.Recording, error) {
	in, err := openNamed(file)
	if err != nil {
		return nil, usagef("%s: %w", file, err)
	}
	all, err := replay.Read(in, replay.Filter{Plugin: f.Plugin, Subscription: f.Only})
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
	if names = slices.Compact(names); f.Command != "" && len(names) > 1 {
		return nil, usagef("--command is one program, and the record has calls of several plugins; choose one with --plugin: %s", strings.Join(names, ", "))
	}
	return all, nil
}

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
	// A replay checks no grants, but the plugin is told which services exist.
	declared.Grants.Host = c.Services
	cfg = onlyPlugin(cfg, declared)
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{}
	return cfg, nil
}

// replayDeclared says how the plugin is started: by --command, as it is configured, or as the built-in plugin it was.
func (a *app) replayDeclared(part *replay.Part, f *replayFlags) (p config.Plugin, cfg *config.Config, err error) {
	var program *config.Config
	if f.Command != "" {
		program, _, err = programConfig(append([]string{f.Command}, f.args...))
		if err != nil {
			return p, nil, err
		}
		if a.Config == "" {
			return program.Plugins[0], program, nil
		}
	}
	cfg, from, err := a.loadConfig()
	if err != nil {
		return p, nil, err
	}
	i := slices.IndexFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Name == part.Plugin })
	switch {
	case program != nil:
		if p = program.Plugins[0]; i >= 0 {
			p.Config = cfg.Plugins[i].Config // it has the secrets
		}
		return p, program, nil
	case i >= 0:
		return cfg.Plugins[i], cfg, nil
	case part.SHA256 == "builtin" && slices.Contains(firstParty().Names(), part.Own):
		return config.Plugin{Builtin: part.Own}, cfg, nil
	}
	return p, nil, usagef("the recorded plugin %q is not declared (%s): name a --config that declares it, or its program with --command",
		part.Plugin, from.name())
}

// secretOf finds a secret, which a record never has, in the configuration or the environment.
func secretOf(plugin string, own json.RawMessage, pointer, name string) (string, error) {
	if value, ok := textAt(own, pointer); ok {
		return value, nil
	}
	if value, ok := os.LookupEnv(name); ok {
		return value, nil
	}
	return "", usagef("the plugin %s was recorded without the secret at %s of its configuration: set $%s, or name a --config that has it", plugin, pointer, name)
}

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
		played := a.startCount("replaying %s of " + strconv.Itoa(part.Len()))
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

func (r *replayed) sum() {
	var was, now []float64
	counts := map[replay.Outcome]*int{replay.Same: &r.Same, replay.Differs: &r.Differs, replay.Failed: &r.Failed, replay.Skipped: &r.Skipped}
	for _, run := range r.Runs {
		*counts[run.Outcome]++
		was, now = append(was, run.Recorded.MS), append(now, run.Now.MS)
	}
	r.Recorded, r.Now = replay.TimesOf(was), replay.TimesOf(now)
}

const manyRuns = 50 // how many runs with the same answer a table shows

func (a *app) printReplayed(r *replayed, diff bool) {
	a.printf("%s", rule("replay of "+clean(r.File)))
	for _, p := range r.Plugins {
		switch {
		case p.Version != p.RecordedVersion:
			a.printf("%s: version %s, recorded was %s\n", clean(p.Plugin), clean(p.Version), clean(p.RecordedVersion))
		case p.SHA256 != p.RecordedSHA256:
			a.printf("%s: another program than the recorded one\n", clean(p.Plugin))
		}
	}
	t := newTable("runs", ">run|subscription|answer|why|>recorded ms|>now ms")
	same := 0
	for _, run := range r.Runs {
		if run.Outcome == replay.Same {
			same++
		}
		if run.Outcome != replay.Same || same <= manyRuns {
			t.add(run.Run, run.Subscription, run.Outcome, whyOutcome(run), run.Recorded.MS, run.Now.MS)
		}
	}
	a.printTable(t)
	if same > manyRuns {
		a.printf("  … and %s more that are the same\n", text.Thousands(same-manyRuns))
	}
	if diff {
		a.printDifferences(r.Runs)
	}
	a.printf("\n%d same, %d differ, %d failed%s\n", r.Same, r.Differs, r.Failed, words.If(r.Skipped > 0, fmt.Sprintf(", %d with nothing to compare with", r.Skipped)))
	a.printf("p50 %s ms (recorded %s), p99 %s ms (recorded %s)\n", words.Millis(r.Now.P50), words.Millis(r.Recorded.P50), words.Millis(r.Now.P99), words.Millis(r.Recorded.P99))
	if r.Omitted > 0 {
		a.printf("%s missing in the record: %s\n", words.Count(r.Omitted, "exchange is", "exchanges are"), clean(r.Why))
	}
	if r.Unfinished > 0 {
		a.printf("%s of the record %s cut off\n", words.Count(r.Unfinished, "line", "lines"), words.Plural(r.Unfinished, "is", "are"))
	}
}

func whyOutcome(run *replay.Run) string {
	var words []string
	switch {
	case run.Outcome == replay.Skipped:
		words = append(words, "its caller had gone")
	case run.Now.Code != run.Recorded.Code && run.Now.Code != "":
		words = append(words, run.Now.Code)
	case run.Now.Code != run.Recorded.Code:
		words = append(words, "recorded was "+run.Recorded.Code)
	case run.Now.Code != "":
		words = append(words, run.Now.Code+", as recorded")
	case run.Outcome == replay.Differs:
		words = append(words, run.Differences[0].Pointer)
	}
	if len(run.Unrecorded) > 0 {
		words = append(words, "asked for "+strings.Join(run.Unrecorded, ", ")+", which is not in the record")
	}
	return strings.Join(words, "; ")
}

func (a *app) printDifferences(runs []*replay.Run) {
	for _, run := range runs {
		if len(run.Differences) == 0 {
			continue
		}
		a.printf("\n%s", rule("run "+text.Thousands(run.Run)+": "+clean(run.Subscription)))
		for _, d := range run.Differences {
			was, now := apart(d.Recorded, d.Now)
			a.printf("%s\n", clean(d.Pointer))
			a.printf("  recorded  %s\n", was)
			a.printf("  now       %s\n", now)
		}
		if run.Now.Message != "" {
			a.printf("  %s\n", clean(run.Now.Message))
		}
	}
}

// apart shows long values from shortly before the first difference.
func apart(was, now json.RawMessage) (string, string) {
	a, b := cmp.Or(string(was), "(nothing)"), cmp.Or(string(now), "(nothing)")
	const before, enough = 30, 60
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	if same < enough {
		return clean(a), clean(b)
	}
	from := same - before
	return clean("…" + strings.ToValidUTF8(a[from:], "")), clean("…" + strings.ToValidUTF8(b[from:], ""))
}

package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/lint"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/settings"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/phases"
)

func (a *app) agentsCommands() *cobra.Command {
	explain := command[fileExplanation](a, "explain PATH", "Say why a file is, or is not, among the AGENTS.md files of its directory, or their imports",
		exactlyOne("explain needs one PATH of a file, such as service/AGENTS.md"), a.agentsExplain)
	add := a.flags[explain]
	a.flags[explain] = func() {
		add()
		explain.Flags().Lookup("dir").Usage = "working `DIR` of the chain (default the file's directory)"
	}
	return group("agents", "AGENTS.md files: which apply to a directory, and what is wrong with them",
		command[chain.Report](a, "chain", "Show the AGENTS.md files that apply to a directory, what was kept of each, and why", noArgs(), a.agentsChain),
		command[lazy.Touched](a, "touch --state FILE PATH...", "Report which AGENTS.md files apply to paths that a tool touched, each once", nil, a.agentsTouch),
		command[lazy.Resumed](a, "resume --state FILE", "Report what changed of a session's AGENTS.md files since it was left", noArgs(), a.agentsResume),
		command[lint.Report](a, "lint", "Check the AGENTS.md files of a whole source tree", noArgs(), a.agentsLint),
		explain,
	)
}

type agentsFlags struct {
	Dir    string       `flag:"dir"    usage:"working {DIR} (default the current directory)"`
	Preset chain.Preset `flag:"preset" suggest:"default\tGrapnel's own way|codex\twhat users of codex get|codelia\twhat users of codelia get|claude\twhat users of Claude Code get|gemini\twhat users of Gemini CLI get|opencode\twhat users of opencode get|cursor\twhat users of Cursor get" usage:"the {NAME} of the options to begin with, such as default, codex or claude (default the configuration's)"`
}

type limitFlags struct {
	agentsFlags

	MaxBytes *int `flag:"max-bytes" usage:"the text has at most {N} bytes; 0 is no text (default the configuration's)"`
}

type chainFlags struct {
	limitFlags

	MaxFiles  *int        `flag:"max-files"  usage:"at most {N} files take part (default the configuration's)"`
	Names     []string    `flag:"name"       usage:"a candidate in each directory, a {FILE} name; the first that is there wins; may be repeated"`
	Fallbacks []string    `flag:"fallback"   usage:"a candidate after those, a {FILE} name such as CLAUDE.md; may be repeated"`
	Markers   []string    `flag:"marker"     usage:"the {NAME} of a file or directory that makes a directory the root; may be repeated, '' is none"`
	Root      string      `flag:"root"       usage:"the root is {DIR}, whatever the markers say"`
	Allow     []string    `flag:"allow"      usage:"a {DIR} outside of the root that links may lead to; may be repeated"`
	Trust     chain.Trust `flag:"trust"      usage:"which roots' files are instructions: all, listed or none"`
	ChildHint *bool       `flag:"child-hint" usage:"add a text on how files of nested directories work"`
}

// layer returns the settings that the flags give over those of the configuration.
func (f *agentsFlags) layer() settings.Config { return settings.Config{Preset: f.Preset} }

func (f *limitFlags) layer() settings.Config {
	c := f.agentsFlags.layer()
	c.Budget.Total = f.MaxBytes
	return c
}

// layer drops empty strings of lists, so that a list can be emptied.
func (f *chainFlags) layer() (settings.Config, error) {
	c := f.limitFlags.layer()
	c.Names, c.FallbackNames, c.Markers, c.Trust, c.Budget.Files, c.ChildHint = f.Names, f.Fallbacks, f.Markers, f.Trust, f.MaxFiles, f.ChildHint
	for _, list := range []*[]string{&c.Names, &c.FallbackNames, &c.Markers} {
		*list = slices.DeleteFunc(*list, func(name string) bool { return name == "" })
	}
	if f.Root != "" {
		root, err := filepath.Abs(f.Root)
		if err != nil {
			return c, usagef("--root %s: %w", f.Root, err)
		}
		c.Root = root
	}
	for _, dir := range f.Allow {
		path, err := filepath.Abs(dir)
		if err != nil || dir == "" {
			return c, usagef("--allow %q: give the path of a directory", dir)
		}
		c.Allow = append(c.Allow, path)
	}
	return c, nil
}

func flagMistake(err error) error {
	wrong, ok := errors.AsType[*phases.ConfigError](err)
	if !ok {
		return err
	}
	for _, f := range [][2]string{
		{"/preset", "preset"},
		{"/trust", "trust"},
		{"/names/", "name"},
		{"/fallback_names/", "fallback"},
		{"/markers/", "marker"},
		{"/budget/total", "max-bytes"},
		{"/budget/files", "max-files"},
		{"/resolver/delivery", "delivery"},
	} {
		if strings.HasPrefix(wrong.Pointer, f[0]) {
			return usagef("--%s: %s", f[1], wrong.Message)
		}
	}
	return usagef("%w", err)
}

type agentsInForce struct {
	settings.Settings

	dir   string
	chars int    // bounds the text in characters
	off   string // says why the configuration puts no such files into prompts; empty if it does
}

// agentsInForce are the settings of the configuration for a directory, under a layer that flags give.
func (a *app) agentsInForce(dir string, flags settings.Config) (*agentsInForce, error) {
	if err := flags.Check(); err != nil {
		return nil, flagMistake(err)
	}
	where := phases.Context{Dir: dir}
	if err := fillDir(&where); err != nil {
		return nil, err
	}
	cfg, from, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	plugin, off := &config.Plugin{Name: agentsName}, "the configuration ("+from.name()+") has no plugin agentsdoc"
	if i := slices.IndexFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Builtin == agentsName }); i >= 0 {
		plugin, off = &cfg.Plugins[i], ""
	}
	configured, err := settings.Parse(plugin.Config)
	if err != nil {
		return nil, usagef("%s: the configuration of the plugin %s: %w", from.name(), plugin.Name, err)
	}
	getenv := func(name string) string { return cmp.Or(os.Getenv(name), plugin.Env.Set[name].Value) }
	s, err := settings.New(configured, getenv, flags)
	if err != nil {
		return nil, usagef("%w", err)
	}
	switch {
	case off != "":
	case !s.Enabled:
		off = "the plugin " + plugin.Name + " is switched off in the configuration"
	case s.Source == settings.SourceTree:
		off = "the plugin " + plugin.Name + " takes its texts from the thread tree"
	}
	s.Options.Lazy = s.Options.Resolver.Delivery != chain.DeliverOff // as the plugin has it
	taken := promptChars(cfg, plugin, "prompt", chain.FileChars(&s.Options))
	s.Options = chain.FollowChars(s.Options, taken)
	chars := chain.TextChars(taken, (&chain.Chain{Options: s.Options}).Frame())
	return &agentsInForce{Settings: s, dir: where.Dir, chars: chars, off: off}, nil
}

const agentsName = "agentsdoc"

// promptChars is how many characters a prompt takes from a subscription of the plugin, which proposes some.
func promptChars(cfg *config.Config, p *config.Plugin, hook string, proposed int) int {
	limit := proposed
	if b := p.Subscriptions[p.Name+"."+hook].Budget; b != nil && b.Chars > 0 {
		limit = b.Chars
	}
	return min(limit, cmp.Or(cfg.Budgets.Turn.Chars, config.DefaultTurnChars))
}

func (f *agentsInForce) render(c chain.Chain) chain.Rendering {
	return chain.RenderForHost(c, chain.Budget{Bytes: c.Options.Budget.Total, Chars: f.chars})
}

func inTree(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil || root == "" || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return path
	}
	return filepath.ToSlash(rel)
}

type agentsChainFlags struct {
	chainFlags

	State string `flag:"state" usage:"write what a session has to remember to {FILE}"`
	Text  bool   `flag:"text"  usage:"print the text alone, as it is"`
}

func (a *app) agentsChain(ctx context.Context, f *agentsChainFlags, _ []string) error {
	if f.Text && a.JSON {
		return usagef("--text and --json contradict each other: the JSON has the text in it")
	}
	in, c, err := a.chainInForce(&f.chainFlags)
	if err != nil {
		return err
	}
	r := in.render(c)
	if f.State != "" {
		if err := beginState(ctx, f.State, lazy.Begin(0, c, r)); err != nil {
			return err
		}
	}
	report := chain.NewReport(c, r)
	return a.print(report, func() {
		if f.Text {
			a.printf("%s", report.Text)
		} else {
			a.printChain(&report, &r, in)
		}
	})
}

func (a *app) chainInForce(f *chainFlags) (*agentsInForce, chain.Chain, error) {
	layer, err := f.layer()
	if err != nil {
		return nil, chain.Chain{}, err
	}
	in, err := a.agentsInForce(f.Dir, layer)
	if err != nil {
		return nil, chain.Chain{}, err
	}
	return in, chain.Resolve(chain.OS{}, in.dir, in.Options), nil
}

// printCuts prints the limits that cut a rendering.
func (a *app) printCuts(r *chain.Rendering) {
	for _, bound := range r.CutBy {
		switch bound {
		case chain.BoundBytes:
			a.printf("cut by  bytes: shorten the files, or raise budget.total and budget.file in the plugin's configuration\n")
		case chain.BoundChars:
			a.printf("cut by  characters: shorten the files, or raise the lesser of budget.chars of the subscription agentsdoc.prompt and budgets.turn.chars\n")
		case chain.BoundFiles:
			a.printf("cut by  the number of files: join some, or raise budget.files in the plugin's configuration\n")
		}
	}
}

func (a *app) printChain(rep *chain.Report, r *chain.Rendering, in *agentsInForce) {
	a.printf("%s", rule("agents chain"))
	a.printChainHead(rep, in)
	a.printSources(rep)
	a.printChainBudget(rep, r, in.chars)
	a.printCuts(r)
	a.printAgentsProblems("diagnostics", rep.Root, rep.Diagnostics)
	if rep.Text == "" {
		a.println("\nthere is no text: the prompt has nothing from instruction files")
		return
	}
	a.printf("\n%s characters of text, %s; --text prints it\n", text.Thousands(r.Chars), cmp.Or(map[chain.Placement]string{
		chain.PlaceUserMessage: "a message of the user before the first one", chain.PlaceSystemMessage: "a system message of its own",
	}[r.Placement], "the section agents_md of the system prompt"))
}

func (a *app) printChainHead(rep *chain.Report, in *agentsInForce) {
	o := &rep.Options
	root := "the same: no directory above it counts as marked by " + strings.Join(o.Markers, " or ")
	switch {
	case rep.Root == "":
		root = "none: no file is read"
	case o.Root != "":
		root = rep.Root + ", as the options say"
	case rep.RootFound:
		root = rep.Root + ", which has " + foundMarker(rep)
	case len(o.Markers) == 0:
		root = "the same: the options have no markers"
	}
	a.printf("dir     %s\nroot    %s\npreset  %s", clean(rep.Dir), clean(root), rep.Preset)
	if o.Trust != chain.TrustAll {
		a.printf(", trust %s", o.Trust)
	}
	a.println()
	if in.off != "" {
		a.printf("note    %s: a prompt by it has none of this\n", clean(in.off))
	}
}

func foundMarker(rep *chain.Report) string {
	for _, name := range rep.Options.Markers {
		if _, err := os.Lstat(filepath.Join(rep.Root, name)); err == nil {
			return name
		}
	}
	return "a marker" // a moment ago
}

// printSources prints the files from the root to the working directory, with paths as they are in the tree.
func (a *app) printSources(rep *chain.Report) {
	if rep.Root == "" {
		return
	}
	a.println()
	near := false
	printList(a, "", "file|scope|>kept|>bytes|state|why", rep.Sources, func(s *chain.Source) cells {
		near = near || filepath.Dir(s.Path) == rep.Dir
		name := inTree(rep.Root, s.Path)
		if rest := inTree(rep.Options.Home, name); filepath.IsAbs(name) && rest != name {
			name = "~/" + rest
		}
		return cells{name, s.Scope, text.Thousands(int(s.Kept)), text.Thousands(int(s.Bytes)), s.State, whySource(rep.Root, s)}
	})
	if !near {
		a.println("  the directory has no file of its own")
	}
}

func whySource(root string, s *chain.Source) string {
	switch s.State { //nolint:exhaustive // the others have a reason
	case chain.StateTruncated:
		return text.Thousands(int(s.Bytes-s.Kept)) + " bytes cut"
	case chain.StateDuplicate:
		return "the same as " + inTree(root, s.DuplicateOf)
	case chain.StateKept:
		return ""
	}
	return cmp.Or(map[string]string{
		string(chain.CodeOmittedBudget): "over the text budget",
		string(chain.CodeOmittedCount):  "more files than are allowed",
		chain.ReasonBlank:               "it has no text",
		chain.ReasonExcluded:            "the options exclude it",
		string(chain.CodeEmptyOverride): "an override without text",
		string(chain.CodeUntrustedRoot): "its root is not trusted",
		string(chain.CodeBinary):        "it is not text",
		string(chain.CodeSymlinkEscape): "its link leads out of the tree",
		string(chain.CodeGitMetadata):   "it leads into git's own files",
		string(chain.CodePermission):    "it may not be read",
		string(chain.CodeReadError):     "it cannot be read",
	}[s.Reason], strings.ReplaceAll(s.Reason, "_", " "))
}

func (a *app) printChainBudget(rep *chain.Report, r *chain.Rendering, chars int) {
	limits := &rep.Options.Budget
	used, files, delimited := len(rep.Text), 0, rep.Options.Layout == chain.LayoutDelimited
	if !delimited {
		used = 0
	}
	for i := range rep.Sources {
		s := &rep.Sources[i]
		if s.DeliveredBytes == 0 {
			continue
		}
		files++
		// The other layouts count the files' own bytes, and the user's file is free.
		if !delimited && s.Scope != chain.ScopeGlobal && s.Scope != chain.ScopeManaged {
			used += int(s.Kept)
		}
	}
	amount := func(n, limit int) string { return text.Thousands(n) + " of " + text.Thousands(limit) }
	a.printf("\nbudget  %s bytes · %s characters", amount(used, limits.Total), amount(r.Chars, chars))
	if limits.Files > 0 {
		a.printf(" · %s %s\n", amount(files, limits.Files), words.Plural(max(files, limits.Files), "file", "files"))
	} else {
		a.printf(" · %s\n", words.Count(files, "file", "files"))
	}
}

func (a *app) printAgentsProblems(title, root string, rows []chain.Diagnostic) {
	printList(a, title, "severity|code|path|detail", rows, func(d *chain.Diagnostic) cells {
		return cells{d.Severity, d.Code, inTree(root, d.Path), uncut(d.Detail)}
	})
}

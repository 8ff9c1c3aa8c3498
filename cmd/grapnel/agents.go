package main

import (
	"cmp"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/merge"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/settings"
)

// agentsCommand holds what is about AGENTS.md files. These commands read the files
// themselves, by the options that the plugin would have: no plugin is started.
func (a *app) agentsCommand() *cobra.Command {
	return group("agents", "AGENTS.md files: which apply to a folder, and what is wrong with them",
		a.agentsChainCommand(), a.agentsTouchCommand(), a.agentsResumeCommand(), a.agentsLintCommand(), a.agentsExplainCommand(),
	)
}

// agentsFlags are the flags of all agents commands.
type agentsFlags struct {
	// dir is as it was typed.
	dir string
	// config is what the flags say, as a layer over the configuration. Those of
	// its fields that a command has no flag for stay empty.
	config settings.Config
	// root and allow are as they were typed.
	root  string
	allow []string

	preset, trust      string
	maxBytes, maxFiles int
	childHint          bool

	set *pflag.FlagSet
}

// register adds the flags that every command has.
func (f *agentsFlags) register(c *cobra.Command) {
	f.set = c.Flags()
	f.set.StringVar(&f.dir, "dir", "", "working `DIR` (default the current folder)")
	f.set.StringVar(&f.preset, "preset", "", "the options to begin with: default, codex or codelia (default the configuration's)")
}

// registerLimit adds --max-bytes.
func (f *agentsFlags) registerLimit() {
	f.set.IntVar(&f.maxBytes, "max-bytes", 0, "the text has at most `N` bytes; 0 is no text (default the configuration's)")
}

// registerChain adds the flags that say what a chain is made of.
func (f *agentsFlags) registerChain() {
	f.registerLimit()
	f.set.IntVar(&f.maxFiles, "max-files", 0, "at most `N` files take part (default the configuration's)")
	f.set.StringArrayVar(&f.config.Names, "name", nil, "a candidate in each folder, a `FILE` name; the first that is there wins; may be repeated")
	f.set.StringArrayVar(&f.config.FallbackNames, "fallback", nil, "a candidate after those, a `FILE` name such as CLAUDE.md; may be repeated")
	f.set.StringArrayVar(&f.config.Markers, "marker", nil, "the `NAME` of a file or folder that makes a folder the root; may be repeated, '' is none")
	f.set.StringVar(&f.root, "root", "", "the root is `DIR`, whatever the markers say")
	f.set.StringArrayVar(&f.allow, "allow", nil, "a `DIR` outside of the root that links may lead to; may be repeated")
	f.set.StringVar(&f.trust, "trust", "", "which roots' files are instructions: all, listed or none")
	f.set.BoolVar(&f.childHint, "child-hint", false, "add a text on how files of nested folders work")
}

// said reports whether a flag was given, be it with its default.
func (f *agentsFlags) said(name string) bool { return f.set.Changed(name) }

// layer is what the flags say. A list that was given replaces the configured one;
// an empty text in it stands for nothing, so that a list can be emptied.
func (f *agentsFlags) layer() (settings.Config, error) {
	c := f.config
	for _, list := range []*[]string{&c.Names, &c.FallbackNames, &c.Markers} {
		*list = slices.DeleteFunc(*list, func(name string) bool { return name == "" })
	}
	c.Preset, c.Trust = option.Preset(f.preset), option.Trust(f.trust)
	if f.said("max-bytes") {
		c.Budget.Total = &f.maxBytes
	}
	if f.said("max-files") {
		c.Budget.Files = &f.maxFiles
	}
	if f.said("child-hint") {
		c.ChildHint = &f.childHint
	}
	if f.root != "" {
		root, err := filepath.Abs(f.root)
		if err != nil {
			return c, usagef("--root %s: %w", f.root, err)
		}
		c.Root = root
	}
	if f.allow != nil {
		c.Allow = []string{}
	}
	for _, dir := range f.allow {
		path, err := filepath.Abs(dir)
		if err != nil || dir == "" {
			return c, usagef("--allow %q: give the path of a folder", dir)
		}
		c.Allow = append(c.Allow, path)
	}
	return c, flagMistake(c.Check())
}

// flagMistake says of a mistake in the layer of the flags which flag it is in.
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

// agentsInForce are the options that a command works by.
type agentsInForce struct {
	settings.Settings

	// dir is the working folder, absolute.
	dir string
	// chars is how long the text may be, beside its bytes; MaxInt is no limit.
	chars int
	// taken is how many characters a prompt by the configuration takes, with all
	// that is around the text.
	taken int
	// off says why no prompt of the configuration has these files; empty if they
	// have.
	off string
}

// inForce lays the flags over the environment, the configuration and the preset.
func (a *app) agentsInForce(f *agentsFlags) (*agentsInForce, error) {
	flags, err := f.layer()
	if err != nil {
		return nil, err
	}
	where := phases.Context{Dir: f.dir}
	if err := fillDir(&where); err != nil {
		return nil, err
	}
	cfg, from, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	plugin, off := agentsPlugin(cfg, from)
	configured, err := settings.Parse(plugin.Config)
	if err != nil {
		return nil, usagef("%s: the configuration of the plugin %s: %w", from.name(), plugin.Name, err)
	}
	s, err := settings.New(configured, environmentOf(plugin), flags)
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
	s.Options.Lazy = s.Options.Resolver.Delivery != option.DeliverOff // as the plugin has it
	taken := promptChars(cfg, plugin)
	return &agentsInForce{Settings: s, dir: where.Dir, chars: promptRoom(taken, &s.Options), taken: taken, off: off}, nil
}

// agentsName is the name of the plugin, both the built-in one and the usual one in
// a configuration.
const agentsName = "agentsdoc"

// agentsPlugin is the plugin in the configuration. Where there is none it is an
// empty one, and why says so.
func agentsPlugin(cfg *config.Config, from origin) (p *config.Plugin, why string) {
	for i := range cfg.Plugins {
		if cfg.Plugins[i].Builtin == agentsName {
			return &cfg.Plugins[i], ""
		}
	}
	return &config.Plugin{Name: agentsName}, "the configuration (" + from.name() + ") has no plugin agentsdoc"
}

// environmentOf is the environment that the plugin would read: that of this
// process, and what the configuration sets for it.
func environmentOf(p *config.Plugin) func(string) string {
	return func(name string) string { return cmp.Or(os.Getenv(name), p.Env.Set[name].Value) }
}

// promptChars is how many characters of the plugin's text a prompt takes.
func promptChars(cfg *config.Config, p *config.Plugin) int {
	limit := agentsdoc.MaxChars
	if b := p.Subscriptions[p.Name+".prompt"].Budget; b != nil && b.Chars > 0 {
		limit = b.Chars
	}
	return min(limit, cmp.Or(cfg.Budgets.Turn.Chars, config.DefaultTurnChars), merge.DefaultSectionChars)
}

// promptRoom is how many of them the text may have. The presets of other tools
// count bytes alone, as those tools do.
func promptRoom(taken int, o *option.Set) int {
	if o.Layout != option.LayoutDelimited {
		return math.MaxInt
	}
	return agentsdoc.TextRoom(taken, (&chain.Chain{Options: *o}).Frame())
}

// render makes the text of a chain by the limits in force, as the plugin does.
func (f *agentsInForce) render(c chain.Chain) chain.Rendering {
	return chain.RenderForHost(c, chain.Budget{Bytes: c.Options.Budget.Total, Chars: f.chars})
}

// inTree is a path as people call it who are in the tree: relative to the root
// where it lies in there.
func inTree(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil || root == "" || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return path
	}
	return filepath.ToSlash(rel)
}

// completePresets completes --preset.
func completePresets(c *cobra.Command) {
	names := []string{
		string(option.PresetDefault) + "\tGrapnel's own way", string(option.PresetCodex) + "\twhat users of codex get",
		string(option.PresetCodelia) + "\twhat users of codelia get",
	}
	_ = c.RegisterFlagCompletionFunc("preset", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // fails for flags that are not there
}

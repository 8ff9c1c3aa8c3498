package settings

import (
	"cmp"
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// Environment variables. Those of a tool count only in its preset.
const (
	envRoot     = "GRAPNEL_AGENTS_ROOT"
	envMarkers  = "GRAPNEL_AGENTS_MARKERS"
	envPreset   = "GRAPNEL_AGENTS_PRESET"
	envMaxBytes = "GRAPNEL_AGENTS_MAX_BYTES"
	envTrust    = "GRAPNEL_AGENTS_TRUST"

	envCodeliaRoot    = "CODELIA_AGENTS_ROOT"
	envCodeliaMarkers = "CODELIA_AGENTS_MARKERS"
)

// Settings are the result of all configurations.
type Settings struct {
	// Options are for [chain.Resolve]; Budget.Total is the bytes of [chain.Budget], and the caller sets Lazy.
	Options  chain.Options
	Source   Source
	Enabled  bool
	Subtasks Subtasks
	Watch    bool
	// Places are the user's, and SendAgain says that what the agent reads by itself is sent too.
	Places    chain.Places
	SendAgain bool
}

// New merges preset, configuration, environment and flags, the later ones winning. Empty variables are unset. Errors
// are [*phases.ConfigError]; one without a pointer names a variable.
func New(config Config, getenv func(string) string, flags Config) (Settings, error) {
	env, err := environment(getenv)
	if err != nil {
		return Settings{}, err
	}
	preset := chain.PresetDefault
	for _, layer := range []*Config{&config, &flags} {
		if err := layer.Check(); err != nil {
			return Settings{}, err
		}
	}
	for _, layer := range []*Config{&config, &env, &flags} {
		set(&preset, layer.Preset)
	}
	places := chain.Places{Home: getenv("HOME"), ConfigHome: getenv("XDG_CONFIG_HOME"), CodexHome: getenv("CODEX_HOME"), ClaudeHome: getenv("CLAUDE_CONFIG_DIR"), GeminiHome: getenv("GEMINI_CLI_HOME")}
	o, err := chain.ForPreset(preset, places)
	if err != nil {
		return Settings{}, sdk.ConfigErrorf("/preset", "%v", err)
	}
	s := Settings{Options: o, Source: SourceFiles, Enabled: true, Subtasks: SubtasksInherit, Watch: true, Places: places}
	s.add(&config)
	if preset == chain.PresetCodelia {
		s.addCodelia(config.codelia())
		s.add(&Config{Markers: commaList(getenv(envCodeliaMarkers)), Root: getenv(envCodeliaRoot)})
	}
	s.add(&env)
	s.add(&flags)
	if l := &s.Options.Budget; l.File > 0 && l.Total > 0 {
		l.File = min(l.File, l.Total) // so that the options say what is in force
	}
	return s, nil
}

func environment(getenv func(string) string) (Config, error) {
	c := Config{Preset: chain.Preset(getenv(envPreset)), Trust: chain.Trust(getenv(envTrust)), Markers: commaList(getenv(envMarkers))}
	if text := getenv(envMaxBytes); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return Config{}, sdk.ConfigErrorf("", "%s in the environment: %q is not a number of bytes", envMaxBytes, text)
		}
		c.Budget.Total = &n
	}
	if found, ok := errors.AsType[*phases.ConfigError](c.Check()); ok { // name the variable rather than its key
		key, _, _ := strings.Cut(strings.TrimPrefix(found.Pointer, "/"), "/")
		name := map[string]string{"preset": envPreset, "trust": envTrust, "markers": envMarkers}[key]
		return Config{}, sdk.ConfigErrorf("", "%s in the environment: %s", name, found.Message)
	}
	// An unusable root is refused with a diagnostic later, and does not keep the plugin from starting.
	c.Root = getenv(envRoot)
	return c, nil
}

func (s *Settings) add(c *Config) {
	o := &s.Options
	set(&s.Source, c.Source)
	setPointer(&s.Enabled, c.Enabled)
	set(&s.Subtasks, c.Subtasks)
	setPointer(&s.Watch, c.Watch)
	setPointer(&s.SendAgain, c.SendAgain)

	setList(&o.Names, c.Names)
	setList(&o.FallbackNames, c.FallbackNames)
	setList(&o.LocalNames, c.LocalNames)
	setList(&o.Markers, c.Markers)
	setList(&o.Exclude, c.Exclude)
	switch {
	case c.Imports == nil:
	case !*c.Imports:
		o.Imports = chain.ImportOff
	case o.Imports == chain.ImportOff:
		o.Imports = chain.ImportLines
	}
	setPointer(&o.ChildHint, c.ChildHint)
	set(&o.Trust, c.Trust)
	set(&o.Untrusted, c.Untrusted)
	s.addPlaces(c)
	setPointer(&o.Budget.File, c.Budget.File)
	setPointer(&o.Budget.Total, c.Budget.Total)
	setPointer(&o.Budget.Files, c.Budget.Files)
	setPointer(&o.Budget.Floor, c.Budget.Floor)
	s.addResolver(c.Resolver)
}

func (s *Settings) addPlaces(c *Config) {
	o := &s.Options
	set(&o.Root, s.place(c.Root))
	set(&o.Managed, s.place(c.Managed))
	if c.Allow != nil {
		o.Allow = make([]string, 0, len(c.Allow))
		for _, path := range c.Allow {
			o.Allow = append(o.Allow, s.place(path))
		}
	}
	switch g := c.Global; {
	case g.Off:
		o.GlobalDir = ""
	case g.Path != "":
		path := s.place(g.Path)
		o.GlobalDir, o.GlobalNames = filepath.Dir(path), []string{filepath.Base(path)}
	}
}

// place expands "~/". Without a known home the path stays, and is refused later with a diagnostic that shows it.
func (s *Settings) place(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok || s.Options.Home == "" {
		return path
	}
	return filepath.Join(s.Options.Home, rest)
}

// addResolver merges the delivery of nested files. Enabled alone means the preset's delivery, or else reminders.
func (s *Settings) addResolver(r Resolver) {
	to := &s.Options.Resolver
	if r.Enabled != nil && *r.Enabled && to.Delivery == chain.DeliverOff {
		to.Delivery = chain.DeliverReminder
	}
	set(&to.Delivery, r.Delivery)
	if r.Enabled != nil && !*r.Enabled {
		to.Delivery = chain.DeliverOff
	}
	setPointer(&to.MaxFiles, r.MaxFiles)
	setPointer(&to.MaxFile, r.MaxFile)
	setPointer(&to.MaxEvent, r.MaxEvent)
	if to.Delivery != chain.DeliverOff && to.ChangedWhen == chain.ChangedNeverResolved {
		to.ChangedWhen = chain.ChangedByHash
	}
}

func (s *Settings) addCodelia(c Codelia) {
	s.add(&Config{
		Enabled: c.Enabled, Markers: c.Root.Markers, Root: *cmp.Or(c.Root.ProjectRootOverride, new("")),
		Budget:   Budget{Total: c.Initial.MaxBytes, Files: c.Initial.MaxFiles},
		Resolver: Resolver{Enabled: c.Resolver.Enabled, MaxFiles: c.Resolver.MaxFilesPerResolve},
	})
}

func set[T comparable](to *T, value T) { *to = cmp.Or(value, *to) }

func setPointer[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}

func setList(to *[]string, list []string) {
	if list != nil {
		*to = append([]string{}, list...)
	}
}

// commaList splits a list at its commas and drops blanks; nil only for no text.
func commaList(text string) []string {
	if text == "" {
		return nil
	}
	list := []string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

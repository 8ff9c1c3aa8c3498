package settings

import (
	"errors"
	"strconv"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// The variables of the environment that count, those of a tool only in the
// preset that is named for it.
const (
	envRoot     = "GRAPNEL_AGENTS_ROOT"
	envMarkers  = "GRAPNEL_AGENTS_MARKERS"
	envPreset   = "GRAPNEL_AGENTS_PRESET"
	envMaxBytes = "GRAPNEL_AGENTS_MAX_BYTES"
	envTrust    = "GRAPNEL_AGENTS_TRUST"

	envCodeliaRoot    = "CODELIA_AGENTS_ROOT"
	envCodeliaMarkers = "CODELIA_AGENTS_MARKERS"

	envHome       = "HOME"
	envConfigHome = "XDG_CONFIG_HOME"
	envCodexHome  = "CODEX_HOME"
)

// Settings is what configurations come to.
type Settings struct {
	// Options are for [chain.Resolve]; their Budget.Total is the bytes of
	// [chain.Budget], and their Lazy is not set: that is the caller's to know.
	Options  option.Set
	Source   Source
	Enabled  bool
	Subtasks Subtasks
	Watch    bool
}

// New lays the environment over a configuration, and flags over both, and all
// over the preset that they name. A variable that is empty is not set. The
// error is a [*phases.ConfigError]; one without a pointer names a variable.
func New(config Config, getenv func(string) string, flags Config) (Settings, error) {
	env, err := environment(getenv)
	if err != nil {
		return Settings{}, err
	}
	preset := option.PresetDefault
	for _, layer := range []*Config{&config, &flags} {
		if err := layer.Check(); err != nil {
			return Settings{}, err
		}
	}
	for _, layer := range []*Config{&config, &env, &flags} {
		set(&preset, layer.Preset)
	}
	places := option.Places{Home: getenv(envHome), ConfigHome: getenv(envConfigHome), CodexHome: getenv(envCodexHome)}
	o, err := option.ForPreset(preset, places)
	if err != nil {
		return Settings{}, mistake("/preset", "%v", err)
	}
	s := Settings{Options: o, Source: SourceFiles, Enabled: true, Subtasks: SubtasksInherit, Watch: true}
	s.add(&config)
	if preset == option.PresetCodelia {
		s.addCodelia(config.codelia())
		s.addCodelia(codeliaEnvironment(getenv))
	}
	s.add(&env)
	s.add(&flags)
	if l := &s.Options.Budget; l.File > 0 && l.Total > 0 {
		l.File = min(l.File, l.Total) // so that the options say what is in force
	}
	return s, nil
}

// environment is what the plugin's own variables say.
func environment(getenv func(string) string) (Config, error) {
	c := Config{Preset: option.Preset(getenv(envPreset)), Trust: option.Trust(getenv(envTrust))}
	if list := getenv(envMarkers); list != "" {
		c.Markers = commaList(list)
	}
	if text := getenv(envMaxBytes); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return Config{}, mistake("", "%s in the environment: %q is not a number of bytes", envMaxBytes, text)
		}
		c.Budget.Total = &n
	}
	// One by one, to name the variable: who set it knows nothing of the key that it
	// stands for.
	for _, v := range []struct {
		name string
		says Config
	}{{envPreset, Config{Preset: c.Preset}}, {envTrust, Config{Trust: c.Trust}}, {envMarkers, Config{Markers: c.Markers}}} {
		if found, ok := errors.AsType[*phases.ConfigError](v.says.Check()); ok {
			return Config{}, mistake("", "%s in the environment: %s", v.name, found.Message)
		}
	}
	// A root that cannot be one is refused when it is looked at, with a row that
	// shows it: it is no reason for the plugin not to start.
	c.Root = getenv(envRoot)
	return c, nil
}

// codeliaEnvironment is what the tool's variables say, in its own terms.
func codeliaEnvironment(getenv func(string) string) Codelia {
	var c Codelia
	if root := getenv(envCodeliaRoot); root != "" {
		c.Root.ProjectRootOverride = &root
	}
	if list := getenv(envCodeliaMarkers); list != "" {
		c.Root.Markers = commaList(list)
	}
	return c
}

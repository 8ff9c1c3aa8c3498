package agentsdoc

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
)

// The variables of the environment that count. They stand above the
// configuration, as the person's word for one run.
const (
	envRoot     = "GRAPNEL_AGENTS_ROOT"
	envMarkers  = "GRAPNEL_AGENTS_MARKERS"
	envMaxBytes = "GRAPNEL_AGENTS_MAX_BYTES"

	envHome      = "HOME"
	envConfig    = "XDG_CONFIG_HOME"
	envCodexHome = "CODEX_HOME"
)

// Settings is what a configuration comes to in an environment.
type Settings struct {
	// Options are for [chain.Resolve].
	Options chain.Options
	// MaxBytes bounds the whole text, for [chain.Budget]; 0 is no text at all.
	MaxBytes int
}

// Settings applies the configuration to the defaults, and the environment to
// both. A variable that is empty is not set. An error is a [*phases.ConfigError].
func (c *Config) Settings(getenv func(string) string) (Settings, error) {
	home := absolute(getenv(envHome))
	o := chain.Default()
	o.Home = home
	o.ConfigDirs = configDirs(home, getenv)
	c.place(&o, home, userConfig(home, getenv))
	if c.Names != nil {
		o.Names = c.Names
	}
	if c.FallbackNames != nil {
		o.FallbackNames = c.FallbackNames
	}
	if c.Markers != nil {
		o.Markers = c.Markers
	}
	if list := getenv(envMarkers); list != "" {
		o.Markers = commaList(list)
	}
	if root := getenv(envRoot); root != "" {
		o.Root = root
	}
	s := Settings{MaxBytes: c.Budget.apply(&o.Budget)}
	if text := getenv(envMaxBytes); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return Settings{}, &phases.ConfigError{Message: envMaxBytes + " in the environment: " + strconv.Quote(text) + " is not a number of bytes"}
		}
		s.MaxBytes = n
	}
	o.Budget.Total = s.MaxBytes
	s.Options = o
	return s, nil
}

// place fills in the root and the place of the global file.
func (c *Config) place(o *chain.Options, home, config string) {
	o.Root = below(home, c.Root)
	switch {
	case c.Global.Off:
	case c.Global.Path != "":
		path := below(home, c.Global.Path)
		o.GlobalDir, o.GlobalNames = filepath.Dir(path), []string{filepath.Base(path)}
	case config != "":
		o.GlobalDir = filepath.Join(config, "grapnel")
	}
}

// apply sets the limits that were given, and returns the one of the whole text.
func (b *Budget) apply(l *chain.Limits) int {
	for _, n := range []struct {
		to    *int
		given *int
	}{{&l.File, b.File}, {&l.Total, b.Total}, {&l.Files, b.Files}, {&l.Floor, b.Floor}} {
		if n.given != nil {
			*n.to = *n.given
		}
	}
	return l.Total
}

// userConfig is the user's folder of configuration, or "" where it is unknown.
func userConfig(home string, getenv func(string) string) string {
	if dir := absolute(getenv(envConfig)); dir != "" {
		return dir
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".config")
}

// configDirs are the folders in which markers do not count.
func configDirs(home string, getenv func(string) string) []string {
	dirs := []string{}
	for _, dir := range []string{getenv(envConfig), getenv(envCodexHome), below(home, "~/.config"), below(home, "~/.codex")} {
		if dir = absolute(dir); dir != "" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// absolute returns a path if it is absolute, as the XDG rules want it, else "".
func absolute(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	return filepath.Clean(path)
}

// below replaces "~/" by the home folder. Where that is unknown the path stays,
// and is refused or not found later, with a diagnostic that shows it.
func below(home, path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok || home == "" {
		return path
	}
	return filepath.Join(home, rest)
}

// commaList splits, trims, and drops blanks. It is never nil.
func commaList(text string) []string {
	list := []string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

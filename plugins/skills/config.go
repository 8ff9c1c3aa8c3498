package skills

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/skillset"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// config is the operator's configuration; schema.json describes each key.
type config struct {
	Directories     []string `json:"directories"`
	Markers         []string `json:"markers"`
	Include         []string `json:"include"` // nil takes all
	Exclude         []string `json:"exclude"`
	MaxActiveBodies int      `json:"max_active_bodies"`
	MaxChars        int      `json:"max_chars"`
	SendAgain       bool     `json:"send_again"`
}

// parseConfig decodes a configuration over the defaults. Errors are [*phases.ConfigError].
func parseConfig(data json.RawMessage) (config, error) {
	c := config{
		// The shared one, and the one that holds most skills today. Nothing of the user's is read unasked.
		Directories:     []string{".agents/skills", ".claude/skills"},
		Markers:         []string{".git", ".jj", ".hg"},
		MaxActiveBodies: 3,
		MaxChars:        12_000,
	}
	if err := sdk.DecodeConfig(data, &c); err != nil {
		return config{}, err
	}
	return c, c.check()
}

// check checks what the schema, by which the host has checked it, cannot say.
func (c *config) check() error {
	for i, dir := range c.Directories {
		if !isDirectory(dir) {
			return sdk.ConfigErrorf("/directories/"+strconv.Itoa(i), "%q is neither a path below the working directory nor an absolute one, nor one below ~/", dir)
		}
	}
	for i, name := range c.Markers {
		if !filepath.IsLocal(name) || name == "." || filepath.Base(name) != name || strings.ContainsRune(name, 0) {
			return sdk.ConfigErrorf("/markers/"+strconv.Itoa(i), "%q is not a plain file name", name)
		}
	}
	return nil
}

func isDirectory(path string) bool {
	rest, inHome := strings.CutPrefix(path, "~/")
	local := filepath.IsLocal(rest) && filepath.Clean(rest) != "."
	return !strings.ContainsRune(path, 0) && (local || filepath.IsAbs(path) && !inHome)
}

// options resolves the configuration in an environment. Errors are [*phases.ConfigError].
func (c *config) options(getenv func(string) string) (skillset.Options, error) {
	o := skillset.Options{Directories: slices.Clone(c.Directories), Markers: c.Markers, Keep: c.keep}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		o.Home = filepath.Clean(home)
	}
	for i, dir := range o.Directories {
		if rest, below := strings.CutPrefix(dir, "~/"); below {
			if o.Home == "" {
				return o, sdk.ConfigErrorf("/directories/"+strconv.Itoa(i), "%q needs the variable HOME: pass it on with env: {pass: [HOME]}", dir)
			}
			o.Directories[i] = filepath.Join(o.Home, rest)
		}
	}
	return o, nil
}

// given are the directories whose skills an agent, by the name of its bridge, lists by itself; nil if that is not known.
func (c *config) given(agent string, getenv func(string) string) []string {
	home := getenv("HOME")
	switch {
	case c.SendAgain:
	case agent == "claude-code":
		return []string{".claude/skills", cmp.Or(getenv("CLAUDE_CONFIG_DIR"), home+"/.claude") + "/skills"}
	case agent == "codex":
		return []string{".agents/skills", ".codex/skills", home + "/.agents/skills", cmp.Or(getenv("CODEX_HOME"), home+"/.codex") + "/skills", "/etc/codex/skills"}
	}
	return nil
}

func (c *config) keep(slug string) bool {
	return (c.Include == nil || phases.Allows(c.Include, slug)) && !phases.Allows(c.Exclude, slug)
}

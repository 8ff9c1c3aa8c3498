package agenthooks

import (
	"fmt"
	"path"
	"strconv"

	"github.com/BurntSushi/toml"

	"github.com/grapnelhq/grapnel/internal/commandhook"
)

// ConfigPath is the user's configuration of a host that says there which hooks it runs; empty if there is none.
func (h *Host) ConfigPath(home string, env func(string) string) string {
	if h.config == "" {
		return ""
	}
	return path.Join(path.Dir(h.Path(User, home, "", env)), h.config)
}

// Skips says why the host does not run a definition of the file at a path, as far as the file and the user's
// configuration ([Host.ConfigPath]) tell; empty if they say nothing against it.
func (f *File) Skips(d *Definition, file string, config []byte) string {
	switch {
	case f.host.config != "":
		return codexSkips(d, file, config)
	case f.Flag("disableAllHooks"):
		return "disableAllHooks is true in the file: take it out"
	}
	return ""
}

// codexSkips reads what /hooks of Codex has written. Whether a trusted definition was changed since, only Codex knows.
func codexSkips(d *Definition, file string, config []byte) string {
	var c struct {
		Features map[string]any `toml:"features"`
		Hooks    struct {
			State map[string]struct {
				Enabled *bool  `toml:"enabled"`
				Trusted string `toml:"trusted_hash"`
			} `toml:"state"`
		} `toml:"hooks"`
	}
	if _, err := toml.Decode(string(config), &c); err != nil {
		return fmt.Sprintf("config.toml cannot be read: %v", err)
	}
	if on, set := c.Features["hooks"].(bool); set && !on {
		return "the feature hooks is off in config.toml: codex features enable hooks"
	}
	state := c.Hooks.State[file+":"+commandhook.Snake(d.Event)+":"+strconv.Itoa(d.Group)+":"+strconv.Itoa(d.Index)]
	switch {
	case state.Enabled != nil && !*state.Enabled:
		return "it is switched off in /hooks of Codex"
	case state.Trusted == "":
		return "it is not trusted yet: open /hooks in Codex"
	}
	return ""
}

package claudecode

import (
	_ "embed" // for the plugin
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

// The directory plugin is Claude Code's plugin as a marketplace has it: its hooks.json has hooks too. What install writes has
// those in the user's settings, where they hold without the mod.
var (
	//go:embed plugin/.claude-plugin/plugin.json
	modManifest []byte
	//go:embed plugin/hooks/register.js
	modSource string
)

// modFiles are the files of the mod for a command that calls the gateway.
func modFiles(c *agent.Command) map[string][]byte {
	program := []string{c.Program}
	if c.Socket != "" {
		program = append(program, "--socket", c.Socket)
	}
	if c.Config != "" {
		program = append(program, "--config", c.Config)
	}
	source := strings.Replace(modSource, "const PROGRAM = ['grapnel-hook']", "const PROGRAM = "+string(agent.Marshal(program)), 1)
	return map[string][]byte{
		".claude-plugin/plugin.json": modManifest,
		"hooks/hooks.json":           []byte("{\"modules\": [\"./register.js\"]}\n"),
		"hooks/register.js":          []byte(source),
	}
}

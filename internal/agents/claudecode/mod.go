package claudecode

import (
	_ "embed" // for the plugin
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

var (
	//go:embed plugin/.claude-plugin/plugin.json
	modManifest []byte
	//go:embed plugin/hooks/register.js
	modSource string
)

// modFiles are the plugin's files without its hooks, which stand in the user's settings and hold without the mod.
func modFiles(c *agent.Command, a *agent.Agent) map[string][]byte {
	args := c.Args(a, skillLine)
	program := append([]string{c.Program}, args[:len(args)-2]...) // without the host and the event
	return map[string][]byte{
		".claude-plugin/plugin.json": modManifest,
		"hooks/hooks.json":           []byte(`{"modules": ["./register.js"]}` + "\n"),
		"hooks/register.js":          []byte(strings.Replace(modSource, "['grapnel-hook']", string(agent.Marshal(program)), 1)),
	}
}

// Command agentsdoc is the AGENTS.md plugin as a program of its own. A Grapnel
// host starts it; started by hand it says so and ends.
package main

import (
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

func main() { serve.Main(agentsdoc.New()) }

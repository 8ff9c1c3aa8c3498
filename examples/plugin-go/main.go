// Freeze is a Grapnel plugin in a module of its own, as a stranger would write it: a prompt section, a tool, and a
// guard that denies tool calls. Build it, declare it in grapnel.yaml, and any host runs it:
//
//	go build -o freeze .
//	grapnel compile --config grapnel.yaml
package main

import "github.com/grapnelhq/grapnel/sdk/serve"

func main() { serve.Main(newPlugin()) }

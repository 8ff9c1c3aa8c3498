// Command fileguard is the fileguard plugin as a program of its own. A Grapnel host
// starts it; started by hand it says so and ends.
package main

import (
	"github.com/grapnelhq/grapnel/plugins/fileguard"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

func main() { serve.Main(fileguard.New()) }

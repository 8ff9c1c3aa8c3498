// Command cedar is the cedar plugin as a program of its own. A Grapnel host
// starts it; started by hand it says so and ends.
package main

import (
	"github.com/grapnelhq/grapnel/plugins/cedar"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

func main() { serve.Main(cedar.New()) }

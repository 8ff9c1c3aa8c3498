package option_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

func ExampleForPreset() {
	o, err := option.ForPreset(option.PresetCodelia, option.Places{Home: "/u/ada"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(o.Names, o.Markers, o.Layout, o.Placement, o.Budget.Files, o.Budget.Total)
	// Output: [AGENTS.md] [.codelia .git .jj] titled system_message 16 262144
}

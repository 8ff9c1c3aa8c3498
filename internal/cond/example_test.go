package cond_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/cond"
	"github.com/grapnelhq/grapnel/phases"
)

func Example() {
	row, _ := phases.Standard().Lookup(phases.ToolPreCall)
	c, err := cond.Compile(`turn.mode != "system" && any(input.touched_paths, # startsWith "/etc")`, row, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	holds, err := c.Eval(cond.Env{
		Context: &phases.Context{Mode: phases.ModeAgent},
		Input:   &phases.ToolPreCallInput{Tool: "edit", TouchedPaths: []string{"/etc/hosts"}},
	})
	fmt.Println(holds, err)

	_, err = cond.Compile(`turn.mdoe != "system"`, row, nil)
	fmt.Println(err)
	// Output:
	// true <nil>
	// 1:6: "turn" has no field "mdoe" (did you mean "mode"?)
	//  | turn.mdoe != "system"
	//  | .....^
}

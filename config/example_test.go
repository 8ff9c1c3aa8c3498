package config_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/config"
)

func ExampleParse() {
	_, err := config.Parse([]byte(`version: 1
plugins:
  - name: memory
    builtin: memory
    limits: {start: 10}
    grant: {see: [user_text]}
`), "grapnel.yaml")
	fmt.Println(err)
	// Output:
	// grapnel.yaml:5:21: 10 has no unit; write 10s for seconds or 10ms for milliseconds
	//  |     limits: {start: 10}
	//  |                     ^
	// grapnel.yaml:6:5: unknown key "grant" (did you mean "grants"?)
	//  |     grant: {see: [user_text]}
	//  |     ^
}

func ExampleConfig_PlanError() {
	c, err := config.Parse([]byte(`version: 1
plugins:
  - name: rules
    builtin: scripted
    subscriptions:
      rules.text: {when: 'turn.mod == "agent"'}
`), "grapnel.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.PlanError("rules", "subscriptions.rules.text.when", `unknown name turn.mod (did you mean "turn.mode"?)`, nil))
	// Output:
	// grapnel.yaml:6:26: unknown name turn.mod (did you mean "turn.mode"?)
	//  |       rules.text: {when: 'turn.mod == "agent"'}
	//  |                          ^
}

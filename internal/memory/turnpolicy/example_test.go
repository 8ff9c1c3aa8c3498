package turnpolicy_test

import (
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/phases"
)

func ExampleDecide() {
	rules, err := turnpolicy.Builtin()
	if err != nil {
		fmt.Println(err)
		return
	}
	options := turnpolicy.Options{Classify: rules.Classify}
	for _, text := range []string{
		"Why is the build red?",
		"Don't save this. What does bankruptcy cost?",
		"Forget my old address, please.",
	} {
		p := turnpolicy.Decide(turnpolicy.Input{Mode: phases.ModeAgent, Text: text}, options)
		fmt.Printf("%s remember=%s forget=%s %q\n", p.ReasonCode, p.RememberTool, p.ForgetTool, p.ForgetTarget)
	}
	// Output:
	// default.default_allow remember=allow forget=allow ""
	// en.no_save.dont remember=disabled forget=disabled ""
	// en.forget.my remember=disabled forget=allow "my old address"
}

func ExampleRules_Extract() {
	rules, err := turnpolicy.Builtin()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range rules.Extract("We decided to drop MySQL. Please remember that the demo is on Thursday.") {
		fmt.Printf("%s: %s\n", f.Category, f.Text)
	}
	// Output:
	// decision: We decided to drop MySQL
	// fact: the demo is on Thursday
}

func ExampleParse() {
	data, err := json.Marshal(turnpolicy.Decide(turnpolicy.Input{Mode: phases.ModeChat}, turnpolicy.Options{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := turnpolicy.Parse(data)
	fmt.Println(p.ReasonCode, p.Recall, err)
	_, err = turnpolicy.Parse([]byte(`{"recal": "allow"}`))
	fmt.Println(err)
	// Output:
	// chat_mode disabled <nil>
	// turn policy: json: unknown field "recal" (did you mean "recall"?)
}

package scripted_test

import (
	"context"
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/scripted"
)

func Example() {
	ctx := context.Background()
	p := scripted.New()
	d, err := p.Configure(ctx, &phases.Configuration{Instance: "rules", Config: []byte(`{"hooks": [{
		"id": "guard", "phase": "tool.pre_call", "role": "validate",
		"respond": [{"kind": "decision", "verdict": "deny", "reason": "not here"}]
	}]}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Hooks[0].Name, d.Hooks[0].Kinds)

	res, err := p.Dispatch(ctx, &phases.Dispatch{Hook: "guard", Input: &phases.ToolPreCallInput{Tool: "shell"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	decision, _ := res.Contributions[0].(*phases.Decision)
	fmt.Println(decision.Verdict, decision.Reason)
	// Output:
	// guard [decision]
	// deny not here
}

package plan_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/phases"
)

func ExampleBuild() {
	p, notes, err := plan.Build([]plan.Plugin{
		{
			Name:   "rules",
			Grants: phases.Grants{Contribute: []string{"prompt_section"}},
			Description: &phases.Description{Name: "scripted", Version: "1.0.0", Hooks: []phases.Hook{
				{Name: "first", Phase: phases.PrePromptCompile, Kinds: []phases.Kind{phases.KindPromptSection}},
				{Name: "second", Phase: phases.PrePromptCompile, Priority: 9, After: []string{"rules.first"}},
				{Name: "note", Phase: phases.PrePromptCompile, Kinds: []phases.Kind{phases.KindReminder}},
			}},
		},
	}, plan.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ph := p.Phase(phases.PrePromptCompile)
	for _, stage := range ph.Stages {
		for i, layer := range stage.Layers {
			for _, sub := range layer {
				fmt.Println(stage.Role, i, sub.ID, sub.Timeout)
			}
		}
	}
	for _, off := range ph.Off {
		fmt.Println("off", off.Subscription.ID, off.Reason)
	}
	for _, note := range notes {
		fmt.Println(note.Severity, note.Message)
	}

	_, _, err = plan.Build(nil, plan.Options{Budgets: map[phases.Phase]plan.Budget{phases.PrePolicy: {Require: []string{"guard.check"}}}})
	fmt.Println(err)
	// Output:
	// contribute 0 rules.first 1s
	// contribute 1 rules.second 1s
	// off rules.note not_granted
	// warning rules.note is off: it declares reminder, and plugin "rules" is not granted that (grants.contribute)
	// budgets.phases.turn.pre_policy.require: turn.pre_policy requires "guard.check", which does not exist
}

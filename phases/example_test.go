package phases_test

import (
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
)

// The table knows what each phase takes and for how long.
func ExampleStandard() {
	row, ok := phases.Standard().Lookup(phases.ToolPreCall)
	fmt.Println(ok, row.Phase, row.Kinds, row.Budget)
	fmt.Println(row.Accepts(phases.KindAudit), row.Takes(phases.RoleTransform))
	// Output:
	// true tool.pre_call [decision rewrite reminder] 1s
	// true true
}

// A host adds phases of its own under its own prefix.
func ExampleNewTable() {
	table, err := phases.NewTable(phases.Custom("x.acme.idle", "nothing has happened for a while", 0, phases.KindReminder))
	if err != nil {
		fmt.Println(err)
		return
	}
	input, err := phases.DecodeInput(table, "x.acme.idle", []byte(`{"seconds": 30}`))
	out, encodeErr := json.Marshal(input)
	fmt.Println(phases.PhaseOf(input), string(out), err, encodeErr)
	// Output:
	// x.acme.idle {"seconds":30} <nil> <nil>
}

// What a plugin was not granted is withheld; it learns only that there was
// something, and how long.
func ExampleSight_Withhold() {
	d := &phases.Dispatch{Input: &phases.PrePolicyInput{UserText: phases.T("my secret"), Model: "m-1"}}
	sight := phases.NewSight(nil, func(name string) bool { return name == "model" })
	sight.Withhold(d)
	out, err := json.Marshal(d.Input)
	fmt.Println(string(out), d.Withheld, err)
	// Output:
	// {"user_text":{"withheld":true,"chars":9},"model":"m-1"} [user_text] <nil>
}

// Contributions are read with their kind; a mistake is named.
func ExampleContributions() {
	var list phases.Contributions
	fmt.Println(json.Unmarshal([]byte(`[{"kind":"decision","verdict":"deny","reason":"not here"}]`), &list))
	fmt.Println(phases.KindOf(list[0]))
	fmt.Println(json.Unmarshal([]byte(`[{"kind":"desision"}]`), &list))
	// Output:
	// <nil>
	// decision
	// contribution 0: unknown kind "desision" (did you mean "decision"?)
}

// One function says whether a contribution is well formed.
func ExampleValidateContribution() {
	row, _ := phases.Standard().Lookup(phases.PrePromptCompile)
	fmt.Println(phases.ValidateContribution(&phases.PromptSection{SectionID: "house rules"}, row))
	fmt.Println(phases.ValidateContribution(&phases.Decision{Verdict: phases.VerdictDeny}, row))
	// Output:
	// prompt_section: section_id is not a name (letters, digits and _ . : / -, at most 128) (invalid_reply)
	// phase turn.pre_prompt_compile does not take decision (contribution_not_allowed)
}

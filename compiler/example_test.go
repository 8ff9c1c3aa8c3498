package compiler_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/phases"
)

func ExampleCompile() {
	out, err := compiler.Compile(compiler.Input{
		Host: compiler.HostTexts{Identity: "You are a careful gardener.", Safety: "Water before noon."},
		Sections: []phases.MergedSection{
			{SectionID: "agents_md", Owner: "agentsdoc", Content: "Use the small can."},
		},
		Facts: compiler.Facts{Date: "2026-02-03", OS: "linux"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Prompt.FullText)
	// Output:
	// ## Identity
	//
	// You are a careful gardener.
	//
	// ## Safety
	//
	// Water before noon.
	//
	// <!-- grapnel:dynamic -->
	//
	// ## AGENTS.md
	//
	// Use the small can.
	//
	// ## Extra System
	//
	// Date: 2026-02-03
	// Operating system: linux
}

// A profile leaves sections out after the fact, and each has a row that says so.
func ExampleCompile_profile() {
	out, err := compiler.Compile(compiler.Input{
		Profile: phases.ProfileNone,
		Sections: []phases.MergedSection{
			{SectionID: "agents_md", Owner: "agentsdoc", Content: "Use the small can."},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := out.Manifest()
	fmt.Println(m.SectionIDs)
	for _, l := range m.Omitted {
		fmt.Println(l.ID, l.Owner, l.Reason)
	}
	// Output:
	// [identity]
	// safety builtin profile
	// agents_md agentsdoc profile
}

func ExampleCacheFacts_Lookup() {
	facts, err := compiler.LoadCacheFacts()
	if err != nil {
		panic(err)
	}
	found, _ := facts.Lookup(compiler.Anthropic, "claude-haiku-4-5")
	fmt.Println(found.MinimumTokens, found.Breakpoints, found.Lifetimes)
	rules, ok := facts.Rules(compiler.Anthropic, "claude-opus-4-7")
	fmt.Println(rules.MinimumTokens, rules.Explicit, rules.Lifetime, ok)
	// Output:
	// 4096 4 [1h 5m]
	// 2048 true 5m0s true
}

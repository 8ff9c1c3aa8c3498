package reminder_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/reminder"
)

func ExampleStyle_ResolvePaths() {
	m := reminder.Style{}.ResolvePaths([]reminder.File{
		{Path: "/repo/feature/AGENTS.md", MTimeMs: 1738970000000},
	})
	fmt.Println(m.Tagged())
	// Output:
	// <system-reminder type="agents.resolve.paths">
	// More instruction files apply to this path:
	// - /repo/feature/AGENTS.md (mtime: 1738970000000)
	// Read them, and follow them, before you change files in their folders or below.
	// </system-reminder>
}

func ExampleDecision() {
	m := reminder.Decision{Tool: "shell", Verdict: "deny", ReasonCode: "house", By: "rules.guard"}.Message()
	fmt.Println(m.Text)
	// Output:
	// A hook, and not a person, decided on a call:
	// - tool: shell
	// - verdict: deny
	// - reason code: house
	// - decided by: rules.guard
}

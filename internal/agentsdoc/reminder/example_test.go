package reminder_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/reminder"
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
	// Read them, and follow them, before you change files in their directories or below.
	// </system-reminder>
}

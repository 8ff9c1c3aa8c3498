package cedar

import "github.com/grapnelhq/grapnel/phases"

// factsOf are the facts that the engine has derived of a call; nil if it has not.
func factsOf(*phases.ToolPreCallInput) *phases.Facts { return &phases.Facts{} }

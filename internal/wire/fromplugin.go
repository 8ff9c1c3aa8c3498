package wire

import "github.com/grapnelhq/grapnel/phases"

// FromPlugin makes the error of a plugin's handler one of the host's, as if it
// had crossed the wire: a plugin inside the host may say no more of itself than
// one in a process. A plugin cannot claim a cancellation or a denial, which no
// failure policy would apply to, and its words become the error's detail.
func FromPlugin(err error) *phases.Error { return fromPlugin(asError(err)) }

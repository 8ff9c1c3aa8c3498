package chain

import (
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/fsview"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// The view of a file system that [Resolve] works on, under short names for those
// who pass one in or put one of their own in its place.
type (
	// FS is the view.
	FS = fsview.FS
	// Dir is an open folder of it.
	Dir = fsview.Dir
	// OS is the machine's.
	OS = fsview.OS
)

// What [Resolve] and [Render] are told, under short names likewise.
type (
	// Options say how a chain is found and rendered.
	Options = option.Set
	// Limits bound a text.
	Limits = option.Limits
)

// Default returns the options of the default preset without the user's own
// files, to be changed by the caller.
func Default() Options { return option.Default() }

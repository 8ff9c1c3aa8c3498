// Package facts says what is known of a tool's call before it is made: see [phases.Facts].
//
// Package shell reads commands, protect knows the files that hold secrets, guard finds out whether a call gets at one, and
// secret finds secrets in texts. Start reading at [Of].
package facts

import (
	"encoding/json"

	"github.com/grapnelhq/grapnel/phases"
)

// Of derives the facts of a call. paths are the files that the host says it is about; dir is the absolute directory that
// relative paths start from, home the user's; both may be empty. It looks at files' names and links, and reads no file.
// It is safe for concurrent use.
func Of(tool string, arguments json.RawMessage, paths []string, dir, home string) *phases.Facts {
	return &phases.Facts{}
}

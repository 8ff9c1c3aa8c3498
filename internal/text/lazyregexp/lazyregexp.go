// Package lazyregexp compiles regular expressions when they are first used. Compiling them when a program begins
// would delay each command and each plugin, most of which never use them.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns expr compiled; the first call compiles it, and panics if it has a mistake. The
// function is safe for concurrent use.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

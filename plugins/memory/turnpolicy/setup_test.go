package turnpolicy

import (
	"sync"
	"testing"
)

// sharedRules are compiled once for all tests, as in a plugin.
var sharedRules = sync.OnceValues(Builtin)

// builtin returns the rules that come with the package.
func builtin(tb testing.TB) *Rules {
	tb.Helper()
	r, err := sharedRules()
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestBuiltinIsValid: the rules of the package are compiled when they are needed, so
// nobody else would see their mistakes.
func TestBuiltinIsValid(t *testing.T) {
	t.Parallel()
	if err := builtin(t).check(); err != nil {
		t.Error(err)
	}
}

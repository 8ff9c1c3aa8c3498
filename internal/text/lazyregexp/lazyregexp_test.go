package lazyregexp_test

import (
	"testing"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

func TestNew(t *testing.T) {
	t.Parallel()

	digits := lazyregexp.New(`^[0-9]+$`)
	if first := digits(); !first.MatchString("42") || first.MatchString("x") || first != digits() {
		t.Error("the expression does not match digits alone, or is compiled twice")
	}
	defer func() {
		if recover() == nil {
			t.Error("a mistaken expression was compiled")
		}
	}()
	lazyregexp.New(`(`)() // only the call fails
}

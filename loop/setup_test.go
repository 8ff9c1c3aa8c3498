package loop_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/loop"
	"github.com/grapnelhq/grapnel/runtime"
)

// begin begins a turn with host tools that repeat their arguments.
func begin(t testing.TB, s *looptest.Engine, change func(o *loop.Options)) *loop.Turn {
	t.Helper()
	o := loop.Options{Input: runtime.CompileInput{UserText: "hello", ToolCalling: true}, Tools: looptest.Tools()}
	if change != nil {
		change(&o)
	}
	turn, err := loop.Begin(t.Context(), s.Engine, looptest.Where(), o)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

package treetest_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/tree"
	"github.com/grapnelhq/grapnel/tree/treetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestModel(t *testing.T) {
	t.Parallel()

	treetest.Suite(t, func(*testing.T) tree.Store { return treetest.NewModel(nil) })
	treetest.SuiteClock(t, func(_ *testing.T, now func() time.Time) tree.Store { return treetest.NewModel(now) })
}

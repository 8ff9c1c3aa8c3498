package treetest

import (
	"context"
	"os"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// shared is the PostgreSQL server of this run.
var shared storetest.Shared

// TestMain also runs the programs that tests start.
func TestMain(m *testing.M) {
	programs := storetest.Programs{"gateway": serveTree}
	if code, ok := programs.Run(context.Background()); ok {
		os.Exit(code)
	}
	os.Exit(shared.Main(m))
}

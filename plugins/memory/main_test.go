package memory

import (
	"os"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// postgres is the PostgreSQL server of this run.
var postgres storetest.Shared

// TestMain makes the test binary also the plugin that the engine's tests start.
func TestMain(m *testing.M) {
	if serve.StartedByHost() {
		serve.Main(New())
	}
	os.Exit(postgres.Main(m))
}

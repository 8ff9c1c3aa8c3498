package memory

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/sdk/serve"
)

// TestMain makes the test binary also the plugin that the engine's tests start.
func TestMain(m *testing.M) {
	if serve.StartedByHost() {
		serve.Main(New())
	}
	goleak.VerifyTestMain(m)
}

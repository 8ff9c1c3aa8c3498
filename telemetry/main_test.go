package telemetry_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the package when an engine or a provider leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

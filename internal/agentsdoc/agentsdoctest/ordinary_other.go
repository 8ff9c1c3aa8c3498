//go:build !linux

package agentsdoctest

import (
	"os"
	"testing"
)

// AsOrdinary runs a function as a user with ordinary rights.
func AsOrdinary(t *testing.T, _ string, f func()) {
	t.Helper()
	if os.Geteuid() <= 0 {
		t.Skip("the superuser may read everything, and some systems have no such rights")
	}
	f()
}

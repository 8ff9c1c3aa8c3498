//go:build !linux

package chaintest

import (
	"os"
	"testing"
)

// AsOrdinary runs a function where the system refuses what it refuses people.
func AsOrdinary(t *testing.T, _ string, f func()) {
	t.Helper()
	if os.Geteuid() <= 0 {
		t.Skip("the superuser may read everything, and some systems have no such rights")
	}
	f()
}

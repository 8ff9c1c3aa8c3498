//go:build unix && !linux

package runtime_test

import "testing"

// memoryRows are those of Linux, where memory can be measured.
func memoryRows() []rowCase {
	skip := func(t *testing.T, _ *processBench) {
		t.Helper()
		t.Skip("memory is measured on Linux only")
	}
	return []rowCase{
		{row: 17, name: "memory", test: skip},
		{row: 17, name: "killed-near-limit", test: skip},
	}
}

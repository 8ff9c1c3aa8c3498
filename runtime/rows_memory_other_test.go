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
		{row: 16, name: "memory-of-child", test: skip, modes: []string{"memory-child", "filler"}},
		{row: 17, name: "memory", test: skip, modes: []string{"memory"}},
		{row: 17, name: "memory-at-start", test: skip, modes: []string{"memory-start"}},
		{row: 17, name: "killed-near-limit", test: skip},
	}
}

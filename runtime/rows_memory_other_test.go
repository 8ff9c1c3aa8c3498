//go:build unix && !linux

package runtime_test

// memoryRows are those of Linux, where memory can be measured.
func memoryRows() []rowCase { return nil }

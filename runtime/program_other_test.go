//go:build unix && !linux

package runtime_test

// hostileModes: the hostile plugins attack Linux.
func hostileModes() map[string]func(*badProgram) error { return nil }

//go:build unix && !linux

package proc_test

// linuxModes are the programs that exist on Linux only.
func linuxModes() map[string]func() { return nil }

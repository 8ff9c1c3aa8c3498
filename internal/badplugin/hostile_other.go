//go:build unix && !linux

package badplugin

// What is attacked on Linux only.

func processAttacks() map[string]func(*Program) error   { return nil }
func directoryAttacks() map[string]func(*Program) error { return nil }
func reachAttacks() map[string]func(*Program) error     { return nil }

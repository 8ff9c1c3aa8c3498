//go:build unix && !linux

package runtime_test

import "github.com/grapnelhq/grapnel/internal/tests/badplugin"

// hostileModes: the hostile plugins attack Linux.
func hostileModes() map[string]func(*badplugin.Program) error { return nil }

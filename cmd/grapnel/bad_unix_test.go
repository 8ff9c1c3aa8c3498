//go:build unix

package main

import (
	"os"

	"github.com/grapnelhq/grapnel/internal/tests/badplugin"
)

// badPlugin is "badplugin MODE [ARG]...": a plugin's program that misbehaves.
func badPlugin() {
	mode, args := "", []string{}
	if len(os.Args) > 1 {
		mode, args = os.Args[1], os.Args[2:]
	}
	more := map[string]func(*badplugin.Program) error{"leaky": leaky}
	os.Exit(badplugin.Program{Mode: mode, Args: args, Self: os.Args[:1], Exit: os.Exit, More: more}.Run())
}

package main

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/grapnelhq/grapnel/internal/proc/sandbox"
)

// TestSandboxScripts runs the scripts that need a sandbox.
func TestSandboxScripts(t *testing.T) {
	skipShort(t)
	t.Parallel()

	if err := sandbox.Probe().Check(sandbox.Policy{}); err != nil {
		t.Skip(err)
	}
	commands := scriptCommands()
	maps.Copy(commands, memoryCommands())
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "sandbox"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               isolated,
		Cmds:                commands,
	})
}

package main

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/grapnelhq/grapnel/builtin"
)

// TestMain lets this binary be three things: the tests, the command line
// (testscript starts it under the name grapnel), and a plugin of that command
// line, which starts itself anew.
func TestMain(m *testing.M) {
	builtin.Main()
	testscript.Main(m, map[string]func(){"grapnel": main, hostProgram: memoryHost, "badplugin": badPlugin, "guardplugin": guardPlugin, "otheruser": otherProgram, "swapprogram": swapProgram})
}

// TestScripts runs the scripts that say what every command does.
func TestScripts(t *testing.T) {
	t.Parallel()

	commands := scriptCommands()
	maps.Copy(commands, storeCommands())
	maps.Copy(commands, serveCommands())
	maps.Copy(commands, memoryCommands())
	maps.Copy(commands, jobCommands())
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               isolated,
		Cmds:                commands,
	})
}

// raceOptions keep the race detector, if it is there, from waiting for a second
// at the end of each process.
const raceOptions = "atexit_sleep_ms=0"

// isolated gives a script an environment of its own: no configuration of the
// user's, and folders that end with the script.
func isolated(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, ".home")
	runtimeDir := filepath.Join(env.WorkDir, ".run")
	for _, dir := range []string{home, runtimeDir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	env.Setenv("HOME", home)
	env.Setenv("XDG_CONFIG_HOME", "")
	env.Setenv("XDG_RUNTIME_DIR", runtimeDir)
	env.Setenv("TZ", "UTC")
	env.Setenv("GORACE", raceOptions)
	return nil
}

package main

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/grapnelhq/grapnel/sdk/serve"
)

// TestMain lets this binary be three things: the tests, the command line
// (testscript starts it under the name grapnel), and a plugin of that command
// line, which starts itself anew.
func TestMain(m *testing.M) {
	serve.Builtins(firstParty()...)
	_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))) // most tests wait for processes
	if raceDetector {
		lateAfter = time.Minute // plugins start slowly, and commands would say so
	}
	testscript.Main(m, map[string]func(){"grapnel": main, "badplugin": badPlugin, "otheruser": otherProgram, "swapprogram": swapProgram, "toolplugin": toolPlugin})
}

// TestScripts runs the scripts that say what every command does.
func TestScripts(t *testing.T) {
	skipShort(t)
	t.Parallel()

	commands := scriptCommands()
	maps.Copy(commands, storeCommands())
	maps.Copy(commands, serveCommands())
	maps.Copy(commands, memoryCommands())
	maps.Copy(commands, jobCommands())
	maps.Copy(commands, mcpCommands())
	maps.Copy(commands, backtestCommands())
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               isolated,
		Cmds:                commands,
	})
}

// skipShort skips a test of what commands print one after another, for the race detector: that
// has nothing to find there.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts hundreds of processes one after another: it runs without -short")
	}
}

// longSwitch is the environment variable that runs hostile loops in full.
const longSwitch = "GRAPNEL_LONG"

// rounds is how often a loop runs: full with [longSwitch], else short.
func rounds(full, short int) int {
	if os.Getenv(longSwitch) != "" {
		return full
	}
	return short
}

// raceOptions keep the race detector, if it is there, from waiting for a second
// at the end of each process.
const raceOptions = "atexit_sleep_ms=0"

// isolated gives a script an environment of its own: no configuration of the
// user's, and directories that end with the script.
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
	env.Setenv("GOGC", "400") // hundreds of short processes
	return nil
}

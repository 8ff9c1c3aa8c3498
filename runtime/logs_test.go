package runtime_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/runtime"
)

// logsVar names the directory that a child of TestLogsByDefault has as a plugin's program.
const logsVar = "GRAPNEL_TEST_LOGS"

// TestLogsByDefault: without a logger a plugin whose program is a directory is one line on standard error.
func TestLogsByDefault(t *testing.T) {
	if dir := os.Getenv(logsVar); dir != "" {
		cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "greeter", Command: dir, Path: dir}}}
		eng, err := runtime.New(t.Context(), cfg, runtime.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := eng.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestLogsByDefault$")
	cmd.Env = append(os.Environ(), logsVar+"="+t.TempDir())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	said := stderr.String()
	if strings.Count(said, "\n") != 1 || !strings.Contains(said, "level=ERROR") || !strings.Contains(said, "plugin=greeter") || !strings.Contains(said, "is not a regular file") {
		t.Errorf("standard error: %s", said)
	}
}

package pool

import (
	"log/slog"
	"testing"

	"github.com/grapnelhq/grapnel/internal/supervise"
)

// TestLevelOf: a cause is logged as a warning once, however often the plugin is started again for it.
func TestLevelOf(t *testing.T) {
	t.Parallel()
	in := &Instance{}
	for i, step := range []struct {
		state    supervise.State
		code     string
		failures int
		words    string
		want     slog.Level
	}{
		{supervise.StateStarting, "", 0, "", slog.LevelInfo},
		{supervise.StateBackoff, "crash", 1, "", slog.LevelWarn},
		{supervise.StateReady, "", 1, "", slog.LevelInfo},
		{supervise.StateBackoff, "crash", 2, "", slog.LevelInfo},
		{supervise.StateBackoff, "oom", 3, "its words", slog.LevelError},
		{supervise.StateBackoff, "oom", 4, "its words", slog.LevelInfo},
		{supervise.StateQuarantined, "oom", 5, "", slog.LevelError},
		{supervise.StateReady, "", 0, "", slog.LevelInfo},
		{supervise.StateBackoff, "oom", 1, "", slog.LevelWarn},
		{supervise.StateBackoff, "unavailable", 0, "", slog.LevelWarn}, // the host's fault, which is not counted
		{supervise.StateBackoff, "unavailable", 0, "", slog.LevelInfo},
		{supervise.StateReady, "", 0, "", slog.LevelInfo},
		{supervise.StateDegraded, "unavailable", 0, "", slog.LevelWarn},
	} {
		st := supervise.Status{State: step.state, Code: step.code, Failures: step.failures}
		if got := in.levelOf(&st, step.words); got != step.want {
			t.Errorf("step %d: level %s, want %s", i, got, step.want)
		}
	}
}

package pool

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/supervise"
	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/phases"
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

// TestLevelOfRefusal: a refused configuration is no error in the log only where whoever awaits the first start reports it.
func TestLevelOfRefusal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		awaited bool
		before  []supervise.State
		want    slog.Level
	}{
		{true, []supervise.State{supervise.StateStarting}, slog.LevelInfo},
		{false, []supervise.State{supervise.StateStarting}, slog.LevelError},
		{true, []supervise.State{supervise.StateStarting, supervise.StateReady, supervise.StateBackoff, supervise.StateStarting}, slog.LevelError},
		{true, []supervise.State{supervise.StateStarting, supervise.StateQuarantined, supervise.StateStarting}, slog.LevelError},
	} {
		in := &Instance{awaited: tt.awaited}
		for _, state := range tt.before {
			in.levelOf(&supervise.Status{State: state}, "")
		}
		refused := supervise.Status{State: supervise.StateQuarantined, Last: &supervise.Failure{Err: &phases.ConfigError{}}}
		if got := in.levelOf(&refused, ""); got != tt.want {
			t.Errorf("%v: level %s", tt, got)
		}
	}
}

// TestConnectToEndedProcess: a plugin that speaks over standard input and output may end before its session begins.
func TestConnectToEndedProcess(t *testing.T) {
	t.Parallel()

	inc := &Incarnation{Instance: &Instance{Declared: config.Plugin{Name: "gone", Transport: config.TransportStdio}}, process: &proc.Process{}}
	if s, err := inc.connect(t.Context()); s != nil || phases.CodeOf(err) != phases.CauseSessionReset {
		t.Errorf("connect = %v, %v", s, err)
	}
}

// TestMain fails the package when a test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStoreExposed: a grant that covers the store's file is reported, whatever leads there.
func TestStoreExposed(t *testing.T) {
	t.Parallel()

	dir := realPath(t.TempDir())
	for _, name := range []string{"data", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("data", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		store, plugin, slot string
	}{
		{"sqlite:data/g.db", `grants: {read: ["./data"]}`, "grants.read"},
		{"sqlite:data/g.db", `grants: {read: ["./data/*"]}`, "grants.read"},
		{"sqlite:data/g.db", `grants: {read: ["./link"]}`, "grants.read"},
		{"sqlite:link/g.db", `grants: {read: ["./data"]}`, "grants.read"},
		{"sqlite:data/g.db", `grants: {write: ["./data/g.db-shm"]}`, "grants.write"},
		{"sqlite:data/g.db", `sandbox: T1, grants: {read: ["*"]}`, "grants.read"},
		{"sqlite:data/g.db", `sandbox: T2, grants: {write: ["*"]}`, "grants.write"},
		{"sqlite:data/g.db", `grants: {read: ["./other", "./data/g.d"]}`, ""},
		{"sqlite:data/g.db", `grants: {read: ["*"]}`, ""}, // T0 holds nobody
		{"postgres://127.0.0.1/x", `grants: {read: ["./data"]}`, ""},
	} {
		text := fmt.Sprintf("version: 1\nstore: %q\nplugins:\n  - {name: p, command: /bin/true, %s}\n", tt.store, tt.plugin)
		file := filepath.Join(dir, "grapnel.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		var slots []string
		for _, note := range StoreExposed(cfg) {
			slots = append(slots, note.Slot)
		}
		if slot := strings.Join(slots, ","); slot != tt.slot {
			t.Errorf("%s, %s: reported %q, want %q", tt.store, tt.plugin, slot, tt.slot)
		}
	}
}

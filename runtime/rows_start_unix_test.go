//go:build unix

package runtime_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// startingRows are plugins that do not come up, or not as they should.
func startingRows() []rowCase {
	return []rowCase{
		{row: 1, mode: "hang", change: hasty, start: "backoff start_timeout", then: detail("handshake")},
		{row: 1, name: "hang-delays-nobody", test: rowHangDelaysNobody},
		{row: 1, name: "policy", test: rowPolicyMeanwhile},
		{row: 1, name: "late", test: rowLate},
		{row: 2, mode: "mute", change: hasty, start: "backoff start_timeout"},
		{row: 2, mode: "no-socket", change: hasty, start: "backoff start_timeout"},
		{row: 2, mode: "silent", change: hasty, start: "backoff start_timeout"},
		{row: 3, mode: "noise", start: "backoff start_noise", then: detail("loading the model", "standard error")},
		{row: 15, mode: "exit", start: "backoff crash", then: detail("status 1", "out of cheese")},
		{row: 15, name: "quarantine", test: rowQuarantine},
		{row: 20, name: "programs", test: rowPrograms},
		{row: 21, mode: "version", start: "quarantined version_mismatch", then: detail("99")},
		{row: 21, mode: "feature", start: "quarantined version_mismatch", then: detail("time_travel", "cancel")},
		{row: 34, name: "required", test: rowRequired},
		{row: 40, name: "writable", test: rowWritable},
		{row: 41, name: "long-folder", test: rowLongFolder, modes: []string{"where"}},
		{row: 41, name: "no-short-folder", test: rowNoShortFolder},
	}
}

// rowHangDelaysNobody is row 1: others start meanwhile, and a host that waits
// only for what is required does not wait for it.
func rowHangDelaysNobody(t *testing.T, b *processBench) {
	t.Helper()
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{bad(t, "bad", "hang"), bad(t, "good", "good")}}
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{phases.PrePromptCompile: {Require: []string{"good.h"}}}
	cfg.Plugins[0].Limits.Start = phases.Duration(time.Hour)
	eng := b.startWith(t, cfg, runtime.Options{WaitFor: runtime.WaitRequired})
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	checkGood(t, eng, out)
	if row := rowOf(t, eng, "bad"); row.State != phases.PluginStarting {
		t.Errorf("plugin = %+v", row)
	}
}

// rowPolicyMeanwhile is row 1: a guard that has not come up is no reason to let
// anything pass, and its phase does not wait for it.
func rowPolicyMeanwhile(t *testing.T, b *processBench) {
	t.Helper()
	cfg := patient(bad(t, "bad", "hang"), bad(t, "good", "good"))
	cfg.Plugins[0].Subscriptions["bad.h"] = phases.Override{
		Phase: new(phases.PrePromptCompile), OnFailure: new(word(phases.FailClosed)), Timeout: new(phases.Duration(generous)),
	}
	eng := b.startWith(t, cfg, runtime.Options{WaitFor: runtime.WaitRequired})
	b.awaitState(t, "good", phases.PluginReady, 1)
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	if got := errorCode(out); got != "unavailable bad.h" {
		t.Errorf("error = %q, %v", got, states(out))
	}
}

// rowLate: a plugin that describes itself only after New takes part from
// then on.
func rowLate(t *testing.T, b *processBench) {
	t.Helper()
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{bad(t, "bad", "good"), bad(t, "good", "good")}}
	eng := b.startWith(t, cfg, runtime.Options{WaitFor: runtime.WaitRequired})
	b.awaitState(t, "bad", phases.PluginReady, 1)
	b.awaitState(t, "good", phases.PluginReady, 1)
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	checkSame(t, "sections", sorted(sectionIDs(out)), []string{"bad", "good"})
}

// rowQuarantine is row 15: a plugin that crashes again and again is started ever
// later, and then not at all, for a reason that everybody can see.
func rowQuarantine(t *testing.T, b *processBench) {
	t.Helper()
	p := bad(t, "bad", "exit")
	eng := b.start(t, p)
	b.awaitState(t, "bad", phases.PluginQuarantined, 1)
	row := rowOf(t, eng, "bad")
	if row.Restarts != 4 || row.Code != "crash" || !strings.Contains(row.Message+row.Detail, "5 failures") || !strings.Contains(row.Message+row.Detail, "out of cheese") {
		t.Errorf("plugin = %+v", row)
	}
	if n := b.count("backoff", "crash"); n != 4 {
		t.Errorf("%d waits: %v", n, b.summary())
	}
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	checkGood(t, eng, out)
	if text := strings.Join(codes(out), " "); !strings.Contains(text, "crash") {
		t.Errorf("diagnostics: %s", text)
	}
}

// rowRequired is row 34 with a process: a phase whose guard cannot start
// fails closed.
func rowRequired(t *testing.T, b *processBench) {
	t.Helper()
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{bad(t, "bad", "exit")}}
	cfg.Budgets.Phases = map[phases.Phase]config.PhaseBudget{phases.PrePromptCompile: {Require: []string{"bad.h"}}}
	if _, err := runtime.New(t.Context(), cfg, runtime.Options{WaitFor: runtime.WaitRequired}); err == nil || !strings.Contains(err.Error(), "bad.h is required") {
		t.Errorf("New: %v", err)
	}
	eng := b.startWith(t, cfg, runtime.Options{WaitFor: runtime.WaitRequired, AllowRequiredDown: true})
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	if got := errorCode(out); got != "required_missing bad.h" {
		t.Errorf("error = %q", got)
	}
}

// rowPrograms is row 20: what cannot be executed is classified at once and not
// tried again.
func rowPrograms(t *testing.T, b *processBench) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		name, path, want string
	}{
		{"absent", filepath.Join(dir, "absent"), "no such file"},
		{"not executable", write("plain", "#!/bin/sh\n", 0o600), "not executable"},
		{"no program", write("text", "hello\n", 0o700), "not a program for this machine"},
		{"another machine", write("elf", foreignProgram(), 0o700), "cannot be executed"},
		{"no interpreter", write("script", "#!/no/such/interpreter\n", 0o700), "interpreter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := bad(t, "bad", "good")
			p.Command, p.Path, p.Args = tt.path, tt.path, nil
			eng := b.start(t, p)
			row := rowOf(t, eng, "bad")
			if row.State != phases.PluginQuarantined || row.Code != "exec_failed" || row.Restarts != 0 || !strings.Contains(row.Message+row.Detail, tt.want) {
				t.Errorf("plugin = %+v", row)
			}
			out := dispatch(t, eng, &phases.PrePromptCompileInput{})
			checkGood(t, eng, out)
			if !strings.Contains(strings.Join(codes(out), " "), "exec_failed") {
				t.Errorf("diagnostics: %v", codes(out))
			}
		})
	}
}

// foreignProgram is the head of a program for a machine that this is not.
func foreignProgram() string {
	head := make([]byte, 128)
	copy(head, "\x7fELF\x02\x01\x01")
	head[16], head[18], head[20] = 2, 0x2b, 1 // an executable for SPARC
	head[52], head[54], head[58] = 64, 56, 64
	return string(head)
}

// wrapper writes a program that becomes the test binary in a mode.
func wrapper(t *testing.T, dir, mode string, perm os.FileMode) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "plugin")
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' %s %s\n", self, asProgram, mode)
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, perm)); err != nil {
		t.Fatal(err)
	}
	return path
}

// rowWritable is row 40: a program that somebody else could replace is not run,
// unless the operator says so. Folders where everybody may write but nobody may
// replace what is not theirs are fine.
func rowWritable(t *testing.T, b *processBench) {
	t.Helper()
	tests := []struct {
		name         string
		folder, file os.FileMode
		accept       bool
		want         string
	}{
		{"safe", 0o755, 0o755, false, "ready"},
		{"folder", 0o777, 0o755, false, "quarantined unsafe_path"},
		{"file", 0o755, 0o757, false, "quarantined unsafe_path"},
		{"sticky", 0o777 | os.ModeSticky, 0o755, false, "ready"},
		{"sticky_file", 0o777 | os.ModeSticky, 0o757, false, "quarantined unsafe_path"},
		{"accepted", 0o777, 0o757, true, "ready"},
	}
	var plugins []config.Plugin
	for _, tt := range tests {
		dir := t.TempDir()
		if err := os.Chmod(dir, tt.folder); err != nil {
			t.Fatal(err)
		}
		p := bad(t, tt.name, "good")
		p.Path, p.Args, p.UnsafePath = wrapper(t, dir, "good", tt.file), nil, tt.accept
		p.Command = p.Path
		plugins = append(plugins, p)
	}
	eng := b.start(t, plugins...)
	for i, tt := range tests {
		row := rowOf(t, eng, tt.name)
		if got := strings.TrimSpace(string(row.State) + " " + row.Code); got != tt.want {
			t.Errorf("%s: %s (%s)", tt.name, got, row.Message+row.Detail)
		}
		if row.Code != "" && !strings.Contains(row.Message+row.Detail, filepath.Dir(plugins[i].Path)) {
			t.Errorf("%s: the operator is not told where: %s", tt.name, row.Message+row.Detail)
		}
	}
}

// rowLongFolder is row 41: where the usual folders are too long for a socket's
// path, a short one is used, and nothing is left there either.
func rowLongFolder(t *testing.T, b *processBench) {
	t.Helper()
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 90))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", long)
	t.Setenv("TMPDIR", long)
	eng := b.start(t, bad(t, "somewhere", "where"))
	checkGood(t, eng, dispatch(t, eng, &phases.PrePromptCompileInput{}))
	dir := strings.TrimPrefix(b.awaitLine(t, "somewhere", "directory "), "directory ")
	if len(dir) > 60 || strings.HasPrefix(dir, long) {
		t.Errorf("the directory is %s", dir)
	}
	closeEngine(t, eng)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left behind: %s, %v", dir, err)
	}
}

// rowNoShortFolder is row 41: where there is no short folder at all, the error
// says so before anything is started.
func rowNoShortFolder(t *testing.T, _ *processBench) {
	t.Helper()
	dir := t.TempDir()
	long, ran := filepath.Join(dir, strings.Repeat("x", 90)), filepath.Join(dir, "ran")
	path := filepath.Join(dir, "plugin")
	err := errors.Join(os.Mkdir(long, 0o700), os.WriteFile(path, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o600), os.Chmod(path, 0o700))
	if err != nil {
		t.Fatal(err)
	}
	p, err := proc.Start(t.Context(), proc.Spec{Name: "bad", Path: path, RuntimeDir: long})
	if err == nil {
		t.Fatal(p.Stop(t.Context()))
	}
	if phases.CodeOf(err) != phases.CauseExecFailed || !strings.Contains(err.Error(), "too long") || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("Start: %v", err)
	}
	if _, err := os.Stat(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the program was started")
	}
}

//go:build unix

package runtime_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/badplugin"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// badCase is one row of the table of failure modes: a plugin in a mode, beside
// one that is good.
type badCase struct {
	// row is the number in the table; modes that the table does not number have
	// that of the nearest one.
	row  int
	mode string
	args []string
	// change changes the declaration.
	change func(*config.Plugin)
	// start is the plugin's state and code after the start.
	start string
	// run is the state and code of bad.h in a dispatch.
	run string
	// sections are what is merged in it.
	sections []string
	// then are further checks.
	then func(t *testing.T, b *processBench, eng *runtime.Engine, out *phases.Outcome)
}

// quick gives a hook little time.
func quick(p *config.Plugin) {
	p.Subscriptions = map[string]phases.Override{"bad.h": {Timeout: new(phases.Duration(200 * time.Millisecond))}}
}

// hasty gives a start little time.
func hasty(p *config.Plugin) { p.Limits.Start = phases.Duration(time.Second) }

// dropped checks that one answer was dropped and counted, and that the process
// lives on.
func dropped(code string) func(*testing.T, *processBench, *runtime.Engine, *phases.Outcome) {
	return func(t *testing.T, b *processBench, eng *runtime.Engine, _ *phases.Outcome) {
		t.Helper()
		b.await(t, "dropped "+code, func(e runtime.Event) bool {
			return e.Kind == runtime.EventDropped && e.Plugin == "bad" && e.Code == code
		})
		if row := rowOf(t, eng, "bad"); row.State != phases.PluginReady || row.Restarts != 0 {
			t.Errorf("plugin = %+v", row)
		}
	}
}

// detail checks what an operator reads about the plugin's first failure.
func detail(words ...string) func(*testing.T, *processBench, *runtime.Engine, *phases.Outcome) {
	return func(t *testing.T, b *processBench, _ *runtime.Engine, _ *phases.Outcome) {
		t.Helper()
		failed := b.await(t, "failure", func(e runtime.Event) bool {
			return e.Kind == runtime.EventPlugin && e.Plugin == "bad" && e.Code != ""
		})
		for _, word := range words {
			if !strings.Contains(failed.Detail, word) {
				t.Errorf("%q is not in %q", word, failed.Detail)
			}
		}
		if strings.Contains(failed.Detail, "\x1b") {
			t.Errorf("an escape sequence in %q", failed.Detail)
		}
	}
}

// badCases is the table.
func badCases() []badCase {
	both, alone := []string{"bad", "good"}, []string{"good"}
	return []badCase{
		{row: 1, mode: "hang", change: hasty, start: "backoff start_timeout", then: detail("handshake")},
		{row: 2, mode: "mute", change: hasty, start: "backoff start_timeout"},
		{row: 2, mode: "no-socket", change: hasty, start: "backoff start_timeout"},
		{row: 2, mode: "silent", change: hasty, start: "backoff start_timeout"},
		{row: 3, mode: "noise", start: "backoff start_noise", then: detail("loading the model", "standard error")},
		{row: 4, mode: "deaf", change: quick, start: "ready", run: "timed_out timeout", sections: alone},
		{row: 6, mode: "big", start: "ready", run: "failed oversize_reply", sections: alone, then: stillUp},
		{row: 7, mode: "long", start: "ready", run: "succeeded", sections: both, then: cutAndRecorded},
		{row: 9, mode: "flood-err", start: "ready", run: "succeeded", sections: both, then: floodIsCounted},
		{row: 10, mode: "flood-out", start: "ready", run: "succeeded", sections: both, then: stillUp},
		{row: 12, mode: "orphans", start: "ready", run: "failed crash", sections: alone},
		{row: 13, mode: "crash", start: "ready", run: "failed crash", sections: alone, then: crashIsTold},
		{row: 14, mode: "half", start: "ready", run: "failed crash", sections: alone, then: crashIsTold},
		{row: 15, mode: "exit", start: "backoff crash", then: detail("status 1", "out of cheese")},
		{row: 21, mode: "version", start: "quarantined version_mismatch", then: detail("99")},
		{row: 21, mode: "feature", start: "quarantined version_mismatch", then: detail("time_travel", "cancel")},
		{row: 22, mode: "two-hooks", start: "quarantined invalid_reply", then: detail("h")},
		{row: 23, mode: "taken", start: "ready", run: "failed conflict", sections: alone, change: func(p *config.Plugin) {
			p.Subscriptions = map[string]phases.Override{"bad.h": {Priority: new(-1)}}
		}},
		{row: 24, mode: "not-utf8", start: "ready", run: "failed invalid_reply", sections: alone, then: stillUp},
		{row: 31, mode: "slow", change: quick, start: "ready", run: "timed_out timeout", sections: alone, then: stillUp},
		{row: 35, mode: "good", start: "ready", run: "failed condition", sections: alone, change: func(p *config.Plugin) {
			p.Subscriptions = map[string]phases.Override{"bad.h": {When: new(`input.sections[5] == "x"`)}}
		}},
		{row: 36, mode: "double", start: "ready", run: "succeeded", sections: both, then: dropped("double")},
		{row: 36, mode: "late", change: quick, start: "ready", run: "timed_out timeout", sections: alone, then: dropped("late")},
		{row: 36, mode: "wrong-id", start: "ready", run: "succeeded", sections: both, then: dropped("unknown_id")},
		{row: 36, mode: "stale", start: "ready", run: "succeeded", sections: both, then: dropped("stale")},
		{row: 36, mode: "garbage", start: "ready", run: "failed invalid_reply", sections: alone, then: dropped("unreadable")},
		{row: 36, mode: "empty", change: quick, start: "ready", run: "timed_out timeout", sections: alone, then: dropped("stale")},
		{row: 36, mode: "raw-good", start: "ready", run: "succeeded", sections: both, then: stillUp},
	}
}

// TestBadPlugins runs the table. Every case checks the plugin that is bad, the
// one beside it, the caller, and that nothing is left behind.
func TestBadPlugins(t *testing.T) {
	for _, tt := range badCases() {
		t.Run(tt.mode, func(t *testing.T) {
			b := newBench(t)
			p := bad(t, "bad", tt.mode, tt.args...)
			if tt.change != nil {
				tt.change(&p)
			}
			eng := b.start(t, p)
			state, _, _ := strings.Cut(tt.start, " ")
			at := b.awaitState(t, "bad", phases.PluginState(state), 1)
			if got := strings.TrimSpace(at.State + " " + at.Code); got != tt.start {
				t.Fatalf("row %d: after the start: %s: %s", tt.row, got, at.Detail)
			}
			out := dispatch(t, eng, &phases.PrePromptCompileInput{})
			checkGood(t, eng, out)
			if out.Error != nil {
				t.Errorf("row %d: a best-effort hook failed the phase: %v", tt.row, out.Error)
			}
			if tt.run != "" {
				run := runOf(t, out, "bad.h")
				if got := strings.TrimSpace(string(run.State) + " " + run.Code); got != tt.run {
					t.Errorf("row %d: run %q, want %q; %v", tt.row, got, tt.run, out.Diagnostics)
				}
				if diff := cmp.Diff(sorted(sectionIDs(out)), tt.sections); diff != "" {
					t.Errorf("row %d: sections (-got +want):\n%s", tt.row, diff)
				}
			}
			if text := contentOf(out, "bad"); strings.Contains(text, "wrong") {
				t.Errorf("row %d: an answer that does not count was applied: %q", tt.row, text)
			}
			if tt.then != nil {
				tt.then(t, b, eng, out)
			}
		})
	}
}

// contentOf is the text of a merged section, "" if there is none.
func contentOf(out *phases.Outcome, id string) string {
	for _, s := range out.Merged.Sections {
		if s.SectionID == id {
			return s.Content
		}
	}
	return ""
}

// stillUp checks that the failure was one call's and nobody else's.
func stillUp(t *testing.T, _ *processBench, eng *runtime.Engine, _ *phases.Outcome) {
	t.Helper()
	if row := rowOf(t, eng, "bad"); row.State != phases.PluginReady || row.Restarts != 0 {
		t.Errorf("plugin = %+v", row)
	}
}

func cutAndRecorded(t *testing.T, _ *processBench, _ *runtime.Engine, out *phases.Outcome) {
	t.Helper()
	cut := runOf(t, out, "bad.h").Cut
	if len(cut) != 1 || cut[0].Limit != phases.LimitSection || cut[0].Original != 30_000 || cut[0].Kept >= 20_000 {
		t.Errorf("cut = %+v", cut)
	}
	if n := len(contentOf(out, "bad")); n > 20_000 || n < 19_000 {
		t.Errorf("%d characters were kept", n)
	}
}

func floodIsCounted(t *testing.T, b *processBench, eng *runtime.Engine, _ *phases.Outcome) {
	t.Helper()
	closeEngine(t, eng) // what is left of the flood is told at the end
	b.await(t, "dropped lines", func(e runtime.Event) bool {
		return e.Kind == runtime.EventLog && e.Plugin == "bad" && strings.HasPrefix(e.Detail, "dropped ")
	})
	if n := len(b.logged("bad")); n > 2000 {
		t.Errorf("%d of 20,000 lines came through", n)
	}
}

func crashIsTold(t *testing.T, b *processBench, eng *runtime.Engine, out *phases.Outcome) {
	t.Helper()
	b.awaitState(t, "bad", phases.PluginReady, 2)
	if row := rowOf(t, eng, "bad"); row.Restarts != 1 {
		t.Errorf("plugin = %+v", row)
	}
	if n := b.count("backoff", "crash"); n != 1 {
		t.Errorf("%d crashes: %v", n, b.summary())
	}
	var told string
	for _, d := range out.Diagnostics {
		if d.Code == phases.CodeFailOpen {
			told = d.Message
		}
	}
	if !strings.Contains(told, "exited with status") {
		t.Errorf("told: %q", told)
	}
}

// TestBadModesAreUsed: no mode of the bad plugin is left out of the tests.
func TestBadModesAreUsed(t *testing.T) {
	t.Parallel()

	used := map[string]bool{"sleeper": true}
	for _, c := range badCases() {
		used[c.mode] = true
	}
	for _, mode := range []string{"stop", "stubborn", "children", "huge", "hang-up", "tools"} {
		used[mode] = true // tests of their own
	}
	for _, mode := range badplugin.Modes() {
		if !used[mode] {
			t.Errorf("mode %q is not tested", mode)
		}
	}
}

// TestPrograms is row 20: what cannot be executed is classified at once and not
// tried again.
func TestPrograms(t *testing.T) {
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
		{"no program", write("text", "hello\n", 0o700), "no program for this machine"},
		{"another machine", write("elf", foreignProgram(), 0o700), "cannot be executed"},
		{"no interpreter", write("script", "#!/no/such/interpreter\n", 0o700), "interpreter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			p := bad(t, "bad", "good")
			p.Command, p.Path, p.Args = tt.path, tt.path, nil
			eng := b.start(t, p)
			row := rowOf(t, eng, "bad")
			if row.State != phases.PluginQuarantined || row.Code != "exec_failed" || row.Restarts != 0 || !strings.Contains(row.Detail, tt.want) {
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

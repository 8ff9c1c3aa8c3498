//go:build unix

package runtime_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

// startingRows are plugins that do not come up, or not as they should.
func startingRows() []rowCase {
	return []rowCase{
		{row: 1, mode: "hang", change: hasty, start: "backoff start_timeout", then: detail("handshake")},
		{row: 2, mode: "mute", change: hasty, start: "backoff start_timeout"},
		{row: 2, mode: "no-socket", change: hasty, start: "backoff start_timeout"},
		{row: 2, mode: "silent", change: hasty, start: "backoff start_timeout"},
		{row: 3, mode: "noise", start: "backoff start_noise", then: detail("loading the model", "standard error")},
		{row: 15, mode: "exit", start: "backoff crash", then: detail("status 1", "out of cheese")},
		{row: 15, name: "quarantine", test: rowQuarantine},
		{row: 21, mode: "version", start: "quarantined version_mismatch", then: detail("99")},
		{row: 21, mode: "feature", start: "quarantined version_mismatch", then: detail("time_travel", "cancel")},
		{row: 41, name: "long-folder", test: rowLongFolder},
	}
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

//go:build unix

package runtime_test

import (
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

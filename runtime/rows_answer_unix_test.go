//go:build unix

package runtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// answeringRows are plugins that answer what they should not, as they should not,
// or not at all.
func answeringRows() []rowCase {
	both, alone := []string{"bad", "good"}, []string{"good"}
	return []rowCase{
		{row: 4, mode: "deaf", change: quick, start: "ready", run: "timed_out timeout", sections: alone},
		{row: 6, mode: "big", start: "ready", run: "failed oversize_reply", sections: alone, then: stillUp},
		{row: 6, name: "huge", test: rowHuge},
		{row: 7, mode: "long", start: "ready", run: "succeeded", sections: both, then: cutAndRecorded},
		{row: 8, name: "request", test: rowOversizeRequest},
		{row: 23, mode: "taken", start: "ready", run: "failed conflict", sections: alone, change: func(p *config.Plugin) {
			p.Subscriptions = map[string]phases.Override{"bad.h": {Priority: new(-1)}}
		}, then: bothNamed},
		{row: 23, mode: "duplicates", start: "ready", run: "succeeded", sections: both, then: joined},
		{row: 24, mode: "not-utf8", start: "ready", run: "failed invalid_reply", sections: alone, then: stillUp},
		{row: 24, mode: "nul", start: "ready", run: "failed invalid_reply", sections: alone, then: stillUp},
		{row: 24, mode: "surrogate", start: "ready", run: "failed invalid_reply", sections: alone, then: stillUp},
		{row: 24, mode: "dirty", start: "ready", run: "succeeded", sections: both, then: cleaned},
		{row: 30, mode: "dribble", change: quick, start: "ready", run: "timed_out timeout", sections: alone, then: absolute},
		{row: 30, mode: "dribble-start", change: hasty, start: "backoff start_timeout"},
		{row: 36, mode: "double", start: "ready", run: "succeeded", sections: both, then: dropped("double")},
		{row: 36, mode: "late", change: quick, start: "ready", run: "timed_out timeout", sections: alone, then: dropped("late")},
		{row: 36, mode: "wrong-id", start: "ready", run: "succeeded", sections: both, then: dropped("unknown_id")},
		{row: 36, mode: "stale", start: "ready", run: "succeeded", sections: both, then: dropped("stale")},
		{row: 36, mode: "garbage", start: "ready", run: "failed invalid_reply", sections: alone, then: dropped("unreadable")},
		{row: 36, mode: "stale-only", change: quick, start: "ready", run: "failed invalid_reply", sections: alone, then: dropped("stale")},
		{row: 47, mode: "nothing", start: "ready", run: "succeeded", sections: alone, then: stillUp},
		{row: 47, mode: "many", start: "ready", run: "failed invalid_reply", sections: alone, then: tooMany},
		{row: 47, mode: "deep", start: "ready", run: "failed invalid_reply", sections: alone, then: stillUp},
	}
}

// rowHuge is row 6: 100 MB on the wire end the session of one plugin and
// nothing else. The first time another session is opened on the same process,
// the second time the process is replaced.
func rowHuge(t *testing.T, b *processBench) {
	t.Helper()
	eng := b.start(t, bad(t, "bad", "huge", "other"))
	for round := range 2 {
		out := dispatch(t, eng, &phases.PrePromptCompileInput{})
		checkGood(t, eng, out)
		got := []string{runOf(t, out, "bad.h").Code, runOf(t, out, "bad.other").Code}
		if diff := cmp.Diff(got, []string{"oversize_reply", "session_reset"}); diff != "" {
			t.Fatalf("round %d: codes (-got +want):\n%s", round, diff)
		}
		if round == 0 {
			b.awaitState(t, "bad", phases.PluginDegraded, 1)
			b.awaitState(t, "bad", phases.PluginReady, 2)
			if row := rowOf(t, eng, "bad"); row.Restarts != 0 {
				t.Errorf("plugin = %+v", row)
			}
		}
	}
	b.awaitState(t, "bad", phases.PluginReady, 3)
	if row := rowOf(t, eng, "bad"); row.Restarts != 1 {
		t.Errorf("plugin = %+v", row)
	}
}

// rowOversizeRequest is row 8: what a plugin cannot take is refused on the host.
func rowOversizeRequest(t *testing.T, b *processBench) {
	t.Helper()
	p := bad(t, "bad", "good")
	p.Limits.Frame = 8 << 10
	eng := b.start(t, p)
	in := &phases.ToolPreCallInput{Tool: "x", Arguments: raw(`"` + strings.Repeat("y", 20<<10) + `"`)}
	out := dispatch(t, eng, in)
	if run := runOf(t, out, "bad.tool"); run.State != phases.StateFailed || run.Code != "oversize_request" {
		t.Errorf("run = %+v", run)
	}
	if run := runOf(t, out, "good.tool"); run.State != phases.StateSucceeded {
		t.Errorf("the good plugin: %+v", run)
	}
	stillUp(t, b, eng, out)
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

// bothNamed checks that a conflict says who wanted the place, and who has it.
func bothNamed(t *testing.T, b *processBench, eng *runtime.Engine, out *phases.Outcome) {
	t.Helper()
	found := false
	for _, d := range out.Diagnostics {
		found = found || d.Code == "conflict" && d.Subscription == "bad.h" && d.OtherSubscription == "good.h" && d.Slot == "good"
	}
	if !found {
		t.Errorf("diagnostics: %+v", out.Diagnostics)
	}
	if got := contentOf(out, "good"); got != strings.Repeat("x", 10) || out.Merged.Sections[0].Owner == "bad" {
		t.Errorf("the section is %+v", out.Merged.Sections)
	}
	stillUp(t, b, eng, out)
}

// joined checks that two fragments of one plugin are one section, in their order.
func joined(t *testing.T, _ *processBench, _ *runtime.Engine, out *phases.Outcome) {
	t.Helper()
	if got := contentOf(out, "bad"); got != "first\n\nsecond" {
		t.Errorf("section = %q", got)
	}
}

// cleaned checks that the sdk has replaced what is no text and said so, and that
// the same bytes give the same fingerprint.
func cleaned(t *testing.T, b *processBench, eng *runtime.Engine, out *phases.Outcome) {
	t.Helper()
	if got := contentOf(out, "bad"); got != "a\ufffdb\ufffdc\ufffdd" {
		t.Errorf("section = %q", got)
	}
	if got := strings.Join(codes(out), " "); !strings.Contains(got, "text_replaced bad.h") {
		t.Errorf("diagnostics: %s", got)
	}
	again := dispatch(t, eng, &phases.PrePromptCompileInput{})
	if diff := cmp.Diff(runOf(t, out, "bad.h").Contributions, runOf(t, again, "bad.h").Contributions); diff != "" {
		t.Errorf("fingerprints (-first +second):\n%s", diff)
	}
	stillUp(t, b, eng, out)
}

// tooMany checks that the ledger says how many there were, and how many may be.
func tooMany(t *testing.T, b *processBench, eng *runtime.Engine, out *phases.Outcome) {
	t.Helper()
	if text := fmt.Sprint(out.Diagnostics); !strings.Contains(text, "257 contributions; at most 256") {
		t.Errorf("diagnostics: %s", text)
	}
	stillUp(t, b, eng, out)
}

// absolute checks that a hook's time was over when it was over, though its answer
// was on the way, and that the next call does not wait behind it.
func absolute(t *testing.T, _ *processBench, eng *runtime.Engine, out *phases.Outcome) {
	t.Helper()
	again := dispatch(t, eng, &phases.PrePromptCompileInput{})
	for _, out := range []*phases.Outcome{out, again} {
		if run := runOf(t, out, "bad.h"); run.State != phases.StateTimedOut || run.DurationMS > 5000 {
			t.Errorf("run = %+v", run)
		}
		checkGood(t, eng, out)
	}
}

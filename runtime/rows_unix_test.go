//go:build unix

package runtime_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// rowCase is one case of the table of what plugins do wrong (tableRows):
// real processes, then what must have happened. Most cases are a plugin in a
// mode beside one that is good, and differ in a few words; the others have a
// test of their own. After each the bench checks that no goroutine, descriptor,
// process, zombie or folder is left.
type rowCase struct {
	// row is the number in the table.
	row int
	// name tells the cases of a row apart; empty is the mode.
	name string
	// mode is that of the bad plugin, and args are the mode's own.
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

	// test stands in place of all this but row and name.
	test func(t *testing.T, b *processBench)
	// long cases wait for seconds and have a cause that a quick case has too: they run
	// with GRAPNEL_LONG=1.
	long bool
}

// theme is the rows of one kind, which are tested in one process.
type theme struct {
	name  string
	cases []rowCase
}

// rows is the whole table.
func rows() []theme {
	return []theme{
		{"starting", startingRows()},
		{"answering", answeringRows()},
		{"crashing", crashingRows()},
		{"resources", resourceRows()},
		{"fairness", fairnessRows()},
		{"configuring", configuringRows()},
		{"secrets", secretRows()},
		{"supervision", supervisionRows()},
		{"memory", memoryRows()},
	}
}

// title is the name of the case's test: "04_deaf".
func (c rowCase) title() string {
	name := c.name
	if name == "" {
		name = c.mode
	}
	return fmt.Sprintf("%02d_%s", c.row, name)
}

// TestRows runs the table, with plugins that take the lane.
func TestRows(t *testing.T) { testRows(t, rows()) }

// TestRowsOverGRPC runs it with plugins that do not, as those in other languages, but for what only a lane can do by hand.
func TestRowsOverGRPC(t *testing.T) {
	testOtherRows(t, rows(), func(c rowCase) bool { return c.mode == "half" || c.mode == "dribble" })
}

// TestRowsOverStdio runs it with plugins that speak on standard input and output, but for what only gRPC has.
func TestRowsOverStdio(t *testing.T) {
	testOtherRows(t, append(rows(), theme{"stdio", stdioRows()}), func(c rowCase) bool { return onlyOverGRPC(c) != "" })
}

func testOtherRows(t *testing.T, all []theme, omit func(rowCase) bool) {
	t.Helper()
	if os.Getenv(longTests) == "" {
		t.Skip("TestRows runs the same over the lane: GRAPNEL_LONG=1 runs all")
	}
	for i := range all {
		all[i].cases = slices.DeleteFunc(all[i].cases, omit)
	}
	testRows(t, all)
}

// onlyOverGRPC says why a case has no sense over stdio, or another end (stdioRows); "" if it has the same.
func onlyOverGRPC(c rowCase) string {
	switch c.title() {
	case "01_hang", "02_mute", "02_no-socket", "21_version", "45_another-socket", "45_stranger":
		return "there is no handshake, and no socket"
	case "03_noise", "10_flood-out", "24_not-utf8", "36_garbage":
		return "what is printed is no frame, which ends the session"
	case "06_huge":
		return "standard input and output serve one session"
	case "47_deep":
		return "as JSON, the same frame is none, or too large"
	}
	return ""
}

// stdioRows are cases with another end over stdio.
func stdioRows() []rowCase {
	return []rowCase{
		{row: 1, name: "hang-stdio", mode: "hang", change: hasty, start: "backoff start_timeout"},
		{row: 3, name: "noise-stdio", mode: "noise", start: "backoff start_noise", then: detail("loading", "standard error")},
		{row: 6, name: "huge-stdio", mode: "huge", start: "ready", run: "failed oversize_reply", sections: []string{"good"}},
		{row: 6, name: "hang-up-stdio", mode: "hang-up", start: "ready", run: "failed crash", sections: []string{"good"}},
		{row: 10, name: "flood-out-stdio", mode: "flood-out", start: "ready", run: "failed invalid_frame", sections: []string{"good"}},
		{row: 36, name: "garbage-stdio", mode: "garbage", start: "ready", run: "failed invalid_frame", sections: []string{"good"}},
	}
}

func testRows(t *testing.T, all []theme) {
	t.Helper()
	for _, theme := range all {
		t.Run(theme.name, func(t *testing.T) {
			if alone(t) {
				return
			}
			slices.SortStableFunc(theme.cases, func(a, b rowCase) int { return a.row - b.row })
			for _, c := range theme.cases {
				t.Run(c.title(), func(t *testing.T) { c.execute(t) })
			}
		})
	}
}

func (c rowCase) execute(t *testing.T) {
	if c.long && os.Getenv(longTests) == "" {
		t.Skip("it waits for seconds: GRAPNEL_LONG=1 runs it")
	}
	b := newBench(t)
	if c.test != nil {
		c.test(t, b)
		return
	}
	c.generic(t, b)
}

// generic is the test of most cases: the plugin that is bad, the one beside it,
// and the caller.
func (c rowCase) generic(t *testing.T, b *processBench) {
	t.Helper()
	p := bad(t, "bad", c.mode, c.args...)
	if c.change != nil {
		c.change(&p)
	}
	eng := b.start(t, p)
	state, _, _ := strings.Cut(c.start, " ")
	at := b.awaitState(t, "bad", phases.PluginState(state), 1)
	if got := strings.TrimSpace(at.State + " " + at.Code); got != c.start {
		t.Fatalf("after the start: %s: %s", got, at.Message+at.Detail)
	}
	out := dispatch(t, eng, &phases.PrePromptCompileInput{})
	checkGood(t, eng, out)
	if out.Error != nil {
		t.Errorf("a best-effort hook failed the phase: %v", out.Error)
	}
	if c.run != "" {
		run := runOf(t, out, "bad.h")
		if got := strings.TrimSpace(string(run.State) + " " + run.Code); got != c.run {
			t.Errorf("run %q, want %q; %v", got, c.run, out.Diagnostics)
		}
		checkSame(t, "sections", sorted(sectionIDs(out)), c.sections)
	}
	if text := contentOf(out, "bad"); strings.Contains(text, "wrong") {
		t.Errorf("an answer that does not count was applied: %q", text)
	}
	if c.then != nil {
		c.then(t, b, eng, out)
	}
}

// quick gives a hook little time.
func quick(p *config.Plugin) {
	p.Subscriptions = map[string]phases.Override{"bad.h": {Timeout: new(phases.Duration(200 * time.Millisecond))}}
}

// hasty gives a start little time.
func hasty(p *config.Plugin) { p.Limits.Start = phases.Duration(500 * time.Millisecond) }

// dropped checks that one answer was dropped and counted, and that the process
// lives on.
func dropped(code string) func(*testing.T, *processBench, *runtime.Engine, *phases.Outcome) {
	return func(t *testing.T, b *processBench, eng *runtime.Engine, out *phases.Outcome) {
		t.Helper()
		b.await(t, "dropped "+code, func(e runtime.Event) bool {
			return e.Kind == runtime.EventDropped && e.Plugin == "bad" && e.Code == code
		})
		stillUp(t, b, eng, out)
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
			if !strings.Contains(failed.Message+failed.Detail, word) {
				t.Errorf("%q is not in %q", word, failed.Message+failed.Detail)
			}
		}
		if strings.Contains(failed.Message+failed.Detail, "\x1b") {
			t.Errorf("an escape sequence in %q", failed.Message+failed.Detail)
		}
	}
}

// stillUp checks that the failure was one call's and nobody else's.
func stillUp(t *testing.T, _ *processBench, eng *runtime.Engine, _ *phases.Outcome) {
	t.Helper()
	if row := rowOf(t, eng, "bad"); row.State != phases.PluginReady || row.Restarts != 0 {
		t.Errorf("plugin = %+v", row)
	}
}

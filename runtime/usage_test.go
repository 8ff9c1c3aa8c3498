package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// rounds compiles so many prompts in one turn and returns their manifests' ids.
func rounds(t *testing.T, turn *runtime.Turn, n int) []string {
	t.Helper()
	var ids []string
	for range n {
		done := prompted(t)(turn.Compile(t.Context(), runtime.CompileInput{}))
		ids = append(ids, done.Manifest.ManifestID)
	}
	return ids
}

// TestReportUsage: what a provider reports is tied to the round that it is for.
func TestReportUsage(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.FixedZone("east", 3600))
	s := &memorySink{}
	h := newHosted(whole())
	h.opts.Sink, h.opts.Now = s, func() time.Time { return now }
	eng := h.start(t)
	turn := begin(t, eng)
	if err := turn.ReportUsage(t.Context(), phases.Usage{}); !errors.Is(err, runtime.ErrNothingCompiled) {
		t.Errorf("before anything was compiled: %v", err)
	}
	var want []manifest.Usage
	for i := range 3 {
		id := rounds(t, turn, 1)[0]
		u := phases.Usage{InputTokens: 100 * i, CacheReadTokens: 10 * i}
		if err := turn.ReportUsage(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		want = append(want, manifest.Usage{ManifestID: id, Rounds: 1, ReportedAt: now.UTC(), Usage: u})
	}
	if err := turn.ReportUsage(t.Context(), phases.Usage{InputTokens: -1}); err == nil || phases.CodeOf(err) != phases.CauseInternal {
		t.Errorf("a count below 0: %v", err)
	}
	outcome(t)(turn.End(t.Context(), &phases.PostTurnInput{Usage: phases.Usage{InputTokens: 300}}))
	checkSame(t, "usage", s.usage, want)
	if err := turn.ReportUsage(t.Context(), phases.Usage{}); !errors.Is(err, runtime.ErrTurnEnded) {
		t.Errorf("after the end: %v", err)
	}
	later := manifest.Usage{ManifestID: want[0].ManifestID, Rounds: 3, ReportedAt: now.Add(time.Hour), Usage: phases.Usage{OutputTokens: 7}}
	if err := eng.ReportUsage(t.Context(), later); err != nil || len(s.usage) != 4 || s.usage[3].Rounds != 3 || s.usage[3].ReportedAt.Location() != time.UTC {
		t.Errorf("without a turn: %v, %+v", err, s.usage)
	}
	if got := eng.Stats(); got.UsageKept != 4 || got.UsageNotKept != 0 {
		t.Errorf("stats %+v", got)
	}
}

// TestUsageOfAgents: agents that compile at the same time report about their own prompts.
func TestUsageOfAgents(t *testing.T) {
	t.Parallel()

	s := &memorySink{}
	h := newHosted(whole())
	h.opts.Sink = s
	ann := begin(t, h.start(t))
	bob, err := ann.ForAgent("bob")
	if err != nil {
		t.Fatal(err)
	}
	if first := rounds(t, ann, 1); !errors.Is(bob.ReportUsage(t.Context(), phases.Usage{InputTokens: 1}), runtime.ErrNothingCompiled) {
		t.Errorf("bob reports about %q", first)
	}
	want := map[string]int{rounds(t, ann, 1)[0]: 10, rounds(t, bob, 1)[0]: 200}
	if err := errors.Join(
		ann.ReportUsage(t.Context(), phases.Usage{InputTokens: 10}), bob.ReportUsage(t.Context(), phases.Usage{InputTokens: 200}), ann.ReportRequest(nil), bob.ReportRequest(nil),
	); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, u := range s.usage {
		got[u.ManifestID] += u.InputTokens
	}
	checkSame(t, "usage by prompt", got, want)
	out := outcome(t)(ann.End(t.Context(), &phases.PostTurnInput{}))
	if got := codes(out); !slices.Equal(got, []string{"prompt_not_reported"}) || !strings.Contains(out.Diagnostics[0].Message, "a prompt of") {
		t.Errorf("End says %+v", out.Diagnostics) // ann's first
	}
}

// TestUsageAtTheEnd: a host that knows only the sum of a turn says it once.
func TestUsageAtTheEnd(t *testing.T) {
	t.Parallel()

	u := phases.Usage{InputTokens: 900, OutputTokens: 20, CacheReadTokens: 800, CacheWriteTokens: 50}
	tests := []struct {
		name     string
		compiled int
		sink     bool
		usage    phases.Usage
		want     int // rounds; 0: nothing is reported
	}{
		{"one round", 1, true, u, 1},
		{"three rounds", 3, true, u, 3},
		{"nothing was used", 2, true, phases.Usage{}, 0},
		{"nothing was compiled", 0, true, u, 0},
		{"no sink", 1, false, u, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			s := &memorySink{}
			h := newHosted(whole())
			if tt.sink {
				h.opts.Sink = s
			}
			turn := begin(t, h.start(t))
			ids := rounds(t, turn, tt.compiled)
			out, err := turn.End(t.Context(), &phases.PostTurnInput{Usage: tt.usage})
			silent := tt.compiled > 0 && tt.usage == (phases.Usage{})
			if got := codes(out); err != nil || slices.Contains(got, "prompt_not_reported") != silent || !silent && len(got) > 0 {
				t.Fatalf("End = %+v, %v", out.Diagnostics, err)
			}
			var want []manifest.Usage
			if tt.want > 0 {
				want = []manifest.Usage{{ManifestID: ids[len(ids)-1], Rounds: tt.want, Usage: tt.usage}}
			}
			for i := range s.usage {
				s.usage[i].ReportedAt = time.Time{}
			}
			checkSame(t, "usage", s.usage, want)
			if _, err := turn.End(t.Context(), &phases.PostTurnInput{Usage: u}); err != nil || len(s.usage) != len(want) {
				t.Errorf("a second end reports again: %v, %v", err, s.usage)
			}
		})
	}
}

// TestBlockedIsNoRound: a prompt that was not handed out cost nothing.
func TestBlockedIsNoRound(t *testing.T) {
	t.Parallel()

	verdict := allow()
	s := &memorySink{}
	h := newHosted(plugin("p", on("h", phases.PostPromptCompile, func(context.Context, *sdk.Call, phases.Input) ([]phases.Contribution, error) {
		return []phases.Contribution{verdict}, nil
	}, phases.KindDecision)))
	h.opts.Sink = s
	turn := begin(t, h.start(t))
	id := rounds(t, turn, 1)[0]
	verdict = deny("no more")
	if _, err := turn.Compile(t.Context(), runtime.CompileInput{}); phases.CodeOf(err) != phases.CauseDenied {
		t.Fatal(err)
	}
	outcome(t)(turn.End(t.Context(), &phases.PostTurnInput{Usage: phases.Usage{InputTokens: 5}}))
	if len(s.prompts()) != 2 || len(s.usage) != 1 || s.usage[0].ManifestID != id || s.usage[0].Rounds != 1 {
		t.Errorf("kept %d, usage %+v", len(s.records), s.usage)
	}
}

// TestUsageNotKept: a report that is not kept is told and fails no turn.
func TestUsageNotKept(t *testing.T) {
	t.Parallel()

	for _, hangs := range []bool{false, true} {
		t.Run(map[bool]string{false: "fails", true: "hangs"}[hangs], func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				var j journal
				release := make(chan struct{})
				code := phases.CauseUnavailable
				s := &memorySink{before: failingAt("Report", errors.New("disk full"))}
				if hangs {
					code = phases.CauseTimeout
					s.before = hangingAt("Report", release)
				}
				h := newHosted()
				h.opts.Sink, h.opts.OnEvent = s, j.events(runtime.EventManifest)
				eng := h.start(t)
				t.Cleanup(func() { close(release) })
				one, two := begin(t, eng), begin(t, eng)
				rounds(t, one, 1)
				rounds(t, two, 1)
				if err := one.ReportUsage(t.Context(), phases.Usage{InputTokens: 1}); phases.CodeOf(err) != code {
					t.Errorf("ReportUsage = %v, want %s", err, code)
				}
				out, err := two.End(t.Context(), &phases.PostTurnInput{Usage: phases.Usage{InputTokens: 1}})
				if err != nil || len(out.Diagnostics) != 1 || out.Diagnostics[0].Code != "usage_not_kept" {
					t.Errorf("End = %+v, %v", out, err)
				}
				event := "usage_not_kept " + string(code)
				checkSame(t, "events", j.all(), []string{event, event})
				if got := eng.Stats(); got.UsageNotKept != 2 || got.UsageKept != 0 {
					t.Errorf("stats %+v", got)
				}
			})
		})
	}
}

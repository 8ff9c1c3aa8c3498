package main

import (
	"encoding/json"
	"strings"

	"github.com/grapnelhq/grapnel/internal/replay"
	"github.com/grapnelhq/grapnel/internal/text"
)

// manyRuns is how many runs with the same answer a table shows. Of long records only
// the others are of interest.
const manyRuns = 50

// printReplayed prints a replay for people.
func (a *app) printReplayed(r *replayed, diff bool) {
	a.printf("%s", rule("replay of "+clean(r.File)))
	for _, p := range r.Plugins {
		switch {
		case p.Version != p.RecordedVersion:
			a.printf("%s: version %s, recorded was %s\n", clean(p.Plugin), clean(p.Version), clean(p.RecordedVersion))
		case p.SHA256 != p.RecordedSHA256:
			a.printf("%s: another program than the recorded one\n", clean(p.Plugin))
		}
	}
	t := newTable("runs", ">run", "subscription", "answer", "why", ">recorded ms", ">now ms")
	hidden, same := 0, 0
	for _, run := range r.Runs {
		if run.Outcome == replay.Same {
			if same++; same > manyRuns {
				hidden++
				continue
			}
		}
		t.add(run.Run, run.Subscription, run.Outcome, whyOutcome(run), run.Recorded.MS, run.Now.MS)
	}
	a.printTable(t)
	if hidden > 0 {
		a.printf("  … and %s more that are the same\n", text.Thousands(hidden))
	}
	if diff {
		a.printDifferences(r.Runs)
	}
	a.printf("\n%d same, %d differ, %d failed", r.Same, r.Differs, r.Failed)
	if r.Skipped > 0 {
		a.printf(", %d with nothing to compare with", r.Skipped)
	}
	a.printf("\np50 %s ms (recorded %s), p99 %s ms (recorded %s)\n", millis(r.Now.P50), millis(r.Recorded.P50), millis(r.Now.P99), millis(r.Recorded.P99))
	if r.LeftOut > 0 {
		a.printf("%d %s missing in the record: %s\n", r.LeftOut, plural(r.LeftOut, "exchange is", "exchanges are"), clean(r.Why))
	}
	if r.Unfinished > 0 {
		a.printf("%d %s of the record %s cut off\n", r.Unfinished, plural(r.Unfinished, "line", "lines"), plural(r.Unfinished, "is", "are"))
	}
}

// whyOutcome says in a few words what is behind an outcome.
func whyOutcome(run *replay.Run) string {
	var words []string
	switch {
	case run.Outcome == replay.Skipped:
		words = append(words, "its caller had gone")
	case run.Now.Code != run.Recorded.Code && run.Now.Code != "":
		words = append(words, run.Now.Code)
	case run.Now.Code != run.Recorded.Code:
		words = append(words, "recorded was "+run.Recorded.Code)
	case run.Now.Code != "":
		words = append(words, run.Now.Code+", as recorded")
	case run.Outcome == replay.Differs:
		words = append(words, run.Differences[0].Pointer)
	}
	if len(run.Unrecorded) > 0 {
		words = append(words, "asked for "+strings.Join(run.Unrecorded, ", ")+", which is not in the record")
	}
	return strings.Join(words, "; ")
}

// printDifferences prints what differs, run by run.
func (a *app) printDifferences(runs []*replay.Run) {
	for _, run := range runs {
		if len(run.Differences) == 0 {
			continue
		}
		a.printf("\n%s", rule("run "+text.Thousands(run.Run)+": "+clean(run.Subscription)))
		for _, d := range run.Differences {
			was, now := apart(d.Recorded, d.Now)
			a.printf("%s\n", clean(d.Pointer))
			a.printf("  recorded  %s\n", was)
			a.printf("  now       %s\n", now)
		}
		if run.Now.Message != "" {
			a.printf("  %s\n", clean(run.Now.Message))
		}
	}
}

// apart shows two values; of long texts from a little before where they part.
func apart(was, now json.RawMessage) (string, string) {
	a, b := shownValue(was), shownValue(now)
	const before, enough = 30, 60
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	if same < enough {
		return clean(a), clean(b)
	}
	from := same - before
	return clean("…" + strings.ToValidUTF8(a[from:], "")), clean("…" + strings.ToValidUTF8(b[from:], ""))
}

// shownValue is a value, or that there is none.
func shownValue(v json.RawMessage) string {
	if v == nil {
		return "(nothing)"
	}
	return string(v)
}

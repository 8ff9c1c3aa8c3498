package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// testOverview: pages together have each selected manifest once, and overviews say what the records do.
func (x suite) testOverview(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	for n := range 20 {
		m := sample([]string{"w", "v"}[n%2], []string{"t", "t", "u"}[n%3], n)
		if n == 7 {
			predicted := 40
			m.Blocked, m.Cache.Predicted, m.Cache.ToolTokens = true, &predicted, 5
			m.Runs[0].State, m.Runs[1].State, m.Runs[2].State = phases.StateDenied, phases.StateFailed, phases.StateTimedOut
			m.Omitted = []phases.Omitted{{ID: "a"}}
			m.Sections[2].Truncation = &phases.Truncation{}
			m.Diagnostics = []manifest.Diagnostic{{Code: "a", Severity: phases.SeverityWarning}, {Code: "b", Severity: phases.SeverityInfo}}
		}
		keep(t, s, m)
	}
	report(t, s, usage(7, 1, epoch()))
	for name, f := range map[string]store.Filter{
		"all": {}, "a workspace": {Workspace: "w"}, "a thread of a workspace": {Workspace: "w", Thread: "t"},
	} {
		f.Limit = 3
		var got, want []string
		for before := ""; ; {
			page, err := s.Page(t.Context(), f, before)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, k := range page {
				got, before = append(got, k.ManifestID), k.ManifestID
			}
		}
		f.Limit = 0
		list, err := s.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range slices.Backward(list) {
			want = append(want, x.ManifestID)
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
	_, err := s.Page(t.Context(), store.Filter{Thread: "t", Limit: 3}, "")
	wantCode(t, err, store.CodeAmbiguous)
	_, err = s.Page(t.Context(), store.Filter{Workspace: "w", Limit: 3}, sampleID(7))
	wantCode(t, err, store.CodeNotFound)

	page, err := s.Page(t.Context(), store.Filter{Workspace: "v", Limit: 1}, sampleID(9))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Overviews(t.Context(), page)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	reports, err := s.Usage(t.Context(), sampleID(7))
	if err != nil {
		t.Fatal(err)
	}
	tokens, predicted := 1050, 40
	page[0].Kind = manifest.KindPrompt
	want := manifest.Overview{
		Index: page[0].Index, Tokens: &tokens, Chars: 4000, Predicted: &predicted, Actual: &reports[0].CacheReadTokens, Input: &reports[0].InputTokens,
		Blocked: true, Denied: true, FailedRuns: 2, Omitted: 1, CutSections: 1, Diagnostics: 1,
	}
	if diff := cmp.Diff(rows[0], want); diff != "" {
		t.Errorf("overview (-got +want):\n%s", diff)
	}
	after, err := s.KeptAfter(t.Context(), page[0].ID, 2)
	if err != nil || len(after) != 2 || after[0].ManifestID != sampleID(8) {
		t.Errorf("after it: %+v, %v", after, err)
	}
}

// testOverviewOfMany: of 20,000 manifests a page is found by an index, whatever is selected.
func (x suite) testOverviewOfMany(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{})
	s.StopSettling()
	keep(t, s, sample("w", "t", 1))
	storetest.Exec(t, dsn, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
		INSERT INTO manifests (manifest_id, workspace_id, thread_id, seq, turn_id, created_at, actor, profile, fingerprint_full, hash, bytes, outline, record)
		SELECT manifest_id || i, 'w' || (i % 2), 't' || (i % 3), i, '', created_at, actor, profile, '', '', bytes, outline, '' FROM n, manifests`)
	storetest.Exec(t, dsn, `INSERT INTO usages (manifest_id, reported_at, rounds, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens)
		SELECT manifest_id, created_at, 1, 2, 3, 4, 5 FROM manifests`)
	storetest.Exec(t, dsn, "ANALYZE")
	for _, f := range []store.Filter{{}, {Workspace: "w1"}, {Workspace: "w1", Thread: "t1"}} {
		for _, before := range []string{"", sampleID(1) + "10005"} {
			if before != "" && (f.Workspace != "" || f.Thread != "") {
				before = fmt.Sprintf("%s%d", sampleID(1), 9997) // of w1, and of t1
			}
			f.Limit = 51
			query, args, err := s.PageQuery(t.Context(), f, before)
			if err != nil {
				t.Fatal(err)
			}
			plan := planOf(t, dsn, query, args...)
			for _, bad := range []string{"Seq Scan", "TEMP B-TREE", "Sort"} {
				if strings.Contains(plan, bad) {
					t.Errorf("%+v before %q has %s:\n%s", f, before, bad, plan)
				}
			}
			if list, err := s.Page(t.Context(), f, before); err != nil || len(list) != 51 {
				t.Errorf("%+v before %q: %d rows, %v", f, before, len(list), err)
			}
		}
	}
}

// testThreadList: threads come with their titles, page by page.
func (x suite) testThreadList(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{})
	for n := range 9 {
		keep(t, s, sample([]string{"w", "v"}[n%2], fmt.Sprint("t", n%3), n))
	}
	storetest.Exec(t, dsn, "INSERT INTO tree_threads (workspace_id, id, title, created_at, created_by) VALUES ('w', 't1', 'One', 0, '')")
	var got []string
	for after := int64(0); ; {
		page, err := s.Threads(t.Context(), "w", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, x := range page {
			title := "-"
			if x.Title != nil {
				title = *x.Title
			}
			got, after = append(got, fmt.Sprintf("%s/%s %s %d %d", x.WorkspaceID, x.ThreadID, title, x.Manifests, x.NewestAt.Sub(epoch())/time.Second)), x.ID
		}
	}
	if diff := cmp.Diff(got, []string{"w/t1 One 1 4", "w/t2 - 2 8", "w/t0 - 2 6"}); diff != "" {
		t.Errorf("threads (-got +want):\n%s", diff)
	}
	if all, err := s.Threads(t.Context(), "", 0, 10); err != nil || len(all) != 6 {
		t.Errorf("%d threads, %v", len(all), err)
	}
}

package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// runSuite runs what every database must do alike. Some tests change a database
// past the store, as somebody would who tampers with it.
func runSuite(t *testing.T, s suite) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"append", s.testAppend},
		{"chains are apart", s.testThreads},
		{"refused", s.testRefused},
		{"list", s.testList},
		{"get", s.testGet},
		{"latest", s.testLatest},
		{"stream and export", s.testExport},
		{"verify", s.testVerify},
		{"verify in order", s.testVerifyOrder},
		{"verify stopped", s.testVerifyStopped},
		{"key", s.testKey},
		{"prune by count", s.testPruneCount},
		{"prune by age", s.testPruneAge},
		{"clock going backwards", s.testClock},
		{"entries", s.testEntries},
		{"overview", s.testOverview},
		{"overview of many", s.testOverviewOfMany},
		{"threads", s.testThreadList},
		{"sums", s.testSums},
		{"tree", s.testTree},
		{"search", s.testSearch},
		{"terms of what is gone", s.testSearchTermsGo},
		{"index", s.testIndex},
		{"index tampered with", s.testIndexTampered},
		{"sentence", s.testSentence},
		{"forged sentence", s.testForgedSentence},
		{"one tree", s.testOneTree},
		{"tree forged", s.testTreeForged},
		{"what the schema consists of", s.testObjects},
		{"tampered with beside the records", s.testAsideTampered},
		{"idle thread", s.testIdleThread},
		{"erase", s.testErase},
		{"erase by age", s.testEraseByAge},
		{"holds", s.testHolds},
		{"usage", s.testUsage},
		{"usage refused", s.testUsageRefused},
		{"prune usage", s.testPruneUsage},
		{"prune while appending", s.testPruneWhileAppending},
		{"conversation", s.testConversation},
		{"conversation of many", s.testConversationOfMany},
		{"long conversation", s.testLongConversation},
		{"conversation erased", s.testConversationErased},
		{"conversation pruned", s.testConversationPruned},
		{"conversation of a deleted thread", s.testConversationGone},
		{"state", s.testState},
		{"eviction of state", s.testStateEviction},
		{"texts", s.testTexts},
		{"texts or nothing", s.testTextsOrNothing},
		{"altered text", s.testAlteredText},
		{"colliding texts", s.testCollidingTexts},
		{"opened at once", s.testOpenedAtOnce},
		{"newer schema", s.testNewerSchema},
		{"newer manifest", s.testNewerManifest},
		{"read only", s.testReadOnly},
		{"closed", s.testClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			test.run(t)
		})
	}
}

// suite makes databases: any that is good for a store, and ones that are empty.
type suite struct{ newDSN, newEmpty func(tb testing.TB) string }

// fillThread appends samples from..to-1 of a thread.
func fillThread(t *testing.T, s *store.Store, workspace, thread string, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := s.Append(t.Context(), sample(workspace, thread, n), nil); err != nil {
			t.Fatal(err)
		}
	}
}

func verify(t *testing.T, s *store.Store, o manifest.VerifyOptions) manifest.Verdict {
	t.Helper()
	got, err := s.Verify(t.Context(), store.Filter{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wantCode(t *testing.T, err error, code store.Code) {
	t.Helper()
	if !store.HasCode(err, code) {
		t.Errorf("error %v, want the code %s", err, code)
	}
}

func (x suite) testAppend(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	var last string
	for n := range 5 {
		m := sample("w", "t", n)
		m.Seq, m.Prev, m.Hash = 77, "nonsense", "nonsense" // the store's business
		if err := s.Append(t.Context(), m, nil); err != nil {
			t.Fatal(err)
		}
		if m.Seq != uint64(n) || m.Prev != last {
			t.Errorf("seq %d, prev %q; want %d, %q", m.Seq, m.Prev, n, last)
		}
		if err := manifest.Validate(m); err != nil {
			t.Error(err)
		}
		got, err := s.Get(t.Context(), m.ManifestID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, m); diff != "" {
			t.Errorf("what is kept is not what was appended (-got +want):\n%s", diff)
		}
		last = m.Hash
	}
	wantGood(t, s, 5)
}

func (x suite) testThreads(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	// The ids of the second and third would be one if they were put together.
	threads := [][2]string{{"w", "t"}, {"a", "bc"}, {"ab", "c"}, {"", ""}, {"w", "Ünïcode '; --"}}
	for n := range 15 {
		m := sample(threads[n%5][0], threads[n%5][1], n)
		if err := s.Append(t.Context(), m, nil); err != nil {
			t.Fatal(err)
		}
		if m.Seq != uint64(n/5) {
			t.Errorf("thread %q: seq %d, want %d", threads[n%5], m.Seq, n/5)
		}
	}
	wantGood(t, s, 15)
	got, err := s.Verify(t.Context(), store.Filter{Workspace: "ab"}, manifest.VerifyOptions{})
	if err != nil || !got.OK || got.Checked != 3 {
		t.Errorf("one workspace: %+v, %v", got, err)
	}
}

func (x suite) testRefused(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	tests := []struct {
		name   string
		change func(m *manifest.Manifest)
	}{
		{"no id", func(m *manifest.Manifest) { m.ManifestID = "" }},
		{"NUL", func(m *manifest.Manifest) { m.ThreadID = "a\x00b" }},
		{"not UTF-8", func(m *manifest.Manifest) { m.TurnID = "\xff" }},
		{"title is not UTF-8", func(m *manifest.Manifest) { m.Sections[0].Title = "\xff" }},
		{"before there were clocks", func(m *manifest.Manifest) { m.CreatedAt = time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC) }},
	}
	for _, tt := range tests {
		m := sample("w", "t", 0)
		tt.change(m)
		if err := s.Append(t.Context(), m, nil); !store.HasCode(err, store.CodeInvalid) {
			t.Errorf("%s: %v, want the code %s", tt.name, err, store.CodeInvalid)
		}
	}
	fillThread(t, s, "w", "t", 0, 1)
	wantGood(t, s, 1) // nothing of the refused ones is left
}

func (x suite) testList(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	if got, err := s.List(t.Context(), store.Filter{}); err != nil || got == nil || len(got) != 0 {
		t.Errorf("empty: %v, %v", got, err)
	}
	for n := range 12 {
		fillThread(t, s, []string{"w", "v"}[n%2], []string{"t", "u", "u"}[n%3], n, n+1)
	}
	tests := []struct {
		name   string
		filter store.Filter
		want   []int
	}{
		{"all", store.Filter{}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		{"limit", store.Filter{Limit: 3}, []int{9, 10, 11}},
		{"limit beyond", store.Filter{Limit: 30, Workspace: "v"}, []int{1, 3, 5, 7, 9, 11}},
		{"workspace", store.Filter{Workspace: "w", Limit: 2}, []int{8, 10}},
		{"thread", store.Filter{Thread: "t"}, []int{0, 3, 6, 9}},
		{"limit of a thread", store.Filter{Thread: "u", Limit: 3}, []int{8, 10, 11}},
		{"limit beyond a thread", store.Filter{Thread: "t", Limit: 9}, []int{0, 3, 6, 9}},
		{"thread of a workspace", store.Filter{Workspace: "w", Thread: "u", Limit: 2}, []int{8, 10}},
		{"none", store.Filter{Thread: "x"}, nil},
	}
	for _, tt := range tests {
		got, err := s.List(t.Context(), tt.filter)
		if err != nil {
			t.Fatal(err)
		}
		var ids, want []string
		for _, x := range got {
			ids = append(ids, x.ManifestID)
		}
		for _, n := range tt.want {
			want = append(want, sampleID(n))
		}
		if diff := cmp.Diff(ids, want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", tt.name, diff)
		}
		full, err := s.Manifests(t.Context(), tt.filter)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range full {
			if diff := cmp.Diff(got[i], m.Index()); diff != "" {
				t.Errorf("%s: the index is not the manifest's (-index +manifest):\n%s", tt.name, diff)
			}
		}
	}
}

func (x suite) testGet(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	fillThread(t, s, "w", "t", 0, 40)
	got, err := s.Get(t.Context(), strings.ToLower(sampleID(39)))
	if err != nil || got.ManifestID != sampleID(39) {
		t.Errorf("in lower case: %v", err)
	}
	got, err = s.Get(t.Context(), sampleID(39)[:25])
	wantCode(t, err, store.CodeAmbiguous)
	if err != nil && !strings.Contains(err.Error(), sampleID(32)) {
		t.Errorf("%v does not say which (%v)", err, got)
	}
	found, err := s.Find(t.Context(), sampleID(39), store.Filter{})
	if want := (store.Found{ManifestID: sampleID(39), WorkspaceID: "w", ThreadID: "t", Bytes: found.Bytes}); err != nil || found != want || found.Bytes == 0 {
		t.Errorf("found %+v, %v; want %+v", found, err, want)
	}
	m := sample("w", "t", 50)
	m.ManifestID = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
	if err := s.Append(t.Context(), m, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), "7z"); err != nil || got.ManifestID != m.ManifestID {
		t.Errorf("short: %v", err)
	}
	for _, id := range []string{"", "7ZU", "%", "_", sampleID(39) + "0", "01JZ1", "'"} {
		_, err := s.Get(t.Context(), id)
		wantCode(t, err, store.CodeNotFound)
	}
}

func (x suite) testLatest(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	_, err := s.Latest(t.Context(), store.Filter{})
	wantCode(t, err, store.CodeNotFound)
	_, err = s.Find(t.Context(), "", store.Filter{})
	wantCode(t, err, store.CodeNotFound)
	fillThread(t, s, "w", "t", 5, 6)
	fillThread(t, s, "w", "u", 2, 3) // made earlier, appended later
	for thread, want := range map[string]string{"": "u", "t": "t"} {
		if x, err := s.Find(t.Context(), "", store.Filter{Thread: thread}); err != nil || x.ThreadID != want || x.Bytes == 0 {
			t.Errorf("the newest of %q: %+v, %v", thread, x, err)
		}
	}
	if m, err := s.Latest(t.Context(), store.Filter{}); err != nil || m.ThreadID != "u" {
		t.Errorf("latest: %v", err)
	}
	events := sample("w", "t", 7)
	events.Kind, events.Sections = manifest.KindEvents, nil
	keep(t, s, events)
	if x, err := s.Find(t.Context(), "", store.Filter{Thread: "t"}); err != nil || x.ManifestID != sampleID(5) {
		t.Errorf("the newest prompt behind a record of events: %+v, %v", x, err)
	}
	if m, err := s.Latest(t.Context(), store.Filter{Thread: "t"}); err != nil || m.ThreadID != "t" {
		t.Errorf("latest of a thread: %v", err)
	}
}

func (x suite) testExport(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	fillThread(t, s, "w", "t", 0, 6)
	fillThread(t, s, "w", "u", 6, 8)
	var out strings.Builder
	if n, err := s.Export(t.Context(), &out, store.Filter{Thread: "t"}); err != nil || n != 6 {
		t.Fatalf("exported %d, %v", n, err)
	}
	lines := slices.Collect(strings.Lines(out.String()))
	for i, line := range lines {
		m, err := manifest.Parse([]byte(line))
		if err != nil || m.ManifestID != sampleID(i) || !strings.HasSuffix(line, "}\n") {
			t.Errorf("line %d: %v", i, err)
			continue
		}
		if sum, err := manifest.RecordHash(&m, nil); err != nil || sum != m.Hash {
			t.Errorf("line %d has not the bytes that were hashed: %v", i, err)
		}
	}
	if len(lines) != 6 {
		t.Errorf("%d lines", len(lines))
	}
	n := 0
	for _, err := range s.Records(t.Context(), store.Filter{}) {
		if n++; err != nil || n == 3 {
			break
		}
	}
	fillThread(t, s, "w", "t", 8, 9) // nothing is held by a stream that was left
	if _, err := s.Export(t.Context(), failing{}, store.Filter{}); err == nil {
		t.Error("a writer that fails was not noticed")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no") }

package store_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/digest/digesttest"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// What stands beside the manifests: texts of prompts, and what providers
// reported.

// keep appends a manifest with texts.
func keep(t *testing.T, s *store.Store, m *manifest.Manifest, texts ...manifest.Text) {
	t.Helper()
	for i, text := range texts {
		if i < len(m.Sections) && !slices.ContainsFunc(m.Sections, func(s manifest.Section) bool { return s.Hash == text.Hash }) {
			m.Sections[i].Hash = text.Hash
		}
	}
	if err := s.Append(t.Context(), m, texts); err != nil {
		t.Fatal(err)
	}
}

// sampleTexts are the texts of a sample's sections.
func sampleTexts() []manifest.Text {
	texts := make([]manifest.Text, 10)
	for i := range texts {
		texts[i] = manifest.Text{Hash: manifest.Hash(sectionText(i), nil), Text: sectionText(i)}
	}
	return texts
}

func (x suite) testTexts(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{FingerprintKey: []byte("k")})
	texts := []manifest.Text{
		{Hash: manifest.Hash("one ✓\r\n", nil), Text: "one ✓\r\n"},
		{Hash: manifest.Hash("two", []byte("k")), Text: "two"},
		{Hash: manifest.Hash("", nil), Text: ""},
		{Hash: manifest.Hash("one ✓\r\n", nil), Text: "one ✓\r\n"}, // again in one prompt
	}
	keep(t, s, sample("w", "t", 0), texts...)
	keep(t, s, sample("w", "t", 1), texts...) // and in the next one
	for _, want := range texts {
		if got, err := s.Text(t.Context(), want.Hash); err != nil || got != want.Text {
			t.Errorf("text %q, %v; want %q", got, err, want.Text)
		}
	}
	_, err := s.Text(t.Context(), "sha256:none")
	wantCode(t, err, store.CodeNotFound)
	keep(t, s, sample("w", "t", 2), manifest.Text{Hash: texts[1].Hash, Text: "another text"})
	_, err = s.Text(t.Context(), texts[1].Hash)
	wantCode(t, err, store.CodeAmbiguous)
}

// testTextsOrNothing: manifest and texts are one transaction.
func (x suite) testTextsOrNothing(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{})
	good := manifest.Text{Hash: manifest.Hash("good", nil), Text: "good"}
	for _, bad := range []manifest.Text{
		{Hash: manifest.Hash("a\x00", nil), Text: "a\x00"},
		{Hash: manifest.Hash("\xff", nil), Text: "\xff"},
		{Text: "no address"},
		{Hash: "hmac-\x00", Text: "a"},
		{Hash: good.Hash, Text: "another text"},
		{Hash: manifest.Fingerprint("a", nil), Text: "a"},
	} {
		wantCode(t, s.Append(t.Context(), sample("w", "t", 0), []manifest.Text{good, bad}), store.CodeInvalid)
	}
	keep(t, s, sample("w", "t", 0))
	if err := s.Append(t.Context(), sample("w", "t", 0), []manifest.Text{good}); err == nil {
		t.Error("one id was kept twice")
	}
	_, err := s.Text(t.Context(), good.Hash)
	wantCode(t, err, store.CodeNotFound)
	storetest.Exec(t, dsn, "ALTER TABLE texts RENAME TO no_texts")
	if err := s.Append(t.Context(), sample("w", "t", 1), []manifest.Text{good}); err == nil {
		t.Error("a text was kept nowhere")
	}
	list, err := s.List(t.Context(), store.Filter{})
	if err != nil || len(list) != 1 {
		t.Errorf("%d manifests are kept, %v; want the one", len(list), err)
	}
}

func (x suite) testAlteredText(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{})
	keep(t, s, sample("w", "t", 0), sampleTexts()...)
	fillThread(t, s, "w", "t", 1, 3)
	wantGood(t, s, 3)
	storetest.Exec(t, dsn, "UPDATE texts SET text = 'something else' WHERE text = '"+sectionText(4)+"'")
	got := verify(t, s, manifest.VerifyOptions{})
	if want := (manifest.Bad{ManifestID: sampleID(0), Seq: 0, Reason: manifest.BadFingerprint}); got.FirstBad == nil || *got.FirstBad != want {
		t.Errorf("verdict %+v, want %+v", got, want)
	}
}

// testCollidingTexts: two texts of one fingerprint are kept and found apart, and one in the place of the other is noticed,
// whatever else in the database is changed with it.
func (x suite) testCollidingTexts(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{})
	text := "## Section 0\n\n" + strings.Repeat("Ask before you delete a file. ", 4)
	texts := []string{text, digesttest.Collide(text, 16)}
	for n, text := range texts {
		m := sample("w", "t", n)
		m.Sections = m.Sections[:1]
		m.Sections[0].Fingerprint, m.Sections[0].Hash = manifest.Fingerprint(text, nil), manifest.Hash(text, nil)
		keep(t, s, m, manifest.Text{Hash: m.Sections[0].Hash, Text: text})
	}
	for n, want := range texts {
		if got, err := s.Text(t.Context(), manifest.Hash(want, nil)); err != nil || got != want {
			t.Errorf("text %q, %v; want %q", got, err, want)
		}
		if got := found(t, s, store.Query{Text: want}); !slices.Equal(got, []int{n}) {
			t.Errorf("text %d is found in %v", n, got)
		}
	}
	wantGood(t, s, 2)
	storetest.Exec(t, dsn, fmt.Sprintf("UPDATE texts SET text = '%s', sha256 = '%s' WHERE hash = '%s'",
		texts[1], manifest.Hash(texts[1], nil), manifest.Hash(texts[0], nil)))
	got := verify(t, s, manifest.VerifyOptions{})
	if want := (manifest.Bad{ManifestID: sampleID(0), Seq: 0, Reason: manifest.BadFingerprint}); got.FirstBad == nil || *got.FirstBad != want {
		t.Errorf("verdict %+v, want %+v", got, want)
	}
}

// usage is a report with numbers that tell the columns apart.
func usage(n, rounds int, at time.Time) manifest.Usage {
	return manifest.Usage{
		ManifestID: sampleID(n), Rounds: rounds, ReportedAt: at,
		Usage: phases.Usage{InputTokens: 10 + rounds, OutputTokens: 20 + rounds, CacheReadTokens: 30 + rounds, CacheWriteTokens: 40 + rounds},
	}
}

func report(t *testing.T, s *store.Store, u manifest.Usage) {
	t.Helper()
	if err := s.Report(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

func wantUsage(t *testing.T, s *store.Store, n int, want ...manifest.Usage) {
	t.Helper()
	got, err := s.Usage(t.Context(), sampleID(n))
	if err != nil || got == nil {
		t.Fatalf("Usage: %v, %v", got, err)
	}
	if diff := cmp.Diff(got, append([]manifest.Usage{}, want...)); diff != "" {
		t.Errorf("reports of manifest %d (-got +want):\n%s", n, diff)
	}
}

func (x suite) testUsage(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	fillThread(t, s, "w", "t", 0, 2)
	wantUsage(t, s, 0)
	early, late := usage(0, 1, epoch().Add(time.Second)), usage(0, 3, epoch().Add(time.Minute+1))
	report(t, s, late)
	report(t, s, early) // it comes later
	report(t, s, late)  // it comes again, as after an answer that was lost
	wantUsage(t, s, 0, early, late)
	wantUsage(t, s, 1)
	wantGood(t, s, 2) // the record and its hash know nothing of it
	if m, err := s.Get(t.Context(), sampleID(0)); err != nil || m.Cache.Actual != nil {
		t.Errorf("the record was changed: %v", err)
	}
}

func (x suite) testUsageRefused(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	fillThread(t, s, "w", "t", 0, 1)
	wantCode(t, s.Report(t.Context(), usage(1, 1, epoch())), store.CodeNotFound)
	wantCode(t, s.Report(t.Context(), usage(0, 0, epoch())), store.CodeInvalid)
	wantCode(t, s.Report(t.Context(), usage(0, 1, time.Time{})), store.CodeInvalid)
	wantCode(t, s.Report(t.Context(), usage(0, 1, time.Date(2600, 1, 1, 0, 0, 0, 0, time.UTC))), store.CodeInvalid)
	u := usage(0, 1, epoch())
	u.ManifestID = strings.ToLower(sampleID(0))
	wantCode(t, s.Report(t.Context(), u), store.CodeInvalid)
	wantUsage(t, s, 0)
}

func (x suite) testPruneUsage(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	fillThread(t, s, "w", "t", 0, 4)
	for n := range 4 {
		report(t, s, usage(n, 1, epoch()))
		report(t, s, usage(n, 2, epoch().Add(time.Second)))
	}
	if _, err := s.Prune(t.Context(), store.Retention{Count: 1}, epoch()); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		wantUsage(t, s, n)
		wantCode(t, s.Report(t.Context(), usage(n, 1, epoch())), store.CodeNotFound)
	}
	wantUsage(t, s, 3, usage(3, 1, epoch()), usage(3, 2, epoch().Add(time.Second)))
}

// testPruneWhileAppending takes manifests and texts away while others append with
// the same texts: nobody fails, and no text is missing that a manifest names.
func (x suite) testPruneWhileAppending(t *testing.T) {
	const writers, each = 3, 20
	dsn := x.newDSN(t)
	var group sync.WaitGroup
	for w := range writers {
		s := open(t, dsn, store.Options{LockTimeout: time.Minute})
		group.Go(func() {
			for n := range each {
				if err := s.Append(t.Context(), sample("w", strconv.Itoa(w), n*writers+w), sampleTexts()); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	s := open(t, dsn, store.Options{LockTimeout: time.Minute})
	for range each {
		if _, err := s.Prune(t.Context(), store.Retention{Count: 2}, epoch()); err != nil {
			t.Errorf("pruning: %v", err)
		}
	}
	group.Wait()
	for _, text := range sampleTexts() {
		if got, err := s.Text(t.Context(), text.Hash); err != nil || got != text.Text {
			t.Errorf("text %q, %v", got, err)
		}
	}
	if got := verify(t, s, manifest.VerifyOptions{}); !got.OK {
		t.Errorf("verdict %+v", got)
	}
}

// testClock appends by a clock that goes backwards: the chain is in the order of
// appending, whatever the times say.
func (x suite) testClock(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	for n := range 6 {
		m := sample("w", "t", n)
		m.CreatedAt = epoch().Add(-time.Duration(n) * time.Hour)
		keep(t, s, m, manifest.Text{Hash: manifest.Hash("text", nil), Text: "text"})
	}
	wantGood(t, s, 6)
	list, err := s.List(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range list {
		got = append(got, fmt.Sprint(x.Seq, x.ManifestID))
		if !x.CreatedAt.Equal(epoch()) {
			t.Errorf("record %d is from %s, before the one in front of it", x.Seq, x.CreatedAt)
		}
	}
	want := []string{"0" + sampleID(0), "1" + sampleID(1), "2" + sampleID(2), "3" + sampleID(3), "4" + sampleID(4), "5" + sampleID(5)}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("order (-got +want):\n%s", diff)
	}
	// By age nothing goes before what was appended earlier, and is newer.
	pruned, err := s.Prune(t.Context(), store.Retention{Age: time.Hour}, epoch())
	if err != nil || pruned.Manifests != 0 {
		t.Errorf("pruned %+v, %v", pruned, err)
	}
	// A text stays as long as a manifest that names it, though others are newer.
	keep(t, s, sample("w", "u", 9))
	if pruned, err := s.Prune(t.Context(), store.Retention{Count: 1}, epoch()); err != nil || pruned != (store.Pruned{Manifests: 5}) {
		t.Errorf("pruned %+v, %v", pruned, err)
	}
	wantGood(t, s, 2)
}

// testIdleThread: a thread that nobody uses any more keeps its own texts, and not those of others.
func (x suite) testIdleThread(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	text := func(s string) manifest.Text { return manifest.Text{Hash: manifest.Hash(s, nil), Text: s} }
	keep(t, s, sample("w", "idle", 0), text("of both"), text("of the idle thread"))
	keep(t, s, sample("w", "busy", 1), text("of both"), text("old"))
	keep(t, s, sample("w", "busy", 2), text("new"))
	done, err := s.Prune(t.Context(), store.Retention{Count: 1}, epoch())
	if err != nil || done.Manifests != 1 || done.Texts != 1 {
		t.Errorf("pruned %+v, %v, want one manifest and its text", done, err)
	}
	for name, kept := range map[string]bool{"of both": true, "of the idle thread": true, "old": false, "new": true} {
		if _, err := s.Text(t.Context(), text(name).Hash); (err == nil) != kept {
			t.Errorf("the text %q: %v, want kept = %v", name, err, kept)
		}
	}
}

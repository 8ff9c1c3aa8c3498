package manifest

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestUsageCheck(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		change func(u *Usage)
		want   string // part of the error; empty: none
	}{
		{"one round", func(*Usage) {}, ""},
		{"nothing was used", func(u *Usage) { u.Usage = phases.Usage{} }, ""},
		{"no manifest", func(u *Usage) { u.ManifestID = "" }, "manifest_id"},
		{"no round", func(u *Usage) { u.Rounds = 0 }, "rounds"},
		{"no time", func(u *Usage) { u.ReportedAt = time.Time{} }, "reported_at"},
		{"input", func(u *Usage) { u.InputTokens = -1 }, "below 0"},
		{"read", func(u *Usage) { u.CacheReadTokens = -1 }, "below 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			u := Usage{ManifestID: sampleID, Rounds: 1, ReportedAt: time.Unix(1, 0), Usage: phases.Usage{InputTokens: 5}}
			tt.change(&u)
			if err := u.Check(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check = %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestActualIsNotSealed: a record that is shown with what the provider reported
// still verifies, and what is stored has null there.
func TestActualIsNotSealed(t *testing.T) {
	t.Parallel()

	key := []byte("key")
	log := sampleLog(t, 3, key)
	for i := range log.records {
		log.edit(t, i, false, func(m *Manifest) { m.Cache.Actual = new(1000 * i) })
	}
	if verdict, err := log.verify(VerifyOptions{Key: key}); err != nil || !verdict.OK || verdict.Checked != 3 {
		t.Errorf("shown records: %+v, %v", verdict, err)
	}
	for i := range log.records { // the member beside it is sealed
		log.edit(t, i, false, func(m *Manifest) { m.Cache.Predicted = new(1) })
	}
	if verdict, _ := log.verify(VerifyOptions{Key: key}); verdict.OK || len(verdict.Problems) != 3 {
		t.Errorf("another prediction: %+v", verdict)
	}
}

func TestSealRecordStoresNoActual(t *testing.T) {
	t.Parallel()

	m := sampleManifest(2, 1, 1)
	m.Cache.Actual = new(7)
	r, err := SealRecord(nil, &m, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if *m.Cache.Actual != 7 || !strings.Contains(string(r.Data), `"actual":null`) {
		t.Errorf("actual is %d, and the record:\n%s", *m.Cache.Actual, r.Data)
	}
	m.Cache.Actual = nil
	if diff := cmp.Diff(string(r.Data), mustCanonical(t, &m)); diff != "" {
		t.Errorf("the record is not the manifest (-got +want):\n%s", diff)
	}
}

// TestClone changes every leaf of a clone and wants the original unmoved, and
// the other way round.
func TestClone(t *testing.T) {
	t.Parallel()

	m := sampleManifest(5, 3, 2)
	m.Cache.Plan.Breakpoints = []Breakpoint{{After: AfterStable, SectionID: "section_0"}}
	m.Cache.Predicted, m.Cache.Actual = new(1), new(2)
	m.Runs[0].Cut = []phases.Cut{{ContributionID: "c"}}
	want := mustCanonical(t, &m)
	c := m.Clone()
	if got := mustCanonical(t, &c); got != want {
		t.Fatalf("the clone differs:\n%s", cmp.Diff(got, want))
	}
	eachLeaf("manifest", reflect.ValueOf(&c).Elem(), func(path string) {
		if got := mustCanonical(t, &m); got != want {
			t.Errorf("%s is shared", path)
		}
	})
	empty := Manifest{}
	if diff := cmp.Diff(empty.Clone(), empty); diff != "" {
		t.Errorf("clone of nothing (-got +want):\n%s", diff)
	}
}

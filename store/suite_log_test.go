package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

func (x suite) testVerify(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	if got := verify(t, s, manifest.VerifyOptions{}); !got.OK || got.Anchored || got.Checked != 0 {
		t.Errorf("empty: %+v", got)
	}
	fillThread(t, s, "w", "t", 0, 5)
	last, err := s.Latest(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if got := verify(t, s, manifest.VerifyOptions{Head: last.Hash, Texts: []string{"the prompt"}}); !got.OK || !got.Anchored || got.Checked != 5 {
		t.Errorf("with head and text: %+v", got)
	}
	fillThread(t, s, "w", "u", 5, 7)
	if got := verify(t, s, manifest.VerifyOptions{Head: last.Hash}); !got.OK || got.Anchored {
		t.Errorf("the head proves one of two threads: %+v", got)
	}
	got, err := s.Verify(t.Context(), store.Filter{Thread: "t"}, manifest.VerifyOptions{Head: last.Hash, ChainOnly: true})
	if err != nil || !got.OK || !got.Anchored || got.Checked != 5 {
		t.Errorf("one thread: %+v, %v", got, err)
	}
	if got := verify(t, s, manifest.VerifyOptions{Texts: []string{"another prompt"}}); got.OK || got.FirstBad.Reason != manifest.BadFingerprint {
		t.Errorf("another text: %+v", got)
	}
}

// testVerifyOrder: records are inspected on all processors at once, more than can be on their way, and added in their order.
func (x suite) testVerifyOrder(t *testing.T) {
	const threads, each = 3, 150
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{})
	var want []string
	for i := range threads {
		thread := string(rune('a' + i))
		fillThread(t, s, "w", thread, i*each, (i+1)*each)
		for n := range each {
			want = append(want, sampleID(i*each+n))
		}
	}
	var seen []string
	got := verify(t, s, manifest.VerifyOptions{Seen: func(x manifest.Index) { seen = append(seen, x.ManifestID) }})
	if !got.OK || got.Checked != threads*each {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(seen, want); diff != "" {
		t.Errorf("seen (-got +want):\n%s", diff)
	}
	storetest.Exec(t, dsn, "UPDATE manifests SET turn_id = 'x' WHERE seq IN (0, 77, 149)")
	var bad []string
	for _, p := range verify(t, s, manifest.VerifyOptions{}).Problems {
		bad = append(bad, p.ManifestID)
	}
	var altered []string
	for i := range threads {
		altered = append(altered, sampleID(i*each), sampleID(i*each+77), sampleID(i*each+149))
	}
	if diff := cmp.Diff(bad, altered); diff != "" {
		t.Errorf("bad (-got +want):\n%s", diff)
	}
}

// testVerifyStopped: nobody works on when the context ends in the middle.
func (x suite) testVerifyStopped(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	fillThread(t, s, "w", "t", 0, 200)
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	got, err := s.Verify(ctx, store.Filter{}, manifest.VerifyOptions{Seen: func(manifest.Index) {
		if seen++; seen == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || got.Checked != 0 {
		t.Errorf("after %d records: %+v, %v", seen, got, err)
	}
}

func (x suite) testKey(t *testing.T) {
	dsn := x.newDSN(t)
	plain := open(t, dsn, store.Options{})
	fillThread(t, plain, "w", "t", 0, 2)
	keyed := open(t, dsn, store.Options{Key: []byte("operator")})
	fillThread(t, keyed, "w", "t", 2, 4)
	if got := verify(t, keyed, manifest.VerifyOptions{}); !got.OK || !got.Anchored || got.Checked != 4 {
		t.Errorf("with the key: %+v", got)
	}
	wantCode(t, plain.Append(t.Context(), sample("w", "t", 4), nil), store.CodeKey)
	_, err := plain.Prune(t.Context(), store.Retention{Count: 1}, epoch())
	wantCode(t, err, store.CodeKey)
	if _, err := plain.Verify(t.Context(), store.Filter{}, manifest.VerifyOptions{}); !errors.Is(err, manifest.ErrKeyNeeded) {
		t.Errorf("without the key: %v", err)
	}
	if got := verify(t, plain, manifest.VerifyOptions{Key: []byte("guess")}); got.OK || got.FirstBad.Seq != 2 {
		t.Errorf("with another key: %+v", got)
	}
	if _, err := keyed.Prune(t.Context(), store.Retention{Count: 1}, epoch()); err != nil {
		t.Fatal(err)
	}
	if got := verify(t, keyed, manifest.VerifyOptions{}); !got.OK || !got.Anchored || got.Checked != 1 {
		t.Errorf("after retention: %+v", got)
	}
	storetest.Exec(t, dsn, "UPDATE chains SET first_prev = last_hash")
	if got := verify(t, keyed, manifest.VerifyOptions{}); got.OK {
		t.Error("a sign-off that was changed was taken")
	}
}

func (x suite) testPruneCount(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	fillThread(t, s, "w", "t", 0, 300)
	fillThread(t, s, "w", "u", 300, 302)
	got, err := s.Prune(t.Context(), store.Retention{Count: 3}, epoch())
	if err != nil || got.Manifests != 297 {
		t.Errorf("pruned %+v, %v", got, err)
	}
	wantGood(t, s, 5)
	fillThread(t, s, "w", "t", 400, 401)
	list, err := s.List(t.Context(), store.Filter{Thread: "t"})
	if err != nil || len(list) != 4 || list[0].Seq != 297 || list[3].Seq != 300 {
		t.Errorf("numbers do not go on: %+v, %v", list, err)
	}
	wantGood(t, s, 6)
	if got, err := s.Prune(t.Context(), store.Retention{}, epoch()); err != nil || got.Manifests != 0 {
		t.Errorf("no rule took %+v, %v", got, err)
	}
	_, err = s.Prune(t.Context(), store.Retention{Count: -1}, epoch())
	wantCode(t, err, store.CodeInvalid)
}

func (x suite) testPruneAge(t *testing.T) {
	s := open(t, x.newDSN(t), store.Options{})
	texts := []manifest.Text{{Hash: manifest.Hash("old", nil), Text: "old"}, {Hash: manifest.Hash("used", nil), Text: "used"}}
	keep(t, s, sample("w", "t", 0), texts...)
	fillThread(t, s, "w", "t", 1, 5)
	keep(t, s, sample("w", "t", 100), texts[1])
	fillThread(t, s, "w", "t", 101, 102)
	fillThread(t, s, "w", "t", 6, 7) // an old clock: it stays as long as what is before it
	fillThread(t, s, "w", "u", 7, 10)
	got, err := s.Prune(t.Context(), store.Retention{Age: time.Minute}, epoch().Add(110*time.Second))
	if diff := cmp.Diff(got, store.Pruned{Manifests: 8, Texts: 1}); diff != "" || err != nil {
		t.Errorf("%v (-got +want):\n%s", err, diff)
	}
	wantGood(t, s, 3)
	_, err = s.Text(t.Context(), texts[0].Hash)
	wantCode(t, err, store.CodeNotFound)
	if _, err := s.Text(t.Context(), texts[1].Hash); err != nil {
		t.Error(err)
	}
	fillThread(t, s, "w", "u", 200, 201) // a thread that was emptied goes on
	m, err := s.Latest(t.Context(), store.Filter{Thread: "u"})
	if err != nil || m.Seq != 3 || m.Prev == "" {
		t.Errorf("the emptied thread begins anew: %v", err)
	}
	wantGood(t, s, 4)
}

// testOpenedAtOnce lets several programs make the schema.
func (x suite) testOpenedAtOnce(t *testing.T) {
	dsn := x.newEmpty(t)
	var group sync.WaitGroup
	for n := range 6 {
		group.Go(func() {
			s, err := store.Open(t.Context(), dsn, store.Options{MaxConns: 2})
			if err != nil {
				t.Errorf("Open: %v", err)
				return
			}
			if err := s.Append(t.Context(), sample("w", "t", n), nil); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	wantGood(t, open(t, dsn, store.Options{}), 6)
}

func (x suite) testNewerSchema(t *testing.T) {
	dsn := x.newDSN(t)
	fillThread(t, open(t, dsn, store.Options{}), "w", "t", 0, 1)
	storetest.Exec(t, dsn, "UPDATE grapnel_migrations SET version_id = 9999 WHERE version_id = (SELECT max(version_id) FROM grapnel_migrations)")
	for _, o := range []store.Options{{}, {ReadOnly: true}} {
		_, err := store.Open(t.Context(), dsn, o)
		wantCode(t, err, store.CodeSchema)
		if err != nil && !strings.Contains(err.Error(), "newer") {
			t.Errorf("%v does not say what to do", err)
		}
	}
}

// testNewerManifest has a manifest that a newer Grapnel appended, for which the
// database did not have to change.
func (x suite) testNewerManifest(t *testing.T) {
	dsn := x.newDSN(t)
	s := open(t, dsn, store.Options{})
	fillThread(t, s, "w", "t", 0, 2)
	storetest.EditRecord(t, dsn, "seq = 1", `"schema_version":1`, `"new":{},"schema_version":2`)
	_, errGet := s.Get(t.Context(), sampleID(1))
	_, errLatest := s.Latest(t.Context(), store.Filter{})
	_, errLast := s.Last(t.Context(), "w", "t")
	for _, err := range []error{errGet, errLatest, errLast} {
		wantCode(t, err, store.CodeSchema)
		if err != nil && (!strings.Contains(err.Error(), sampleID(1)) || !strings.Contains(err.Error(), "newer")) {
			t.Errorf("%v does not say what to do, and with which", err)
		}
	}
	if _, err := s.Get(t.Context(), sampleID(0)); err != nil {
		t.Errorf("the others can be read: %v", err)
	}
	storetest.Exec(t, dsn, "UPDATE manifests SET record = 'nothing' WHERE seq = 1")
	_, err := s.Get(t.Context(), sampleID(1))
	wantCode(t, err, store.CodeInvalid)
}

func (x suite) testReadOnly(t *testing.T) {
	dsn := x.newEmpty(t)
	_, err := store.Open(t.Context(), dsn, store.Options{ReadOnly: true})
	if !store.HasCode(err, store.CodeSchema) && !store.HasCode(err, store.CodeNotFound) {
		t.Errorf("opened a database without a schema: %v", err)
	}
	fillThread(t, open(t, dsn, store.Options{}), "w", "t", 0, 2)
	s := open(t, dsn, store.Options{ReadOnly: true})
	wantGood(t, s, 2)
	if m, err := s.Latest(t.Context(), store.Filter{}); err != nil || m.Seq != 1 {
		t.Errorf("reading: %v", err)
	}
	wantCode(t, s.Append(t.Context(), sample("w", "t", 2), nil), store.CodePermission)
	_, err = s.Prune(t.Context(), store.Retention{Count: 1}, epoch())
	wantCode(t, err, store.CodePermission)
	wantGood(t, s, 2)
}

func (x suite) testClosed(t *testing.T) {
	s, err := store.Open(t.Context(), x.newDSN(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := s.Append(t.Context(), sample("w", "t", 0), nil); err == nil {
		t.Error("appended to a closed store")
	}
	if _, err := s.List(t.Context(), store.Filter{}); err == nil {
		t.Error("listed a closed store")
	}
	if q, err := s.Queue(jobs.QueueOptions{}); err == nil || q != nil {
		t.Error("opened the queue of a closed store")
	}
}

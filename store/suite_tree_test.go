package store_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/translog"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

func newLog(t *testing.T) *translog.Log {
	t.Helper()
	private, _, err := translog.NewKey("example.com/prompts")
	if err != nil {
		t.Fatal(err)
	}
	l, err := translog.NewLog(private)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func checkpoint(t *testing.T, s *store.Store, l *translog.Log) translog.Checkpoint {
	t.Helper()
	c, err := s.Checkpoint(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rootOf computes the hash over records from the definition in RFC 6962, section 2.1.
func rootOf(hashes []string) tlog.Hash {
	if len(hashes) == 1 {
		return tlog.RecordHash([]byte(hashes[0]))
	}
	k := 1
	for k*2 < len(hashes) {
		k *= 2
	}
	return tlog.NodeHash(rootOf(hashes[:k]), rootOf(hashes[k:]))
}

// testTree: the tree is that of the records in their order, across settlings and blocks.
func (x suite) testTree(t *testing.T) {
	s, l := open(t, x.newDSN(t), store.Options{}), newLog(t)
	if c := checkpoint(t, s, l); c.Leaves != 0 {
		t.Errorf("an empty log has %d leaves", c.Leaves)
	}
	for n, step := range []int{1, 2, 126, 3, 171} {
		before := checkpoint(t, s, l)
		from := int(before.Leaves)
		fillThread(t, s, "w", "t", from, from+step)
		c := checkpoint(t, s, l)
		list, err := s.List(t.Context(), store.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		hashes := make([]string, len(list))
		for i := range list {
			hashes[i] = list[i].Hash
		}
		if int(c.Leaves) != from+step || c.Root != rootOf(hashes) {
			t.Errorf("step %d: %d leaves with the root %s, want %d with %s", n, c.Leaves, c.Root, from+step, rootOf(hashes))
		}
		g, err := s.Grow(t.Context(), before.Leaves)
		if err != nil || g.To.Leaves != c.Leaves || g.Check(before.Root) != nil || n > 0 && g.Check(c.Root) == nil {
			t.Errorf("step %d: growth %+v, %v, %v", n, g, err, g.Check(before.Root))
		}
		for _, leaf := range []int{0, len(list) / 2, len(list) - 1} {
			proveOne(t, s, l, list[leaf], leaf)
		}
		got, err := s.VerifySince(t.Context(), store.Filter{}, manifest.VerifyOptions{}, store.Since{Checkpoint: &before})
		if err != nil || !got.OK || got.Anchored {
			t.Errorf("step %d: verified with the checkpoint before: %+v, %v", n, got, err)
		}
		got, err = s.VerifySince(t.Context(), store.Filter{}, manifest.VerifyOptions{}, store.Since{Checkpoint: &c})
		if err != nil || !got.OK || !got.Anchored {
			t.Errorf("step %d: verified with the checkpoint of all: %+v, %v", n, got, err)
		}
		got, err = s.VerifySince(t.Context(), store.Filter{}, manifest.VerifyOptions{}, store.Since{Checkpoint: &before, OnlyNewer: true})
		if err != nil || !got.OK || got.Checked != step {
			t.Errorf("step %d: verified what is newer: %+v, %v, want %d records", n, got, err, step)
		}
	}
}

func proveOne(t *testing.T, s *store.Store, l *translog.Log, x manifest.Index, leaf int) {
	t.Helper()
	open := func(n string) (translog.Checkpoint, error) { return l.Open(n) }
	file, err := s.Prove(t.Context(), x.ManifestID, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, at, err := translog.CheckProof(file, x.Hash, open); err != nil || at != int64(leaf) {
		t.Errorf("the proof of leaf %d: leaf %d, %v", leaf, at, err)
	}
	if _, _, err := translog.CheckProof(file, strings.Replace(x.Hash, "sha256:", "sha256:0", 1), open); err == nil {
		t.Error("the proof proves another record too")
	}
}

// testOneTree: stores that share a database extend one tree, as they settle what they append.
func (x suite) testOneTree(t *testing.T) {
	const each = 150
	dsn, l := x.newDSN(t), newLog(t)
	var all sync.WaitGroup
	for i, thread := range []string{"a", "b"} {
		s := open(t, dsn, store.Options{})
		all.Go(func() {
			for n := range each {
				if err := s.Append(t.Context(), sample("w", thread, i*each+n), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	raw := storetest.Raw(t, dsn)
	unsettled := func() (n int) {
		t.Helper()
		if err := raw.QueryRowContext(t.Context(), "SELECT count(*) FROM pending").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for began := time.Now(); unsettled() >= 2*each; {
		if time.Since(began) > time.Minute {
			t.Fatal("nothing was settled beside the appends")
		}
	}
	s := open(t, dsn, store.Options{})
	c := checkpoint(t, s, l)
	got, err := s.VerifySince(t.Context(), store.Filter{}, manifest.VerifyOptions{}, store.Since{Checkpoint: &c})
	if left := unsettled(); err != nil || !got.OK || !got.Anchored || c.Leaves != 2*each || left != 0 {
		t.Errorf("%d leaves, %d records unsettled, %+v, %v", c.Leaves, left, got, err)
	}
}

// testTreeForged: leaves of records that retention removed hide no other record.
func (x suite) testTreeForged(t *testing.T) {
	tests := []struct {
		name       string
		since      store.Since
		want       manifest.BadReason
		statements []string
	}{
		{"a thread is taken away, as if its records were removed from another", store.Since{}, manifest.BadTree, []string{
			"UPDATE leaves SET seq = 0, chain_id = (SELECT id FROM chains WHERE thread_id = 't') WHERE chain_id <> (SELECT id FROM chains WHERE thread_id = 't')",
			"DELETE FROM manifests WHERE thread_id = 'u'", "DELETE FROM chains WHERE thread_id = 'u'",
		}},
		{"a newer record is changed, and a leaf says that all are older", store.Since{OnlyNewer: true}, manifest.BadAltered, []string{
			"UPDATE leaves SET id = 1000000 WHERE leaf = 0", "UPDATE manifests SET turn_id = 'other' WHERE thread_id = 'v'",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			dsn, l := x.newDSN(t), newLog(t)
			s := open(t, dsn, store.Options{Key: []byte("key")})
			for n := range 3 {
				fillThread(t, s, "w", "t", n, n+1)
				fillThread(t, s, "w", "u", 100+n, 101+n)
			}
			if _, err := s.Prune(t.Context(), store.Retention{Count: 1}, time.Now()); err != nil {
				t.Fatal(err)
			}
			c := checkpoint(t, s, l)
			fillThread(t, s, "w", "v", 200, 201)
			tt.since.Checkpoint = &c
			if got, err := s.VerifySince(t.Context(), store.Filter{}, manifest.VerifyOptions{}, tt.since); err != nil || !got.OK {
				t.Fatalf("before: %+v, %v", got, err)
			}
			for _, statement := range tt.statements {
				storetest.Exec(t, dsn, statement)
			}
			got, err := s.VerifySince(t.Context(), store.Filter{}, manifest.VerifyOptions{}, tt.since)
			if err != nil || got.OK || got.FirstBad.Reason != tt.want {
				t.Errorf("%+v, %v, want the reason %s", got, err, tt.want)
			}
		})
	}
}

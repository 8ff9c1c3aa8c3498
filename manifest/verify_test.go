package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stored is a log of one thread as a store would hold it.
type stored struct {
	records []Record
	chain   *Chain
	kept    map[string]bool
}

// sampleLog is a good log of n records, and its parts to make bad ones of.
func sampleLog(tb testing.TB, n int, key []byte) stored {
	tb.Helper()
	s := stored{chain: &Chain{WorkspaceID: "w", ThreadID: "t"}}
	for i := range n {
		m := sampleManifest(3, 2, 1)
		m.ManifestID = fmt.Sprintf("01JZ%022d", i)
		s.add(tb, &m, key)
	}
	return s
}

// add appends a record and renews the sign-off.
func (s *stored) add(tb testing.TB, m *Manifest, key []byte) {
	tb.Helper()
	if err := Seal(m, s.chain.Link(), key); err != nil {
		tb.Fatal(err)
	}
	s.records = append(s.records, recordOf(tb, m))
	s.chain.Next, s.chain.Last = m.Seq+1, m.Hash
	s.sign(tb, key)
}

func (s *stored) sign(tb testing.TB, key []byte) {
	tb.Helper()
	if err := s.chain.Sign(key); err != nil {
		tb.Fatal(err)
	}
}

func recordOf(tb testing.TB, m *Manifest) Record {
	tb.Helper()
	return Record{Index: m.Index(), Data: []byte(mustCanonical(tb, m))}
}

// edit changes a record; rehash gives it a hash that fits, as somebody would who
// knows how.
func (s *stored) edit(tb testing.TB, i int, rehash bool, change func(m *Manifest)) {
	tb.Helper()
	m, err := Parse(s.records[i].Data)
	if err != nil {
		tb.Fatal(err)
	}
	change(&m)
	if rehash {
		if m.ContentHash, err = ContentHash(&m); err != nil {
			tb.Fatal(err)
		}
		if m.Hash, err = RecordHash(&m, nil); err != nil {
			tb.Fatal(err)
		}
	}
	s.records[i] = recordOf(tb, &m)
}

func (s *stored) verify(o VerifyOptions) (Verdict, error) {
	v := NewVerifier(o)
	v.Begin("w", "t", s.chain, s.kept)
	for _, r := range s.records {
		v.Add(v.Inspect(r))
	}
	return v.Verdict()
}

func title(m *Manifest) { m.Sections[1].Title = "Another" }

func badID(i int) string { return fmt.Sprintf("01JZ%022d", i) }

func TestVerifierNamesTheFirstBadRecord(t *testing.T) {
	t.Parallel()

	remove := func(i, j int) func(testing.TB, *stored) {
		return func(_ testing.TB, s *stored) { s.records = slices.Delete(s.records, i, j) }
	}
	tests := []struct {
		name string
		harm func(tb testing.TB, s *stored)
		want *Bad
	}{
		{"nothing", func(testing.TB, *stored) {}, nil},
		{"edited", func(tb testing.TB, s *stored) { s.edit(tb, 3, false, title) }, &Bad{badID(3), 3, BadAltered}},
		{"edited and hashed anew", func(tb testing.TB, s *stored) { s.edit(tb, 3, true, title) }, &Bad{badID(3), 3, BadAltered}},
		{"last one edited and hashed anew", func(tb testing.TB, s *stored) { s.edit(tb, 9, true, title) }, &Bad{badID(9), 9, BadAltered}},
		{"another prev, hashed anew", func(tb testing.TB, s *stored) {
			s.edit(tb, 4, true, func(m *Manifest) { m.Prev = m.ContentHash })
		}, &Bad{badID(4), 4, BadAltered}},
		{"first one has a prev", func(tb testing.TB, s *stored) {
			s.edit(tb, 0, true, func(m *Manifest) { m.Prev = m.ContentHash })
		}, &Bad{badID(0), 0, BadAltered}},
		{"hash only", func(tb testing.TB, s *stored) {
			s.edit(tb, 4, false, func(m *Manifest) { m.Hash = m.ContentHash })
		}, &Bad{badID(4), 4, BadAltered}},
		{"one removed", remove(4, 5), &Bad{"", 4, BadMissing}},
		{"first removed", remove(0, 1), &Bad{"", 0, BadMissing}},
		{"last removed", remove(9, 10), &Bad{"", 9, BadMissing}},
		{"all removed", remove(0, 10), &Bad{"", 0, BadMissing}},
		{"neighbours swapped", func(_ testing.TB, s *stored) { s.records[3], s.records[4] = s.records[4], s.records[3] }, &Bad{badID(4), 4, BadReordered}},
		{"one moved to the end", func(_ testing.TB, s *stored) {
			s.records = append(slices.Delete(slices.Clone(s.records), 2, 3), s.records[2])
		}, &Bad{badID(3), 3, BadReordered}},
		{"repeated", func(_ testing.TB, s *stored) { s.records = slices.Insert(s.records, 5, s.records[2]) }, &Bad{badID(2), 2, BadInserted}},
		{"foreign one in between", func(tb testing.TB, s *stored) { s.insert(tb, 4, 4) }, &Bad{"01JZ00000000000000000000ZZ", 4, BadInserted}},
		{"foreign one with a high number", func(tb testing.TB, s *stored) { s.insert(tb, 4, 40) }, &Bad{"01JZ00000000000000000000ZZ", 40, BadInserted}},
		{"foreign one at the end", func(tb testing.TB, s *stored) { s.insert(tb, 10, 10) }, &Bad{"01JZ00000000000000000000ZZ", 10, BadInserted}},
		{"of another thread", func(tb testing.TB, s *stored) {
			s.edit(tb, 4, true, func(m *Manifest) { m.ThreadID = "other" })
		}, &Bad{badID(4), 4, BadInserted}},
		{"garbage", func(_ testing.TB, s *stored) { s.records[6].Data = []byte("gone") }, &Bad{badID(6), 6, BadSchema}},
		{"a field twice", func(_ testing.TB, s *stored) {
			s.records[6].Data = bytes.Replace(s.records[6].Data, []byte(`"seq":`), []byte(`"seq":6,"seq":`), 1)
		}, &Bad{badID(6), 6, BadSchema}},
		{"index: turn", func(_ testing.TB, s *stored) { s.records[6].Index.TurnID = "other" }, &Bad{badID(6), 6, BadAltered}},
		{"index: seq", func(_ testing.TB, s *stored) { s.records[9].Index.Seq = 12 }, &Bad{badID(9), 9, BadReordered}},
		{"no sign-off", func(_ testing.TB, s *stored) { s.chain = nil }, &Bad{badID(9), 9, BadMissing}},
		{"sign-off changed", func(_ testing.TB, s *stored) { s.chain.Before = s.chain.Last }, &Bad{badID(0), 0, BadAltered}},
		{"sign-off set back", func(tb testing.TB, s *stored) {
			s.chain.Next, s.chain.Last = 9, s.records[8].Index.Hash
			s.sign(tb, nil)
		}, &Bad{badID(9), 9, BadInserted}},
		{"content hash", func(tb testing.TB, s *stored) {
			m, err := Parse(s.records[9].Data)
			if err != nil {
				tb.Fatal(err)
			}
			s.records = s.records[:9]
			s.chain.Next, s.chain.Last = 9, m.Prev
			m.ContentHash = m.Prev
			if m.Hash, err = RecordHash(&m, nil); err != nil {
				tb.Fatal(err)
			}
			s.records = append(s.records, recordOf(tb, &m))
			s.chain.Next, s.chain.Last = 10, m.Hash
			s.sign(tb, nil)
		}, &Bad{badID(9), 9, BadFingerprint}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			s := sampleLog(t, 10, nil)
			tt.harm(t, &s)
			got, err := s.verify(VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got.FirstBad, tt.want); diff != "" {
				t.Errorf("first bad (-got +want):\n%s\nall: %+v", diff, got.Problems)
			}
			if got.OK != (tt.want == nil) || got.Checked != len(s.records) || got.Anchored {
				t.Errorf("verdict %+v", got)
			}
			if tt.want == nil || tt.want.Reason == BadFingerprint {
				return
			}
			chain, err := s.verify(VerifyOptions{ChainOnly: true})
			if diff := cmp.Diff(chain.FirstBad, tt.want); diff != "" || err != nil {
				t.Errorf("chain only: %v, first bad (-got +want):\n%s", err, diff)
			}
		})
	}
}

// insert puts in a record that was made for the place, with a good hash.
func (s *stored) insert(tb testing.TB, at int, seq uint64) {
	tb.Helper()
	m := sampleManifest(1, 0, 0)
	m.ManifestID = "01JZ00000000000000000000ZZ"
	link := Link{Seq: seq - 1, Hash: s.records[min(int(seq)-1, len(s.records)-1)].Index.Hash}
	if err := Seal(&m, &link, nil); err != nil {
		tb.Fatal(err)
	}
	s.records = slices.Insert(s.records, at, recordOf(tb, &m))
}

// TestVerifierReportsOneFindingOnce: what is wrong at one place does not make
// everything behind it wrong.
func TestVerifierReportsOneFindingOnce(t *testing.T) {
	t.Parallel()

	s := sampleLog(t, 2000, nil)
	s.edit(t, 100, true, title)
	s.edit(t, 1500, false, title)
	s.records = slices.Delete(s.records, 1700, 1800)
	s.records = slices.Delete(s.records, 1200, 1201)
	got, err := s.verify(VerifyOptions{ChainOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var bad []Bad
	for _, p := range got.Problems {
		bad = append(bad, p.Bad)
	}
	want := []Bad{{badID(100), 100, BadAltered}, {"", 1200, BadMissing}, {badID(1500), 1500, BadAltered}, {"", 1700 + 0, BadMissing}}
	if diff := cmp.Diff(bad, want); diff != "" {
		t.Errorf("problems (-got +want):\n%s", diff)
	}
}

func TestVerifierAnchor(t *testing.T) {
	t.Parallel()

	key := []byte("operator")
	tests := []struct {
		name     string
		key      []byte // of the log
		harm     func(tb testing.TB, s *stored)
		opts     func(s *stored) VerifyOptions
		anchored bool
		want     *Bad
		err      error
	}{
		{name: "plain", opts: func(*stored) VerifyOptions { return VerifyOptions{} }},
		{name: "kept head is the end", opts: func(s *stored) VerifyOptions { return VerifyOptions{Head: s.chain.Last} }, anchored: true},
		{name: "kept head is older", opts: func(s *stored) VerifyOptions { return VerifyOptions{Head: s.records[2].Index.Hash} }},
		{
			name: "all hashed anew, seen by the kept head",
			harm: func(tb testing.TB, s *stored) {
				again := stored{chain: &Chain{WorkspaceID: "w", ThreadID: "t"}}
				for i, r := range s.records {
					m, err := Parse(r.Data)
					if err != nil {
						tb.Fatal(err)
					}
					if i == 1 {
						title(&m)
					}
					again.add(tb, &m, nil)
				}
				*s = again
			},
			opts: func(*stored) VerifyOptions { return VerifyOptions{Head: "sha256:kept"} },
			want: &Bad{"", 5, BadMissing},
		},
		{name: "key", key: key, opts: func(*stored) VerifyOptions { return VerifyOptions{Key: key} }, anchored: true},
		{name: "no key at hand", key: key, opts: func(*stored) VerifyOptions { return VerifyOptions{} }, err: ErrKeyNeeded},
		{name: "wrong key", key: key, opts: func(*stored) VerifyOptions { return VerifyOptions{Key: []byte("x")} }, want: &Bad{badID(0), 0, BadAltered}},
		{name: "key for a plain log", opts: func(*stored) VerifyOptions { return VerifyOptions{Key: key} }, want: &Bad{badID(4), 4, BadAltered}},
		{name: "key for a plain log that may be", opts: func(*stored) VerifyOptions { return VerifyOptions{Key: key, AllowUnkeyed: true} }},
		{
			name: "key since a while", harm: func(tb testing.TB, s *stored) {
				m := sampleManifest(1, 1, 1)
				s.add(tb, &m, key)
			},
			opts: func(*stored) VerifyOptions { return VerifyOptions{Key: key} }, anchored: true,
		},
		{
			name: "plain behind keyed", key: key, harm: func(tb testing.TB, s *stored) {
				m := sampleManifest(1, 1, 1)
				s.add(tb, &m, nil)
			},
			opts: func(*stored) VerifyOptions { return VerifyOptions{Key: key} }, want: &Bad{sampleID, 5, BadAltered},
		},
		{
			name: "forged sign-off of a keyed log", key: key, harm: func(tb testing.TB, s *stored) {
				s.records = s.records[:4]
				s.chain.Next, s.chain.Last = 4, s.records[3].Index.Hash
				s.sign(tb, nil)
			},
			opts: func(*stored) VerifyOptions { return VerifyOptions{Key: key} }, want: &Bad{badID(3), 3, BadAltered},
		},
		{
			name: "retention", harm: func(tb testing.TB, s *stored) {
				s.chain.First, s.chain.Before = 2, s.records[1].Index.Hash
				s.sign(tb, nil)
				s.records = s.records[2:]
			},
			opts: func(s *stored) VerifyOptions { return VerifyOptions{Head: s.chain.Last} }, anchored: true,
		},
		{
			name: "retention of everything", key: key, harm: func(tb testing.TB, s *stored) {
				s.chain.First, s.chain.Before = s.chain.Next, s.chain.Last
				s.sign(tb, key)
				s.records = nil
			},
			opts: func(*stored) VerifyOptions { return VerifyOptions{Key: key} }, anchored: true,
		},
		{
			name: "retention without a sign-off", harm: func(_ testing.TB, s *stored) { s.records = s.records[2:] },
			opts: func(*stored) VerifyOptions { return VerifyOptions{} }, want: &Bad{"", 0, BadMissing},
		},
		{
			name: "retention took more than it says", harm: func(tb testing.TB, s *stored) {
				s.chain.First, s.chain.Before = 2, s.records[0].Index.Hash
				s.sign(tb, nil)
				s.records = s.records[2:]
			},
			opts: func(*stored) VerifyOptions { return VerifyOptions{} }, want: &Bad{badID(2), 2, BadAltered},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			s := sampleLog(t, 5, tt.key)
			if tt.harm != nil {
				tt.harm(t, &s)
			}
			got, err := s.verify(tt.opts(&s))
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(got.FirstBad, tt.want); diff != "" || got.Anchored != tt.anchored {
				t.Errorf("anchored %v; first bad (-got +want):\n%s\n%+v", got.Anchored, diff, got.Problems)
			}
		})
	}
}

func TestVerifierSeveralThreads(t *testing.T) {
	t.Parallel()

	s := sampleLog(t, 3, nil)
	v := NewVerifier(VerifyOptions{Head: s.chain.Last})
	v.Begin("w", "empty", &Chain{}, nil)
	v.Begin("w", "t", s.chain, nil)
	for _, r := range s.records {
		v.Add(v.Inspect(r))
	}
	got, err := v.Verdict()
	if err != nil || got.Checked != 3 || got.Anchored {
		t.Errorf("verdict %+v, %v: the head proves one thread only", got, err)
	}
	if want := (Bad{Reason: BadAltered}); got.FirstBad == nil || *got.FirstBad != want || got.Problems[0].ThreadID != "empty" {
		t.Errorf("problems %+v, want the unsigned chain of the empty thread", got.Problems)
	}
	if got, err := NewVerifier(VerifyOptions{Key: []byte("k")}).Verdict(); err != nil || !got.OK || got.Anchored {
		t.Errorf("an empty log: %+v, %v", got, err)
	}
}

func TestVerifierTexts(t *testing.T) {
	t.Parallel()

	key := []byte("fingerprints")
	tests := []struct {
		name  string
		key   []byte
		opts  VerifyOptions
		want  BadReason
		error error
	}{
		{"text of the prompt", nil, VerifyOptions{Texts: []string{"full", "stable"}}, "", nil},
		{"text of a section", nil, VerifyOptions{Texts: []string{"2"}}, "", nil},
		{"another text", nil, VerifyOptions{Texts: []string{"full", "other"}}, BadFingerprint, nil},
		{"keyed", key, VerifyOptions{Texts: []string{"full"}, FingerprintKey: key}, "", nil},
		{"keyed, another text", key, VerifyOptions{Texts: []string{"other"}, FingerprintKey: key}, BadFingerprint, nil},
		{"keyed without the key: no finding", key, VerifyOptions{Texts: []string{"other"}}, "", ErrKeyNeeded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			s := stored{chain: &Chain{WorkspaceID: "w", ThreadID: "t"}}
			m := sampleManifest(3, 1, 1)
			setSums(&m, tt.key)
			s.add(t, &m, nil)
			got, err := s.verify(tt.opts)
			if !errors.Is(err, tt.error) {
				t.Errorf("error %v, want %v", err, tt.error)
			}
			if (got.FirstBad == nil) != (tt.want == "") || got.FirstBad != nil && got.FirstBad.Reason != tt.want {
				t.Errorf("problems %+v, want %q", got.Problems, tt.want)
			}
		})
	}
}

// TestVerifierOfKeptTexts: kept texts are as they were, and those that are gone were erased.
func TestVerifierOfKeptTexts(t *testing.T) {
	t.Parallel()

	all := map[string]bool{}
	for i := range 3 {
		all[Hash(strconv.Itoa(i), nil)] = true
	}
	differs, gone := maps.Clone(all), maps.Clone(all)
	differs[Hash("1", nil)] = false
	delete(gone, Hash("1", nil))
	early, late := time.Unix(0, 0).UTC(), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		name    string
		kept    map[string]bool
		erasure *Erasure
		want    BadReason
	}{
		{"all there", all, nil, ""},
		{"not checked", nil, nil, ""},
		{"another text", differs, nil, BadFingerprint},
		{"gone", gone, nil, BadText},
		{"erased", gone, &Erasure{By: "dpo"}, ""},
		{"erased for its actor", gone, &Erasure{Actor: "ann"}, ""},
		{"erased for somebody else", gone, &Erasure{Actor: "bob"}, BadText},
		{"erased with what is older", gone, &Erasure{Before: late}, ""},
		{"erased what is older than it", gone, &Erasure{Before: early}, BadText},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			s := stored{chain: &Chain{WorkspaceID: "w", ThreadID: "t"}, kept: tt.kept}
			m := sampleManifest(3, 1, 1)
			m.TextsKept, m.Actor = true, "ann"
			s.add(t, &m, nil)
			if tt.erasure != nil {
				e := sampleManifest(0, 0, 0)
				e.Kind, e.Erasure = KindErasure, tt.erasure
				s.add(t, &e, nil)
			}
			got, err := s.verify(VerifyOptions{})
			if err != nil || (got.FirstBad == nil) != (tt.want == "") || got.FirstBad != nil && got.FirstBad.Reason != tt.want {
				t.Errorf("problems %+v, %v, want %q", got.Problems, err, tt.want)
			}
		})
	}
}

// FuzzVerifier feeds bytes as records: nothing panics, and only a good log is
// good.
func FuzzVerifier(f *testing.F) {
	s := sampleLog(f, 2, nil)
	f.Add(s.records[0].Data, s.records[1].Data)
	f.Add([]byte(`{"a":1}`), []byte(`{"hash":"","manifest_id":"\u0000"}`))
	f.Add([]byte(`{"a":"`), []byte(`{"a":[{"]}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		l := stored{chain: s.chain, records: []Record{{Index: s.records[0].Index, Data: a}, {Index: s.records[1].Index, Data: b}}}
		got, _ := l.verify(VerifyOptions{})
		same := string(a) == string(s.records[0].Data) && string(b) == string(s.records[1].Data)
		if got.OK && !same && !strings.Contains(string(a)+string(b), "hmac") {
			t.Errorf("%q and %q are good", a, b)
		}
	})
}

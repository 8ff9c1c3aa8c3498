package translog

import (
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// stored are the hashes of a tree in memory.
type stored []tlog.Hash

func (s stored) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, n := range indexes {
		out[i] = s[n]
	}
	return out, nil
}

func grow(t *testing.T, s stored, from int, records ...string) stored {
	t.Helper()
	for i, r := range records {
		hashes, err := tlog.StoredHashesForRecordHash(int64(from+i), Leaf(r), s)
		if err != nil {
			t.Fatal(err)
		}
		s = append(s, hashes...)
	}
	return s
}

func root(t *testing.T, n int64, s stored) tlog.Hash {
	t.Helper()
	h, err := Root(n, s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// keys of a log, of another log of the same name, and of a witness.
type keys struct {
	log, public, other *Log
	witness            *Witness
	verifier           note.Verifier
}

func newKeys(t *testing.T) keys {
	t.Helper()
	pair := func(name string) (private, public string) {
		private, public, err := NewKey(name)
		if err != nil {
			t.Fatal(err)
		}
		return private, public
	}
	var k keys
	var errs [5]error
	private, public := pair("example.com/log")
	k.log, errs[0] = NewLog(private + "\n")
	k.public, errs[1] = OpenLog(public + "\n")
	private, _ = pair("example.com/log")
	k.other, errs[2] = NewLog(private)
	private, public = pair("witness.example")
	k.witness, errs[3] = NewWitness(private)
	k.verifier, errs[4] = OpenWitness(public)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func sign(t *testing.T, l *Log, n int64, s stored) Checkpoint {
	t.Helper()
	c, err := l.Sign(n, root(t, n, s))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCheckpoint(t *testing.T) {
	t.Parallel()

	k := newKeys(t)
	s := grow(t, nil, 0, "a", "b", "c")
	c := sign(t, k.log, 3, s)
	got, err := k.public.Open(c.Note)
	if err != nil || got != c {
		t.Errorf("opened %+v, %v, want %+v", got, err, c)
	}
	if _, err := k.public.Sign(3, c.Root); err == nil {
		t.Error("the public key signs")
	}
	for name, bad := range map[string]string{
		"another size": strings.Replace(c.Note, "\n3\n", "\n4\n", 1),
		"another key":  sign(t, k.other, 3, s).Note,
		"nothing":      "",
		"no signature": strings.SplitAfter(c.Note, "\n\n")[0],
	} {
		if _, err := k.public.Open(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := k.public.Open(c.Note, k.verifier); err == nil {
		t.Error("a witness that has not signed is not missed")
	}
	for _, name := range []string{"", "a b", "a+b", "a\nb"} {
		if _, _, err := NewKey(name); err == nil {
			t.Errorf("a key has the name %q", name)
		}
	}
}

func TestProof(t *testing.T) {
	t.Parallel()

	k := newKeys(t)
	records := []string{"a", "b", "c", "d", "e"}
	s := grow(t, nil, 0, records...)
	c := sign(t, k.log, 5, s)
	open := func(n string) (Checkpoint, error) { return k.public.Open(n) }
	for leaf, record := range records {
		file, err := Prove(c, int64(leaf), s)
		if err != nil {
			t.Fatal(err)
		}
		if got, at, err := CheckProof(file, record, open); err != nil || at != int64(leaf) || got != c {
			t.Errorf("leaf %d: %d, %v", leaf, at, err)
		}
		for name, bad := range map[string]string{
			"another leaf": strings.Replace(string(file), "index ", "index 1", 1),
			"huge leaf":    strings.Replace(string(file), "index ", "index 1844674407370955161", 1),
			"a hash less":  strings.Replace(string(file), strings.Split(string(file), "\n")[2]+"\n", "", 1),
			"nothing":      "",
		} {
			if _, _, err := CheckProof([]byte(bad), record, open); err == nil {
				t.Errorf("leaf %d, %s: accepted", leaf, name)
			}
		}
		if _, _, err := CheckProof(file, "x", open); err == nil {
			t.Errorf("leaf %d: proves another record", leaf)
		}
	}
}

func TestWitness(t *testing.T) {
	t.Parallel()

	k := newKeys(t)
	s := grow(t, nil, 0, "a", "b", "c")
	request := func(from int64, to Checkpoint, s stored) []byte {
		g, err := Grow(from, to, s)
		if err != nil {
			t.Fatal(err)
		}
		return g.Marshal()
	}
	first, err := k.witness.Cosign(k.public, "", request(0, sign(t, k.log, 3, s), s))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.public.Open(first.Note, k.verifier); err != nil {
		t.Errorf("the witness's signature: %v", err)
	}
	s = grow(t, s, 3, "d", "e", "f", "g")
	now := sign(t, k.log, 7, s)
	second, err := k.witness.Cosign(k.public, first.Note, request(3, now, s))
	if err != nil || second.Leaves != 7 {
		t.Errorf("a log that grew: %+v, %v", second, err)
	}
	forged := grow(t, nil, 0, "a", "X", "c", "d", "e", "f", "g")
	for name, bad := range map[string][]byte{
		"a record changed":       request(3, sign(t, k.log, 7, forged), forged),
		"from the beginning":     request(0, now, s),
		"an older log":           request(7, sign(t, k.log, 3, s), s),
		"another log's key":      request(3, sign(t, k.other, 7, s), s),
		"the same size, changed": request(3, sign(t, k.log, 3, forged), forged),
		"not a request":          []byte("hello\n\nthere\n"),
		"half a hash":            []byte("old 3\nAAAA\n\n" + now.Note),
	} {
		if c, err := k.witness.Cosign(k.public, first.Note, bad); err == nil {
			t.Errorf("%s: the witness signed %+v", name, c)
		}
	}
}

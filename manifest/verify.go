package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// BadReason says what is wrong with a record.
type BadReason string

// The reasons.
const (
	BadAltered     BadReason = "altered"     // a record, index or sign-off that was changed
	BadMissing     BadReason = "missing"     // a record that should be there
	BadReordered   BadReason = "reordered"   // a record in the wrong place
	BadInserted    BadReason = "inserted"    // a record that nobody appended
	BadFingerprint BadReason = "fingerprint" // a content hash, or a text's hash, that does not match
	BadSchema      BadReason = "schema"      // not a record of this schema, or not in canonical form
	BadText        BadReason = "text"        // a kept text that is gone, though nobody erased it
	BadTree        BadReason = "tree"        // a tree of hashes that is not that of the records, or not the one that was signed
	BadDatabase    BadReason = "database"    // a database around the records that is not as the program makes it
)

// ErrKeyNeeded says that records could not be checked without their key.
var ErrKeyNeeded = errors.New("the records are keyed: give the key that they were made with")

// Bad names one record. For a missing one, the id is empty.
type Bad struct {
	ManifestID string    `json:"manifest_id"`
	Seq        uint64    `json:"seq"`
	Reason     BadReason `json:"reason"`
}

// Problem is one finding of a verifier.
type Problem struct {
	Bad
	WorkspaceID string `json:"workspace_id"`
	ThreadID    string `json:"thread_id"`
	// Detail is for people.
	Detail string `json:"detail"`
}

// Verdict is the result of a verification. Its JSON is the output of "grapnel manifest verify".
type Verdict struct {
	OK bool `json:"ok"`
	// Anchored says that a known head or a key proves the end of every chain.
	// Without it the newest records may be missing.
	Anchored bool `json:"anchored"`
	// Checked counts the records.
	Checked int `json:"checked"`
	// FirstBad is the first problem; null if there is none.
	FirstBad *Bad `json:"first_bad"`
	// Problems are the first problems in the order of the records, at most [MaxProblems].
	Problems []Problem `json:"problems"`
}

// MaxProblems is how many problems a verdict lists.
const MaxProblems = 100

// VerifyOptions say what to verify with. The zero value checks schema, chain
// and content hashes of records without a key.
type VerifyOptions struct {
	// Key is the key of the records' hashes. Records from before there was a key are accepted in front of keyed ones.
	Key []byte
	// AllowUnkeyed accepts whole threads without a key beside a Key. Anybody can forge such a thread.
	AllowUnkeyed bool
	// FingerprintKey is the key of the texts' hashes. Only texts need it.
	FingerprintKey []byte
	// Head is the known hash of a record. The record must exist, and if it is the
	// last of its thread it proves the end.
	Head string
	// Texts are prompts, or parts of them. Some record must name the hash of each.
	Texts []string
	// Seen, if set, is called with the index of each record.
	Seen func(Index)
	// ChainOnly checks hashes, order, index and sign-off without decoding records: several times faster.
	ChainOnly bool

	_ struct{}
}

// Verifier checks stored records, one after the other:
//
//  1. [NewVerifier].
//  2. For each thread: [Verifier.Begin], then for each of its records, in the
//     order of their stored seq, [Verifier.Add] of what [Verifier.Inspect] found.
//  3. [Verifier.Report] for what else was found.
//  4. [Verifier.Verdict], once.
//
// Its memory does not grow with the log. It is not safe for concurrent use, but for Inspect.
type Verifier struct {
	opts    VerifyOptions
	verdict Verdict
	thread  threadCheck
	order   int   // of records and sign-offs, from 1
	places  []int // of verdict.Problems
	// unproven says that the end of a thread was not proven, keyedTexts that texts
	// could not be compared without the key.
	unproven, headSeen, needKey, keyedTexts bool
	threads                                 int
	texts                                   map[string]bool // hashes of Texts that no record has named yet
	last                                    Index
}

// NewVerifier returns a verifier without records.
func NewVerifier(o VerifyOptions) *Verifier {
	v := &Verifier{opts: o, verdict: Verdict{Problems: []Problem{}}, texts: map[string]bool{}}
	for _, text := range o.Texts {
		v.texts[Hash(text, nil)] = true
		v.texts[Hash(text, o.FingerprintKey)] = true
	}
	return v
}

// Begin turns to another thread. The chain is the thread's stored sign-off, nil if it is missing. Kept are the texts
// that the thread's records may name, by their hashes: whether each is as it was; nil if that is not to be checked.
func (v *Verifier) Begin(workspace, thread string, chain *Chain, kept map[string]bool) {
	v.endThread()
	v.threads++
	v.thread = threadCheck{workspace: workspace, thread: thread, open: true, kept: kept}
	if chain != nil {
		v.thread.chain, v.thread.signed = *chain, true
	}
	v.thread.tip = node{next: v.thread.chain.First, hash: v.thread.chain.Before, base: true}
}

// Add checks the place of the thread's next record, and adds what was found in it.
func (v *Verifier) Add(in *Inspected) {
	v.order++
	v.verdict.Checked++
	v.last = in.index
	if v.opts.Seen != nil {
		v.opts.Seen(in.index)
	}
	t := &v.thread
	n := in.node
	n.order = v.order
	switch {
	case in.unreadable:
		n.workspace, n.thread = t.workspace, t.thread
	case n.keyed:
		t.keyed = true
		v.needKey = v.needKey || len(v.opts.Key) == 0
	case t.keyed && len(v.opts.Key) > 0:
		n.finding, in.record = &finding{BadAltered, "its hash has no key, though records before it have one"}, nil
	}
	if in.record != nil {
		v.inspectTexts(&n, in.record)
	}
	if n.workspace != t.workspace || n.thread != t.thread {
		v.problemf(&n, BadInserted, "it says that it belongs to workspace %q, thread %q", n.workspace, n.thread)
		return
	}
	t.window = append(t.window, n)
	v.settle(false)
}

// Skip says that the thread's records up to the one with that seq and hash were verified before. It comes before Add.
func (v *Verifier) Skip(seq uint64, hash string) {
	v.thread.tip = node{seq: seq, next: seq + 1, hash: hash, base: true}
	v.thread.keyed = isKeyed(hash)
}

// Report adds a problem that is not of one thread's records.
func (v *Verifier) Report(p Problem) {
	v.endThread()
	v.order++
	v.thread = threadCheck{workspace: p.WorkspaceID, thread: p.ThreadID}
	v.problemf(&node{id: p.ManifestID, seq: p.Seq, order: v.order}, p.Reason, "%s", p.Detail)
}

// Verdict ends the verification. The error is [ErrKeyNeeded] if records could not
// be checked without a key; the verdict then covers the others.
func (v *Verifier) Verdict() (Verdict, error) {
	v.endThread()
	v.order++
	if v.opts.Head != "" && !v.headSeen {
		v.unproven = true
		n := node{seq: v.thread.tip.next, order: v.order}
		v.problemf(&n, BadMissing, "no record has the hash %s", v.opts.Head)
	}
	for i, text := range v.opts.Texts {
		keyed := Hash(text, v.opts.FingerprintKey)
		if v.keyedTexts || v.opts.ChainOnly || !v.texts[Hash(text, nil)] || !v.texts[keyed] {
			continue
		}
		n := node{id: v.last.ManifestID, seq: v.last.Seq, order: v.order}
		v.problemf(&n, BadFingerprint, "no record names the hash %s of text %d", keyed, i+1)
	}
	v.verdict.OK = len(v.verdict.Problems) == 0
	v.verdict.Anchored = v.threads > 0 && !v.unproven
	if !v.verdict.OK {
		v.verdict.FirstBad = &v.verdict.Problems[0].Bad
	}
	if v.needKey {
		return v.verdict, ErrKeyNeeded
	}
	return v.verdict, nil
}

// problemf adds a problem in the order of the records.
func (v *Verifier) problemf(n *node, reason BadReason, format string, args ...any) {
	n.bad = true
	p := Problem{
		Bad:         Bad{ManifestID: n.id, Seq: n.seq, Reason: reason},
		WorkspaceID: v.thread.workspace, ThreadID: v.thread.thread, Detail: fmt.Sprintf(format, args...),
	}
	at, _ := slices.BinarySearch(v.places, n.order+1)
	v.places = slices.Insert(v.places, at, n.order)
	v.verdict.Problems = slices.Insert(v.verdict.Problems, at, p)
	if len(v.places) > MaxProblems {
		v.places, v.verdict.Problems = v.places[:MaxProblems], v.verdict.Problems[:MaxProblems]
	}
}

// finding is what is wrong with a record by itself. It is reported when the record has its place in the chain.
type finding struct {
	reason BadReason
	detail string
}

// Inspected is what a record says by itself, whatever stands before and behind it.
type Inspected struct {
	index Index
	node  node
	// unreadable says that it is not known where the record belongs.
	unreadable bool
	record     *Manifest // nil if its content is bad, or was not looked at
}

// Inspect checks a record by itself, which is most of the work. It is safe for concurrent use, also beside the other
// methods. The record's data may be reused afterwards.
func (v *Verifier) Inspect(r Record) *Inspected {
	in := &Inspected{index: r.Index}
	l, ok := scanLink(r.Data, v.opts.Key)
	if !ok {
		in.unreadable = true
		in.node = node{id: r.Index.ManifestID, seq: r.Index.Seq, next: r.Index.Seq + 1, hash: r.Index.Hash, noPrev: true}
		in.node.findf(BadSchema, "it is not a record in canonical form")
		return in
	}
	in.node = node{
		id: l.ManifestID, seq: l.Seq, next: l.Seq + 1, prev: l.prev, hash: l.Hash, sum: l.sum,
		workspace: l.WorkspaceID, thread: l.ThreadID, keyed: isKeyed(l.Hash),
	}
	n := &in.node
	switch {
	case n.keyed && len(v.opts.Key) == 0: // it cannot be known
	case l.sum != l.Hash && n.keyed:
		n.findf(BadAltered, "its hash does not match its content, or the key is another one")
	case l.sum != l.Hash:
		n.findf(BadAltered, "its hash does not match its content")
	}
	n.compareIndex(&l.Index, &r.Index)
	if !v.opts.ChainOnly && n.finding == nil {
		in.content(&r)
	}
	return in
}

//nolint:gochecknoglobals // a pool
var scratches = sync.Pool{New: func() any { return &scratch{} }}

// scratch is memory for canonical forms.
type scratch struct{ content, outline []byte }

func (in *Inspected) content(r *Record) {
	n := &in.node
	s := scratches.Get().(*scratch) //nolint:forcetypeassert // the pool has nothing else
	defer scratches.Put(s)
	s.content = slices.Grow(s.content[:0], len(r.Data))
	m, err := parseCanonical(r.Data, s.content)
	if err != nil {
		n.findf(BadSchema, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		return
	}
	var sum string
	if sum, s.content, err = hashContent(s.content, m); err != nil || sum != m.ContentHash {
		n.findf(BadFingerprint, "its content_hash does not match its content")
		return
	}
	in.record = m
	if r.Outline == nil {
		return
	}
	if m.Cache.Actual != nil { // no hash covers it
		n.findf(BadAltered, "its cache.actual is not null, as it is in all that is stored")
	}
	o := m.Outline()
	if s.outline = o.Append(s.outline[:0]); !bytes.Equal(s.outline, r.Outline) {
		n.findf(BadAltered, "the stored outline is not that of the record")
	}
}

func (v *Verifier) inspectTexts(n *node, m *Manifest) {
	t := &v.thread
	if m.Kind == KindErasure && m.Erasure != nil {
		t.erasures = append(t.erasures, erasure{*m.Erasure, n.order})
	}
	if len(v.opts.Texts) == 0 && t.kept == nil {
		return
	}
	if len(v.opts.Texts) > 0 && len(v.opts.FingerprintKey) == 0 && isKeyed(m.HashFull) {
		v.needKey, v.keyedTexts = true, true
	}
	check := func(what, hash string) {
		delete(v.texts, hash)
		whole, kept := t.kept[hash]
		v.needKey = v.needKey || kept && len(v.opts.FingerprintKey) == 0 && isKeyed(hash)
		if kept && !whole {
			n.findf(BadFingerprint, "the text kept for %s does not have the hash %s", what, hash)
		}
	}
	check("hash_full", m.HashFull)
	check("hash_stable", m.HashStable)
	check("hash_dynamic", m.HashDynamic)
	expect := func(what, hash string, promised bool) {
		check(what, hash)
		if _, kept := t.kept[hash]; !kept && promised && t.kept != nil && !n.textGone {
			n.textGone = true
			t.gone = append(t.gone, goneText{*n, m.Actor, m.CreatedAt, what})
		}
	}
	for i := range m.Sections {
		expect("section "+m.Sections[i].SectionID, m.Sections[i].Hash, m.TextsKept)
	}
	for i := range m.Calls {
		for _, hash := range m.Calls[i].TextHashes() {
			expect(fmt.Sprintf("call %d", i+1), hash, m.Calls[i].Input.Omitted == 0)
		}
	}
}

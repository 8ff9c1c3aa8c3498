package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/digest"
)

// BadReason says what is wrong with a record.
type BadReason string

// The reasons.
const (
	// BadAltered is a record, or the index or sign-off beside it, that is not
	// what was written.
	BadAltered BadReason = "altered"
	// BadMissing is a record that should be there.
	BadMissing BadReason = "missing"
	// BadReordered is a record that stands at another one's place.
	BadReordered BadReason = "reordered"
	// BadInserted is a record that nobody appended.
	BadInserted BadReason = "inserted"
	// BadFingerprint is a record whose content hash is not that of its content,
	// or a text that has another fingerprint than the record says.
	BadFingerprint BadReason = "fingerprint"
	// BadSchema is something that is no record of this schema, or not in
	// canonical form.
	BadSchema BadReason = "schema"
)

// ErrKeyNeeded says that records were made with a key which the verifier was
// not given, so that it could not tell.
var ErrKeyNeeded = errors.New("the records are keyed: give the key that they were made with")

// Bad names one record. Seq is the number that is missing where the reason is
// missing; the id is empty then.
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

// Verdict is what a verifier has to say. Its JSON is the output of "grapnel
// manifest verify".
type Verdict struct {
	OK bool `json:"ok"`
	// Anchored says that a head that somebody kept, or a key, proves the end of
	// every chain too. Without it the newest records may be gone.
	Anchored bool `json:"anchored"`
	// Checked is how many records were looked at.
	Checked int `json:"checked"`
	// FirstBad is the first problem; null if there is none.
	FirstBad *Bad `json:"first_bad"`
	// Problems are the first problems in the order of the records, at most
	// [MaxProblems].
	Problems []Problem `json:"problems"`
}

// MaxProblems is how many problems a verdict lists.
const MaxProblems = 100

// VerifyOptions say what to verify with. The zero value checks schema, chain
// and content hashes of records without a key.
type VerifyOptions struct {
	// Key is the key of the records' hashes, if they have one. Records that were
	// made before there was a key are taken in front of those that have it.
	Key []byte
	// AllowUnkeyed takes whole threads without a key beside a Key: those that
	// ended before there was one. Anybody can make such a thread anew.
	AllowUnkeyed bool
	// FingerprintKey is the key of the fingerprints, if they have one. It is
	// needed only for Texts.
	FingerprintKey []byte
	// Head is the hash of a record that somebody kept. It must be there, and
	// where it is the last of its thread it proves the end.
	Head string
	// Texts are prompts, or parts of them, that are at hand. Each must have a
	// fingerprint that some record names.
	Texts []string
	// Differs, if set, reports that the text kept under a fingerprint has another
	// one. It is asked for each fingerprint of each record.
	Differs func(fingerprint string) bool
	// Seen, if set, is told of each record that is looked at, as its index has it:
	// to show progress, or to collect the heads of threads.
	Seen func(Index)
	// ChainOnly checks hashes, order, index and sign-off without decoding
	// records: several times faster.
	ChainOnly bool

	_ struct{}
}

// Verifier checks stored records, one after the other. Use it like this:
//
//  1. [NewVerifier].
//  2. For each thread: [Verifier.Begin], then [Verifier.Add] for each of its
//     records in the order of their stored seq.
//  3. [Verifier.Verdict], once.
//
// It holds no record longer than Add takes, and needs memory that does not grow
// with the log. It is not safe for concurrent use.
type Verifier struct {
	opts    VerifyOptions
	verdict Verdict
	thread  threadCheck
	// order counts what was fed; problems are kept in that order.
	order  int
	places []int // of verdict.Problems
	// unproven is set when the end of a thread was not proven.
	unproven, headSeen, needKey bool
	// keyedTexts is set when texts could not be compared for want of a key.
	keyedTexts bool
	threads    int
	// texts are those that no record has named yet, by fingerprint.
	texts map[string]int
	last  Index
	// room is where contents are encoded, used again and again.
	room []byte
}

// NewVerifier returns a verifier that has seen nothing.
func NewVerifier(o VerifyOptions) *Verifier {
	v := &Verifier{opts: o, verdict: Verdict{Problems: []Problem{}}, texts: map[string]int{}}
	for i, text := range o.Texts {
		v.texts[Fingerprint(text, nil)] = i
		v.texts[Fingerprint(text, o.FingerprintKey)] = i
	}
	return v
}

// Begin turns to another thread. The chain is the thread's sign-off as it is
// stored; nil where there should be one and is none.
func (v *Verifier) Begin(workspace, thread string, chain *Chain) {
	v.endThread()
	v.threads++
	v.thread = threadCheck{workspace: workspace, thread: thread, open: true}
	if chain != nil {
		v.thread.chain, v.thread.signed = *chain, true
	}
	v.thread.tip = node{next: v.thread.chain.First, hash: v.thread.chain.Before, base: true}
}

// Add checks the thread's next record. The data may be reused afterwards.
func (v *Verifier) Add(r Record) {
	v.order++
	v.verdict.Checked++
	v.last = r.Index
	if v.opts.Seen != nil {
		v.opts.Seen(r.Index)
	}
	t := &v.thread
	n := v.inspect(r)
	// A stranger is no part of the chain that it stands in.
	if n.stranger {
		v.problemf(&n, BadInserted, "it says that it belongs to workspace %q, thread %q", n.workspace, n.thread)
		return
	}
	t.window = append(t.window, n)
	v.settle(false)
}

// Verdict ends the work. The error is [ErrKeyNeeded] when records could not be
// checked for want of a key; the verdict then tells what could be.
func (v *Verifier) Verdict() (Verdict, error) {
	v.endThread()
	v.order++
	if v.opts.Head != "" && !v.headSeen {
		v.unproven = true
		n := node{seq: v.thread.tip.next, order: v.order}
		v.problemf(&n, BadMissing, "no record has the hash %s", v.opts.Head)
	}
	for i := range v.opts.Texts {
		if v.keyedTexts || v.named(i) {
			continue
		}
		n := node{id: v.last.ManifestID, seq: v.last.Seq, order: v.order}
		v.problemf(&n, BadFingerprint, "no record names the fingerprint %s of text %d", Fingerprint(v.opts.Texts[i], v.opts.FingerprintKey), i+1)
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

// named reports whether some record has named text i: then no fingerprint of
// it is waited for.
func (v *Verifier) named(i int) bool {
	_, plain := v.texts[Fingerprint(v.opts.Texts[i], nil)]
	_, keyed := v.texts[Fingerprint(v.opts.Texts[i], v.opts.FingerprintKey)]
	return v.opts.ChainOnly || !plain || !keyed
}

// problemf notes a finding at a record's place, once a place and reason.
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

// finding is what is wrong with a record by itself. It is held back until the
// record has its place in the chain.
type finding struct {
	reason BadReason
	detail string
}

// inspect looks at a record by itself.
func (v *Verifier) inspect(r Record) node {
	l, ok := scanLink(r.Data, v.opts.Key)
	if !ok {
		// The index is all that is known of it.
		n := node{id: r.Index.ManifestID, seq: r.Index.Seq, next: r.Index.Seq + 1, hash: r.Index.Hash, order: v.order, noPrev: true}
		n.findf(BadSchema, "it is not a record in canonical form")
		return n
	}
	n := node{
		id: l.ManifestID, seq: l.Seq, next: l.Seq + 1, prev: l.prev, hash: l.Hash, sum: l.sum, order: v.order,
		workspace: l.WorkspaceID, thread: l.ThreadID, keyed: l.keyed(),
	}
	n.stranger = n.workspace != v.thread.workspace || n.thread != v.thread.thread
	switch {
	case n.keyed && len(v.opts.Key) == 0:
		v.needKey = true
	case !n.keyed && len(v.opts.Key) > 0 && v.thread.keyed:
		n.findf(BadAltered, "its hash has no key, though records before it have one")
	case l.sum != l.Hash && n.keyed:
		n.findf(BadAltered, "its hash is not that of its content, or the key is another one")
	case l.sum != l.Hash:
		n.findf(BadAltered, "its hash is not that of its content")
	}
	v.thread.keyed = v.thread.keyed || n.keyed
	n.compareIndex(&l.Index, &r.Index)
	if !v.opts.ChainOnly && n.finding == nil {
		v.inspectContent(&n, r.Data)
	}
	return n
}

// inspectContent checks what only the decoded record tells.
func (v *Verifier) inspectContent(n *node, data []byte) {
	m, canonical := decodeCanonical(data)
	err := errors.New("it is not in canonical form")
	if canonical {
		err = Validate(m)
	} else if _, parseErr := Parse(data); parseErr != nil {
		err = parseErr
	}
	if err != nil {
		n.findf(BadSchema, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		return
	}
	sum, room, err := hashContent(v.room, m)
	if v.room = room; err != nil || sum != m.ContentHash {
		n.findf(BadFingerprint, "its content_hash is not that of its content")
		return
	}
	v.inspectTexts(n, m)
}

// inspectTexts compares the record's fingerprints with the texts at hand.
func (v *Verifier) inspectTexts(n *node, m *Manifest) {
	if len(v.opts.Texts) == 0 && v.opts.Differs == nil {
		return
	}
	if len(v.opts.Texts) > 0 && len(v.opts.FingerprintKey) == 0 && strings.HasPrefix(m.FingerprintFull, digest.PrefixHMACSHA256) {
		v.needKey, v.keyedTexts = true, true
	}
	check := func(what, fingerprint string) {
		delete(v.texts, fingerprint)
		if v.opts.Differs != nil && v.opts.Differs(fingerprint) {
			n.findf(BadFingerprint, "the text kept for %s does not have the fingerprint %s", what, fingerprint)
		}
	}
	check("fingerprint_full", m.FingerprintFull)
	check("fingerprint_stable", m.FingerprintStable)
	check("fingerprint_dynamic", m.FingerprintDynamic)
	for i := range m.Sections {
		check("section "+m.Sections[i].SectionID, m.Sections[i].Fingerprint)
	}
}

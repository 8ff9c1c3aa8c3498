package manifest

import (
	"fmt"
	"slices"
)

// This file finds out why a record does not follow the one before it. As long as
// each does, nothing is held. Where one does not, the next few are collected,
// and what they say of one another tells a record that is gone from one that was
// moved, and a changed one from a foreign one.

// windowSize is how far a record that was moved is looked for.
const windowSize = 512

// node is a record as its neighbours see it.
type node struct {
	id                string
	workspace, thread string
	seq               uint64
	// next is the seq that follows: seq+1, and for the base the first seq there is.
	next uint64
	prev string
	// hash is what the record says, sum what it should say.
	hash, sum string
	order     int
	finding   *finding
	// noPrev is set where the record could not be read; base for what stands in
	// front of the first record; moved when it was reported as reordered, bad when
	// anything was reported.
	keyed, stranger, noPrev, base, moved, bad bool
}

func (n *node) findf(reason BadReason, format string, args ...any) {
	if n.finding == nil {
		n.finding = &finding{reason, fmt.Sprintf(format, args...)}
	}
}

// compareIndex compares what the store has beside the record.
func (n *node) compareIndex(record, stored *Index) {
	for _, f := range []struct{ name, record, stored string }{
		{"manifest_id", record.ManifestID, stored.ManifestID},
		{"workspace_id", record.WorkspaceID, stored.WorkspaceID},
		{"thread_id", record.ThreadID, stored.ThreadID},
		{"turn_id", record.TurnID, stored.TurnID},
		{"profile", string(record.Profile), string(stored.Profile)},
		{"fingerprint_full", record.FingerprintFull, stored.FingerprintFull},
		{"hash", record.Hash, stored.Hash},
	} {
		if f.record != f.stored {
			n.findf(BadAltered, "the index has %s %.80q, the record %.80q", f.name, f.stored, f.record)
		}
	}
	if !record.CreatedAt.Equal(stored.CreatedAt) {
		n.findf(BadAltered, "the index has created_at %s, the record %s", stored.CreatedAt, record.CreatedAt)
	}
	if record.Seq != stored.Seq {
		n.findf(BadReordered, "it is stored under seq %d", stored.Seq)
	}
}

// follows reports whether n is the record behind t.
func (n *node) follows(t *node) bool {
	return n.seq == t.next && (n.noPrev || n.prev == t.hash || t.sum != "" && n.prev == t.sum)
}

// threadCheck is the state of the thread at hand.
type threadCheck struct {
	workspace, thread string
	open, signed      bool
	chain             Chain
	// keyed is set once a record had a key.
	keyed bool
	// tip is the last record that has its place, before the one in front of it.
	tip, before node
	// window are the records behind the tip whose place is not known yet.
	window []node
	beyond bool
}

// settle gives records of the window their places, as far as that can be told;
// at the end of the thread, all of them.
func (v *Verifier) settle(end bool) {
	t := &v.thread
	for len(t.window) > 0 {
		switch {
		case t.window[0].follows(&t.tip):
			v.accept()
		case !end && len(t.window) < windowSize:
			return
		default:
			v.resolve(end)
		}
	}
}

// accept puts the window's first record behind the tip.
func (v *Verifier) accept() {
	t := &v.thread
	n := t.window[0]
	t.window = slices.Delete(t.window, 0, 1)
	if n.finding != nil && (!n.moved || n.finding.reason != BadReordered) {
		v.problemf(&n, n.finding.reason, "%s", n.finding.detail)
	}
	if t.signed && n.seq >= t.chain.Next && !t.beyond {
		t.beyond = true
		v.problemf(&n, BadInserted, "the sign-off ends in front of it")
	}
	if n.hash == v.opts.Head && !n.bad {
		v.headSeen = true
	}
	t.before, t.tip = t.tip, n
}

// resolve decides what the window's first record is, which does not follow the
// tip, and gives it a place or takes it out.
func (v *Verifier) resolve(end bool) {
	t := &v.thread
	w := &t.window[0]
	later := slices.IndexFunc(t.window, func(n node) bool { return n.follows(&t.tip) })
	switch {
	case later > 0:
		v.misplaced(later)
	case w.seq < t.tip.next:
		v.repeated(end)
	case w.seq == t.tip.next:
		v.contradicted(end)
	default:
		v.gap()
	}
}

// misplaced handles a record in front of the one that should be there: it was
// moved if the window has the record that it follows, else it is foreign.
func (v *Verifier) misplaced(later int) {
	t := &v.thread
	w := &t.window[0]
	if !slices.ContainsFunc(t.window, func(n node) bool { return w.seq > 0 && !w.noPrev && w.follows(&n) }) {
		v.problemf(w, BadInserted, "the record in front of it is followed by another one")
		t.window = slices.Delete(t.window, 0, 1)
		return
	}
	v.advance(later)
}

// advance moves a later record to the front of the window; the first one stands
// at the wrong place.
func (v *Verifier) advance(later int) {
	t := &v.thread
	if w := &t.window[0]; !w.moved {
		w.moved = true
		v.problemf(w, BadReordered, "it stands where seq %d should be", t.tip.next)
	}
	n := t.window[later]
	t.window = slices.Insert(slices.Delete(t.window, later, later+1), 0, n)
}

// repeated handles a record whose number was already there. If what comes
// behind goes on from this one, the one that took its place is foreign.
func (v *Verifier) repeated(end bool) {
	t := &v.thread
	w := &t.window[0]
	if !t.tip.base && w.follows(&t.before) && v.attested(end) {
		v.problemf(&t.tip, BadInserted, "the records behind it continue another one")
		t.tip = t.before
		v.accept()
		return
	}
	v.problemf(w, BadInserted, "there is another record with seq %d", w.seq)
	t.window = slices.Delete(t.window, 0, 1)
}

// contradicted handles a record that has the right number and names another
// one as the record before it. One of the two was changed and hashed anew: not
// this one if the next goes on from it.
func (v *Verifier) contradicted(end bool) {
	t := &v.thread
	w := &t.window[0]
	switch {
	case t.tip.base && t.tip.next == 0:
		v.problemf(w, BadAltered, "it is the first record and names one before it")
	case t.tip.base:
		v.problemf(w, BadAltered, "it does not continue the last record that retention took away")
	case t.tip.bad: // was reported
	case v.attested(end):
		v.problemf(&t.tip, BadAltered, "the record behind it continues another one")
	default:
		v.problemf(w, BadAltered, "its prev is not the hash of the record before it")
	}
	w.prev = t.tip.hash
	w.noPrev = true
}

// attested reports whether something behind the window's first record goes on
// from it.
func (v *Verifier) attested(end bool) bool {
	t := &v.thread
	w := &t.window[0]
	if len(t.window) > 1 {
		return t.window[1].follows(w)
	}
	return end && t.signed && t.chain.Next == w.next && t.chain.Last == w.hash
}

// gap handles a record with a number too high: the one in between comes later,
// or it is gone.
func (v *Verifier) gap() {
	t := &v.thread
	if later := slices.IndexFunc(t.window, func(n node) bool { return n.seq == t.tip.next }); later > 0 {
		v.advance(later)
		return
	}
	w := &t.window[0]
	n := node{seq: t.tip.next, order: w.order}
	v.problemf(&n, BadMissing, "the next record there is has seq %d", w.seq)
	t.tip = node{next: w.seq, hash: w.prev, bad: true}
}

// endThread settles what is left and compares the end with the sign-off.
func (v *Verifier) endThread() {
	t := &v.thread
	if !t.open {
		return
	}
	t.open = false
	v.settle(true)
	v.order++
	n := node{id: t.tip.id, seq: t.tip.seq, order: v.order}
	switch {
	case !t.signed:
		v.problemf(&n, BadMissing, "the thread's sign-off is gone")
	case v.checkSignature(&n):
	case t.tip.next < t.chain.Next:
		gone := node{seq: t.tip.next, order: v.order}
		v.problemf(&gone, BadMissing, "the sign-off says that the last record has seq %d", t.chain.Next-1)
	case t.tip.next == t.chain.Next && t.tip.hash != t.chain.Last && !t.tip.base && !t.tip.bad:
		v.problemf(&t.tip, BadAltered, "the sign-off ends with the hash %s", t.chain.Last)
	}
	if !v.proven() {
		v.unproven = true
	}
}

// checkSignature reports whether the sign-off itself is bad.
func (v *Verifier) checkSignature(n *node) bool {
	t := &v.thread
	l := link{Index: Index{Hash: t.chain.Signature}}
	if l.keyed() && len(v.opts.Key) == 0 {
		v.needKey = true
		return false
	}
	var key []byte
	if l.keyed() {
		key = v.opts.Key
	}
	want, err := t.chain.signature(key)
	switch {
	case err != nil || want != t.chain.Signature:
		v.problemf(n, BadAltered, "the thread's sign-off was changed")
	case t.keyed && !l.keyed():
		v.problemf(n, BadAltered, "the thread's sign-off has no key, though records have one")
	case !l.keyed() && len(v.opts.Key) > 0 && !v.opts.AllowUnkeyed:
		v.problemf(n, BadAltered, "the thread's sign-off has no key: it is from before there was one, or of somebody who does not have it")
	default:
		return false
	}
	return true
}

// proven reports whether the thread's end is certain: its last record is the
// one that somebody kept, or the one that a keyed sign-off names.
func (v *Verifier) proven() bool {
	t := &v.thread
	if t.tip.bad {
		return false
	}
	if v.opts.Head != "" && t.tip.hash == v.opts.Head {
		return true
	}
	l := link{Index: Index{Hash: t.chain.Signature}}
	if !t.signed || !l.keyed() || len(v.opts.Key) == 0 {
		return false
	}
	want, err := t.chain.signature(v.opts.Key)
	return err == nil && want == t.chain.Signature && t.tip.next == t.chain.Next && t.tip.hash == t.chain.Last
}

package manifest

import (
	"fmt"
	"slices"
	"time"
)

// This file finds out why a record does not follow the one before it. From there on, records are collected in a
// window. What they say about one another distinguishes a missing record from a moved one, and a changed one from an
// inserted one.

// windowSize is how far a moved record is looked for.
const windowSize = 512

// node is what a record says about its place in the chain.
type node struct {
	id                string
	workspace, thread string
	seq               uint64
	next              uint64 // the seq that follows
	prev              string
	hash, sum         string // the record's, and what it should be
	order             int
	finding           *finding
	// noPrev is set if prev is unknown, base for what precedes the first record,
	// moved if it was reported as reordered, bad if anything was reported.
	keyed, noPrev, base, moved, bad bool
	textGone                        bool // one of its kept texts is gone
}

func (n *node) findf(reason BadReason, format string, args ...any) {
	if n.finding == nil {
		n.finding = &finding{reason, fmt.Sprintf(format, args...)}
	}
}

func (n *node) compareIndex(record, stored *Index) {
	for _, f := range []struct{ name, record, stored string }{
		{"manifest_id", record.ManifestID, stored.ManifestID},
		{"workspace_id", record.WorkspaceID, stored.WorkspaceID},
		{"thread_id", record.ThreadID, stored.ThreadID},
		{"turn_id", record.TurnID, stored.TurnID},
		{"actor", record.Actor, stored.Actor},
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

func (n *node) follows(t *node) bool {
	return n.seq == t.next && (n.noPrev || n.prev == t.hash || t.sum != "" && n.prev == t.sum)
}

type threadCheck struct {
	workspace, thread string
	open, signed      bool
	chain             Chain
	keyed             bool   // a record had a key
	tip, before       node   // the last two records that have their place
	window            []node // records behind the tip without a place
	beyond            bool   // a record behind the sign-off was reported
	kept              map[string]bool
	erasures          []erasure
	gone              []goneText
}

// erasure is what an erasure record at a place in the order says.
type erasure struct {
	Erasure

	order int
}

// goneText is a record one of whose kept texts is gone.
type goneText struct {
	node

	actor string
	at    time.Time
	what  string
}

// covers reports whether the erasure accounts for a text that is gone.
func (e *erasure) covers(g *goneText) bool {
	return e.order > g.order && (e.Actor == "" || e.Actor == g.actor) && (e.Before.IsZero() || g.at.Before(e.Before))
}

// reportGone reports the kept texts that are gone and that nobody erased.
func (v *Verifier) reportGone() {
	t := &v.thread
	for i := range t.gone {
		g := &t.gone[i]
		if !slices.ContainsFunc(t.erasures, func(e erasure) bool { return e.covers(g) }) {
			v.problemf(&g.node, BadText, "the text that was kept for %s is gone, and no erasure accounts for it", g.what)
		}
	}
}

// settle gives records of the window their places as far as possible; at the end of the thread, all of them.
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

// resolve decides what is wrong with the window's first record, which does not
// follow the tip, and gives it a place or removes it.
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

// misplaced handles a record in front of the expected one: it was moved if the
// window has the record that it follows, else inserted.
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

func (v *Verifier) advance(later int) {
	t := &v.thread
	if w := &t.window[0]; !w.moved {
		w.moved = true
		v.problemf(w, BadReordered, "it stands where seq %d should be", t.tip.next)
	}
	n := t.window[later]
	t.window = slices.Insert(slices.Delete(t.window, later, later+1), 0, n)
}

// repeated handles a record with a seq that was used already. If the next record
// follows this one, the other one was inserted.
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

// contradicted handles a record with the right seq and the wrong prev. It or the
// tip was changed and hashed again: the tip, if the next record follows this one.
func (v *Verifier) contradicted(end bool) {
	t := &v.thread
	w := &t.window[0]
	switch {
	case t.tip.base && t.tip.next == 0:
		v.problemf(w, BadAltered, "it is the first record and names one before it")
	case t.tip.base:
		v.problemf(w, BadAltered, "it does not continue the last record that retention removed")
	case t.tip.bad: // reported already
	case v.attested(end):
		v.problemf(&t.tip, BadAltered, "the record behind it continues another one")
	default:
		v.problemf(w, BadAltered, "its prev is not the hash of the record before it")
	}
	w.prev = t.tip.hash
	w.noPrev = true
}

// attested reports whether a record or the sign-off continues the window's first record.
func (v *Verifier) attested(end bool) bool {
	t := &v.thread
	w := &t.window[0]
	if len(t.window) > 1 {
		return t.window[1].follows(w)
	}
	return end && t.signed && t.chain.Next == w.next && t.chain.Last == w.hash
}

// gap handles a record with a seq too high: the one in between comes later, or it is missing.
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

// endThread settles the rest of the thread and compares its end with the sign-off.
func (v *Verifier) endThread() {
	t := &v.thread
	if !t.open {
		return
	}
	t.open = false
	v.settle(true)
	v.reportGone()
	v.order++
	n := node{id: t.tip.id, seq: t.tip.seq, order: v.order}
	valid, keyed := v.checkSignature(&n)
	switch {
	case !valid:
	case t.tip.next < t.chain.Next:
		gone := node{seq: t.tip.next, order: v.order}
		v.problemf(&gone, BadMissing, "the sign-off says that the last record has seq %d", t.chain.Next-1)
	case t.tip.next == t.chain.Next && t.tip.hash != t.chain.Last && !t.tip.base && !t.tip.bad:
		v.problemf(&t.tip, BadAltered, "the sign-off ends with the hash %s", t.chain.Last)
	}
	known := v.opts.Head != "" && t.tip.hash == v.opts.Head
	signed := keyed && t.tip.next == t.chain.Next && t.tip.hash == t.chain.Last
	v.unproven = v.unproven || t.tip.bad || !known && !signed
}

// checkSignature checks the sign-off itself. It is valid unless a problem was
// reported; keyed says that the key proves it.
func (v *Verifier) checkSignature(n *node) (valid, keyed bool) {
	t := &v.thread
	if !t.signed {
		v.problemf(n, BadMissing, "the thread's sign-off is missing")
		return false, false
	}
	keyed = isKeyed(t.chain.Signature)
	if keyed && len(v.opts.Key) == 0 {
		v.needKey = true
		return true, false
	}
	var key []byte
	if keyed {
		key = v.opts.Key
	}
	want, err := t.chain.signature(key)
	switch {
	case err != nil || want != t.chain.Signature:
		v.problemf(n, BadAltered, "the thread's sign-off was changed")
		return false, false
	case t.keyed && !keyed:
		v.problemf(n, BadAltered, "the thread's sign-off has no key, though records have one")
	case !keyed && len(v.opts.Key) > 0 && !v.opts.AllowUnkeyed:
		v.problemf(n, BadAltered, "the thread's sign-off has no key: it is older than the key, or somebody without the key made it")
	default:
		return true, keyed
	}
	return false, keyed
}

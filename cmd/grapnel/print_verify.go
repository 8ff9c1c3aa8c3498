package main

import (
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
)

// mostHeads bounds the heads that are shown: a log may have thousands of threads.
const mostHeads = 20

// printVerdict prints the answer first, then what it rests on.
func (a *app) printVerdict(v *manifest.Verdict, h *heads, head string) {
	threads := h.list()
	switch {
	case !v.OK && v.FirstBad == nil:
		a.printf("%s looked at; it cannot be told whether they are whole\n", manifests(v.Checked))
		return
	case !v.OK:
		a.printProblems(v)
		return
	case v.Checked == 0:
		a.println("there are no manifests to verify")
		return
	}
	a.printf("whole: %s of %s, in order and as they were written\n",
		manifests(v.Checked), text.Thousands(len(threads))+plural(len(threads), " thread", " threads"))
	switch {
	case v.Anchored && head != "":
		a.println("anchored: the end of every thread is proven too")
	case v.Anchored:
		a.println("anchored by the key: its holder signed the end of every thread; whether that was the last one, a kept head tells")
	case head != "":
		a.println("the head that you kept is there; what was appended behind it rests on plain hashes")
	default:
		a.println("not anchored: nothing proves that the newest manifests are all there is")
	}
	a.printHeads(threads)
}

// manifests is a number of manifests with its noun.
func manifests(n int) string { return text.Thousands(n) + plural(n, " manifest", " manifests") }

// printHeads prints the end of each thread, which somebody should keep where
// whoever can change the log cannot change it.
func (a *app) printHeads(list []manifest.Index) {
	shown := list[:min(len(list), mostHeads)]
	t := newTable("heads", "workspace", "thread", ">seq", "hash")
	for i := range shown {
		x := &shown[i]
		t.add(x.WorkspaceID, x.ThreadID, x.Seq, x.Hash)
	}
	a.printTable(t)
	if more := len(list) - len(shown); more > 0 {
		a.printf("  and %s more; --thread shows one\n", text.Thousands(more))
	}
	first := &list[0]
	a.printf("\nkeep the hash somewhere else; next time: grapnel manifest verify --thread %s --head %s\n", clean(first.ThreadID), first.Hash)
}

// printProblems prints what is wrong, in the order of the log.
func (a *app) printProblems(v *manifest.Verdict) {
	p := &v.Problems[0]
	which := p.ManifestID
	if which == "" {
		which = "seq " + text.Thousands(int(p.Seq)) //nolint:gosec // counted from 0, one by one
	}
	a.printf("BROKEN: %s: %s, in the thread %s of the workspace %s\n", p.Reason, clean(which), clean(p.ThreadID), clean(p.WorkspaceID))
	t := newTable("problems", "reason", "workspace", "thread", ">seq", "manifest", "detail")
	for i := range v.Problems {
		p := &v.Problems[i]
		t.add(p.Reason, p.WorkspaceID, p.ThreadID, p.Seq, p.ManifestID, p.Detail)
	}
	a.printTable(t)
	if len(v.Problems) == manifest.MaxProblems {
		a.println("  and maybe more: these are the first")
	}
	a.printf("\n%s looked at\n", manifests(v.Checked))
}

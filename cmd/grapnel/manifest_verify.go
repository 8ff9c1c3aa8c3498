package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/internal/translog"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

type verifyFlags struct {
	filterFlags
	proofFlags

	Text    string `flag:"text"          usage:"a text that some manifest must have the hash of: a {FILE}, or -"`
	Head    string `flag:"head"          usage:"the {HASH} of a manifest that must be there, as kept from an earlier verify"`
	Unkeyed bool   `flag:"allow-unkeyed" usage:"with a key: take threads whose last manifest is from before there was one"`
	KeyFile string `flag:"key-file"      usage:"{FILE} with the key of the hashes (default manifest.chain_key of the configuration)"`
}

func (a *app) manifestVerify(ctx context.Context, f *verifyFlags, _ []string) error {
	key, opts, err := a.verifyOptions(f)
	switch {
	case err != nil:
		return err
	case f.Proof != "":
		return a.verifyProof(&f.proofFlags, key)
	case f.Checkpoint != "" && f.filterFlags != (filterFlags{}):
		return usagef("--checkpoint is about the log as a whole: give it without --workspace and --thread")
	}
	since, err := a.since(&f.proofFlags)
	if err != nil {
		return err
	}
	return a.withStore(ctx, store.Options{ReadOnly: true, Key: key}, func(s *openedStore) error {
		return a.verifyLog(ctx, s, f, opts, since)
	})
}

func (a *app) verifyOptions(f *verifyFlags) (key []byte, o manifest.VerifyOptions, err error) {
	if f.Head != "" && !api.IsHead(f.Head) {
		return nil, o, usagef("--head %q: give a whole hash, as verify prints it: sha256: and 64 digits", f.Head)
	}
	o.Head, o.AllowUnkeyed = f.Head, f.Unkeyed
	if f.Text == "-" && f.KeyFile == "-" {
		return nil, o, usagef("--text and --key-file cannot both be read from standard input")
	}
	data, err := a.readInput("text", f.Text)
	if err != nil {
		return nil, o, err
	}
	if f.Text != "" {
		// Whatever wrote the file added the newline: no prompt and no section ends with one.
		o.Texts = []string{strings.TrimRight(string(data), "\r\n")}
	}
	if data, err = a.readSecret("key-file", f.KeyFile); err != nil {
		return nil, o, err
	}
	if f.KeyFile == "" {
		return nil, o, nil
	}
	if key = []byte(strings.TrimRight(string(data), "\r\n")); len(key) == 0 {
		return nil, o, usagef("--key-file %s: the key is empty", f.KeyFile)
	}
	return key, o, nil
}

// verifyLog reports a log known to be broken as broken even if other parts could not be checked.
func (a *app) verifyLog(ctx context.Context, s *openedStore, f *verifyFlags, o manifest.VerifyOptions, since store.Since) error {
	var heads []manifest.Index // the newest manifest of each thread
	place := map[[2]string]int{}
	progress := a.startCount("verifying: %s manifests")
	o.Seen = func(x manifest.Index) {
		thread := [2]string{x.WorkspaceID, x.ThreadID}
		if _, known := place[thread]; !known {
			place[thread], heads = len(heads), append(heads, x)
		}
		heads[place[thread]] = x
		progress.add()
	}
	verdict, err := s.VerifySince(ctx, f.filter(), o, since)
	progress.stop()
	unchecked := errors.Is(err, manifest.ErrKeyNeeded)
	if err != nil && !unchecked {
		return err
	}
	if len(verdict.Problems) == 0 && verdict.Checked == 0 && f.filterFlags != (filterFlags{}) {
		return unable(fmt.Errorf("there are no manifests%s to verify; see: grapnel manifest list", api.About(f.filter())))
	}
	verdict.OK = verdict.OK && !unchecked
	if err := a.print(verdict, func() { a.printVerdict(&verdict, heads, o.Head, since.Checkpoint) }); err != nil {
		return err
	}
	switch {
	case len(verdict.Problems) > 0:
		return answerNo()
	case unchecked:
		return unable(fmt.Errorf("%w: --key-file FILE, or manifest.chain_key in the configuration, and manifest.fingerprint_key where texts are checked", err))
	}
	return nil
}

const mostHeads = 20 // bounds the heads that are shown: a log may have thousands of threads

func (a *app) printVerdict(v *manifest.Verdict, threads []manifest.Index, head string, c *translog.Checkpoint) {
	switch {
	case !v.OK && v.FirstBad == nil:
		a.printf("%s looked at; it is unknown whether they are whole\n", manifests(v.Checked))
		return
	case !v.OK:
		a.printProblems(v)
		return
	case v.Checked == 0 && c != nil:
		a.printf("the log continues the checkpoint of %s, and there is nothing to read behind it\n", clean(c.Origin))
		return
	case v.Checked == 0:
		a.println("there are no manifests to verify")
		return
	}
	a.printf("whole: %s of %s, in order and as they were written\n",
		manifests(v.Checked), words.Count(len(threads), "thread", "threads"))
	a.printAnchor(v, threads, head, c)
	a.printHeads(threads)
}

// printAnchor says what proves the end of a whole log.
func (a *app) printAnchor(v *manifest.Verdict, threads []manifest.Index, head string, c *translog.Checkpoint) {
	if c != nil {
		plain := slices.ContainsFunc(threads, func(x manifest.Index) bool { return !strings.HasPrefix(x.Hash, "hmac-") })
		if v.Anchored && plain && head == "" { // nothing else anchors it
			a.printf("anchored: the checkpoint of %s signs all of them, in their order\n", clean(c.Origin))
			return
		}
		a.printf("the log continues the checkpoint of %s, which signs its first %s; what is newer rests on the chains\n", clean(c.Origin), manifests(int(c.Leaves)))
		if !v.Anchored {
			return
		}
	}
	switch {
	case v.Anchored && head != "":
		a.println("anchored: the end of every thread is proven too")
	case v.Anchored:
		a.println("anchored by the key: its holder signed the end of every thread; only a kept head shows whether that was the last one")
	case head != "":
		a.println("the head that you kept is there; what was appended behind it rests on plain hashes")
	default:
		a.println("not anchored: nothing proves that the newest manifests are all there is")
	}
}

func manifests(n int) string { return words.Count(n, "manifest", "manifests") }

// printHeads prints the end of each thread. Keep it where those who can change the log cannot change it.
func (a *app) printHeads(list []manifest.Index) {
	shown := list[:min(len(list), mostHeads)]
	printList(a, "heads", "workspace|thread|>seq|hash", shown, func(x *manifest.Index) cells { return cells{x.WorkspaceID, x.ThreadID, x.Seq, x.Hash} })
	if more := len(list) - len(shown); more > 0 {
		a.printf("  and %s more; --thread shows one\n", text.Thousands(more))
	}
	first := &list[0]
	a.printf("\nkeep the hash somewhere else; next time: grapnel manifest verify --thread %s --head %s\n", clean(first.ThreadID), first.Hash)
}

func (a *app) printProblems(v *manifest.Verdict) {
	p := &v.Problems[0]
	which := p.ManifestID
	if which == "" {
		which = "seq " + text.Thousands(int(p.Seq)) //nolint:gosec // counted from 0, one by one
	}
	if p.Bad == (manifest.Bad{Reason: p.Reason}) && p.WorkspaceID+p.ThreadID == "" {
		a.printf("BROKEN: %s, in the log as a whole\n", p.Reason)
	} else {
		a.printf("BROKEN: %s: %s, in the thread %s of the workspace %s\n", p.Reason, clean(which), clean(p.ThreadID), clean(p.WorkspaceID))
	}
	printList(a, "problems", "reason|workspace|thread|>seq|manifest|detail", v.Problems, func(p *manifest.Problem) cells {
		return cells{p.Reason, p.WorkspaceID, p.ThreadID, p.Seq, p.ManifestID, p.Detail}
	})
	if len(v.Problems) == manifest.MaxProblems {
		a.println("  and maybe more: these are the first")
	}
	a.printf("\n%s looked at\n", manifests(v.Checked))
}

type pruneFlags struct {
	Older time.Duration `flag:"older" usage:"take away what is older than the {DURATION}, such as 90d, 36h or 1d12h"`
	Keep  *int          `flag:"keep"  usage:"take away what is not among the newest {N} of its thread"`
}

// retention are the rules of the flags, or those of the configuration.
func (f *pruneFlags) retention(c *config.Retention) (store.Retention, error) {
	r := store.Retention{Age: f.Older}
	switch {
	case f.Keep == nil && f.Older == 0:
		return configured(c)
	case f.Keep == nil:
		return r, nil
	case *f.Keep < 1:
		return r, usagef("--keep %d: give the number of manifests that stay of each thread, 1 or more", *f.Keep)
	}
	r.Count = *f.Keep
	return r, nil
}

func (a *app) manifestPrune(ctx context.Context, f *pruneFlags, _ []string) error {
	return a.withStore(ctx, store.Options{}, func(s *openedStore) error {
		r, err := f.retention(&s.retention)
		if err != nil {
			return err
		}
		return a.prune(ctx, s, r)
	})
}

// configured are the rules of the configuration.
func configured(c *config.Retention) (store.Retention, error) {
	r := store.Retention{Age: time.Duration(c.Older), Count: c.Keep, Workspaces: map[string]store.Retention{}}
	for id, own := range c.Workspaces {
		r.Workspaces[id] = store.Retention{Age: time.Duration(own.Older), Count: own.Keep}
	}
	if r.Age == 0 && r.Count == 0 && len(r.Workspaces) == 0 {
		return r, usagef("prune needs --older DURATION or --keep N, or manifest.retention in the configuration; without a rule nothing goes")
	}
	return r, nil
}

func (a *app) prune(ctx context.Context, s *openedStore, r store.Retention) error {
	done, err := s.Prune(ctx, r, time.Now())
	if err != nil && done == (store.Pruned{}) {
		return err
	}
	printed := a.print(done, func() {
		a.printf("removed %s, %s and %s\n", manifests(done.Manifests), words.Count(done.Texts, "kept text", "kept texts"),
			words.Count(done.States, "state of a plugin", "states of plugins"))
		a.printEntries("removed", done.Entries)
		if done.Held > 0 {
			a.printf("%s kept what is held; see: grapnel manifest hold\n", words.Count(done.Held, "thread", "threads"))
		}
	})
	return cmp.Or(printed, err)
}

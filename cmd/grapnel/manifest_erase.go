package main

import (
	"context"
	"time"

	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/store"
)

// scopeFlags say whose records are meant.
type scopeFlags struct {
	Workspace string `flag:"workspace" usage:"records of the workspace {ID}"`
	Thread    string `flag:"thread"    usage:"records of the thread {ID}"`
	Actor     string `flag:"actor"     usage:"records of turns that were made for the {PERSON}, as records name it: KIND:ID, such as user:ada"`
}

func (f *scopeFlags) scope() store.Scope {
	return store.Scope{WorkspaceID: f.Workspace, ThreadID: f.Thread, Actor: f.Actor}
}

// holdFlags also say who asked, and why.
type holdFlags struct {
	scopeFlags

	By     string `flag:"by"     usage:"{WHO} asked for it"`
	Reason string `flag:"reason" usage:"{WHY}, such as a case number"`
}

func (f *holdFlags) needWhy(command string) error {
	if f.By == "" || f.Reason == "" {
		return usagef("%s needs --by WHO and --reason WHY: the log keeps them", command)
	}
	return nil
}

type eraseFlags struct {
	holdFlags

	Older time.Duration `flag:"older"   usage:"erase texts of records that are older than the {DURATION}, such as 90d, 36h or 1d12h"`
	Dry   bool          `flag:"dry-run" usage:"say what would be erased, and do nothing"`
	Yes   bool          `flag:"yes"     usage:"do not ask"`
}

// erasure is the result of manifest erase.
type erasure struct {
	store.Erased

	// DryRun says that nothing was erased.
	DryRun bool `json:"dry_run"`
}

func (f *eraseFlags) erasing(now time.Time) (store.Erasing, error) {
	e := store.Erasing{Scope: f.scope(), By: f.By, Reason: f.Reason, DryRun: f.Dry}
	switch {
	case f.Older > 0:
		e.Before = now.Add(-f.Older)
	case e.Scope == (store.Scope{}):
		return e, usagef("erase needs --workspace, --thread, --actor or --older: what is to be erased")
	}
	if f.Dry {
		return e, nil
	}
	return e, f.needWhy("erase")
}

func (a *app) manifestErase(ctx context.Context, f *eraseFlags, _ []string) error {
	e, err := f.erasing(time.Now())
	if err != nil {
		return err
	}
	return a.withStore(ctx, store.Options{}, func(s *openedStore) error {
		if !f.Yes && !f.Dry {
			if err := a.confirmErasure(ctx, s, e); err != nil {
				return err
			}
		}
		done, err := s.Erase(ctx, e)
		if err != nil {
			return err
		}
		result := erasure{done, f.Dry}
		return a.print(result, func() { a.printErased(&result) })
	})
}

func (a *app) confirmErasure(ctx context.Context, s *openedStore, e store.Erasing) error {
	e.DryRun = true
	would, err := s.Erase(ctx, e)
	if n := would.Texts + would.Entries; err == nil && n > 0 {
		err = a.confirm("erase", "erased", n, "text", func() { a.printErased(&erasure{would, true}) })
	}
	return err
}

func (a *app) printErased(e *erasure) {
	threads, texts := words.Count(e.Threads, "thread", "threads"), words.Count(e.Texts, "text", "texts")+words.If(e.Threads > 1, " (counted in each thread)")
	switch {
	case e.Records == 0 && e.Entries == 0:
		a.println("nothing to erase: no record of that scope names a kept text of its own")
		return
	case e.DryRun:
		a.printf("to be erased: %s that %s of %s name\n", texts, manifests(e.Records), threads)
		a.printEntries("to be erased", e.Entries)
		return
	}
	a.printEntries("erased", e.Entries)
	a.printf("erased %s that %s of %s name; gone from the database: %d\n", texts, manifests(e.Records), threads, e.Gone)
	if e.Gone < e.Texts {
		a.println("the others are also named by other records, and stay for those")
	}
}

func (a *app) printEntries(what string, n int) {
	if n > 0 {
		a.printf("%s: %s of conversations\n", what, words.Count(n, "entry", "entries"))
	}
}

// holdList is the result of manifest hold.
type holdList struct {
	Holds []store.Hold `json:"holds"`
}

func (a *app) manifestHold(ctx context.Context, f *holdFlags, _ []string) error {
	if f.scopeFlags == (scopeFlags{}) {
		return a.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error { return a.printHolds(ctx, s) })
	}
	if err := f.needWhy("hold"); err != nil {
		return err
	}
	return a.withStore(ctx, store.Options{}, func(s *openedStore) error {
		if err := s.Hold(ctx, store.Hold{Scope: f.scope(), By: f.By, Reason: f.Reason, At: time.Now().UTC()}); err != nil {
			return err
		}
		return a.printHolds(ctx, s)
	})
}

func (a *app) manifestRelease(ctx context.Context, f *scopeFlags, _ []string) error {
	if *f == (scopeFlags{}) {
		return usagef("release needs the --workspace, --thread and --actor of the hold; see: grapnel manifest hold")
	}
	return a.withStore(ctx, store.Options{}, func(s *openedStore) error {
		if err := s.Release(ctx, f.scope()); err != nil {
			return notThere(err)
		}
		return a.printHolds(ctx, s)
	})
}

func (a *app) printHolds(ctx context.Context, s *openedStore) error {
	list, err := s.Holds(ctx)
	if err != nil {
		return err
	}
	return a.print(holdList{list}, func() {
		if len(list) == 0 {
			a.println("nothing is held")
		}
		printList(a, "", "workspace|thread|actor|by|since|reason", list, func(h *store.Hold) cells {
			return cells{h.WorkspaceID, h.ThreadID, h.Actor, h.By, clock(h.At), h.Reason}
		})
	})
}

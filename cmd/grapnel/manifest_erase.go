package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/words"
	"github.com/grapnelhq/grapnel/store"
)

// scopeFlags say whose records are meant, by whom, and why.
type scopeFlags struct {
	store.Scope

	by, reason string
}

func (f *scopeFlags) register(c *cobra.Command, what string) {
	flags := c.Flags()
	flags.StringVar(&f.WorkspaceID, "workspace", "", what+" of the workspace `ID`")
	flags.StringVar(&f.ThreadID, "thread", "", what+" of the thread `ID`")
	flags.StringVar(&f.Actor, "actor", "", what+" of turns that were made for the `PERSON`, as records name it: KIND:ID, such as user:ada")
}

func (f *scopeFlags) registerWhy(c *cobra.Command) {
	c.Flags().StringVar(&f.by, "by", "", "`WHO` asked for it")
	c.Flags().StringVar(&f.reason, "reason", "", "`WHY`, such as a case number")
}

func (f *scopeFlags) needWhy(command string) error {
	if f.by == "" || f.reason == "" {
		return usagef("%s needs --by WHO and --reason WHY: the log keeps them", command)
	}
	return nil
}

type eraseFlags struct {
	scopeFlags

	older    string
	dry, yes bool
}

// erasure is the result of manifest erase.
type erasure struct {
	store.Erased

	// DryRun says that nothing was erased.
	DryRun bool `json:"dry_run"`
}

func (a *app) manifestEraseCommand() *cobra.Command {
	var f eraseFlags
	c := newCommand("erase", "Erase kept texts of a thread, workspace, person or age, with a record of who asked for it", noArgs(),
		func(c *cobra.Command, _ []string) error {
			e, err := f.erasing(time.Now())
			if err != nil {
				return err
			}
			return a.withStore(c.Context(), store.Options{}, func(s *openedStore) error { return a.manifestErase(c.Context(), s, e, f.yes) })
		})
	f.register(c, "erase texts")
	f.registerWhy(c)
	flags := c.Flags()
	flags.StringVar(&f.older, "older", "", "erase texts of records that are older than the `DURATION`, such as 90d, 36h or 1d12h")
	flags.BoolVar(&f.dry, "dry-run", false, "say what would be erased, and do nothing")
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	return c
}

func (f *eraseFlags) erasing(now time.Time) (store.Erasing, error) {
	e := store.Erasing{Scope: f.Scope, By: f.by, Reason: f.reason, DryRun: f.dry}
	if f.older != "" {
		age, err := parseAge(f.older)
		if err != nil || age <= 0 {
			return e, usagef("--older %q: give a time such as 90d, 36h or 1d12h", f.older)
		}
		e.Before = now.Add(-age)
	}
	if e.Scope == (store.Scope{}) && f.older == "" {
		return e, usagef("erase needs --workspace, --thread, --actor or --older: what is to be erased")
	}
	if f.dry {
		return e, nil
	}
	return e, f.needWhy("erase")
}

func (a *app) manifestErase(ctx context.Context, s *openedStore, e store.Erasing, yes bool) error {
	if !yes && !e.DryRun {
		counted := e
		counted.DryRun = true
		would, err := s.Erase(ctx, counted)
		if err != nil {
			return err
		}
		if would.Texts+would.Entries > 0 {
			err = a.confirm("erase", "erased", would.Texts+would.Entries, "text", func() { a.printErased(&erasure{would, true}) })
		}
		if err != nil {
			return err
		}
	}
	done, err := s.Erase(ctx, e)
	if err != nil {
		return err
	}
	result := erasure{done, e.DryRun}
	return a.print(result, func() { a.printErased(&result) })
}

func (a *app) printErased(e *erasure) {
	threads, texts := words.Count(e.Threads, "thread", "threads"), words.Count(e.Texts, "text", "texts")
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

func (a *app) manifestHoldCommand() *cobra.Command {
	var f scopeFlags
	c := newCommand("hold", "Keep records from prune and erase, or list what is held", noArgs(),
		func(c *cobra.Command, _ []string) error {
			if f.Scope == (store.Scope{}) {
				return a.withStore(c.Context(), store.Options{ReadOnly: true}, func(s *openedStore) error { return a.printHolds(c.Context(), s) })
			}
			if err := f.needWhy("hold"); err != nil {
				return err
			}
			return a.withStore(c.Context(), store.Options{}, func(s *openedStore) error {
				if err := s.Hold(c.Context(), store.Hold{Scope: f.Scope, By: f.by, Reason: f.reason, At: time.Now().UTC()}); err != nil {
					return err
				}
				return a.printHolds(c.Context(), s)
			})
		})
	f.register(c, "hold records")
	f.registerWhy(c)
	return c
}

func (a *app) manifestReleaseCommand() *cobra.Command {
	var f scopeFlags
	c := newCommand("release", "End a hold", noArgs(),
		func(c *cobra.Command, _ []string) error {
			if f.Scope == (store.Scope{}) {
				return usagef("release needs the --workspace, --thread and --actor of the hold; see: grapnel manifest hold")
			}
			return a.withStore(c.Context(), store.Options{}, func(s *openedStore) error {
				if err := s.Release(c.Context(), f.Scope); err != nil {
					return notThere(err)
				}
				return a.printHolds(c.Context(), s)
			})
		})
	f.register(c, "the hold")
	return c
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

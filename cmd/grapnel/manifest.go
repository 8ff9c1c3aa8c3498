package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/words"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

type filterFlags struct {
	workspace, thread string
}

func (f *filterFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.workspace, "workspace", "", "only manifests of the workspace `ID` (default all)")
	flags.StringVar(&f.thread, "thread", "", "only manifests of the thread `ID` (default all)")
}

func (f *filterFlags) filter() store.Filter {
	return store.Filter{Workspace: f.workspace, Thread: f.thread}
}

// notThere turns "not found" into the answer "no".
func notThere(err error) error {
	if store.HasCode(err, store.CodeNotFound) {
		return refused(err)
	}
	return storeError(err)
}

func (a *app) completeManifests(most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		words := []string{api.Latest + "\tthe newest"}
		err := a.withStore(c.Context(), store.Options{ReadOnly: true}, func(s *openedStore) error {
			list, err := s.List(c.Context(), store.Filter{Limit: api.ListLimit})
			for i := len(list) - 1; i >= 0; i-- {
				x := &list[i]
				words = append(words, x.ManifestID+"\t"+clock(x.CreatedAt)+" "+clean(x.ThreadID)+" "+clean(x.TurnID))
			}
			return err
		})
		if err != nil && errors.Is(err, context.Canceled) {
			return nil, cobra.ShellCompDirectiveError
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// Newest last: on a terminal the end is what is seen.
func (a *app) manifestListCommand() *cobra.Command {
	var f filterFlags
	var limit int
	c := newCommand("list", "List the newest kept manifests", noArgs(),
		func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit %d: give a number of manifests, or 0 for all", limit)
			}
			return a.withStore(c.Context(), store.Options{ReadOnly: true}, func(s *openedStore) error {
				return a.manifestList(c.Context(), s, &f, limit)
			})
		})
	f.register(c)
	c.Flags().IntVar(&limit, "limit", api.ListLimit, "list the newest `N`; 0 lists all")
	return c
}

func (a *app) manifestList(ctx context.Context, s *openedStore, f *filterFlags, limit int) error {
	filter := f.filter()
	filter.Limit = limit
	list, err := api.List(ctx, s, filter)
	if err != nil {
		return err
	}
	return a.print(list, func() {
		if len(list.Manifests) == 0 {
			a.printf("there are no manifests%s\n", api.About(f.filter()))
		}
		printList(a, "", "manifest|kind|created|workspace|thread|>seq|turn|profile|prompt", list.Manifests, func(x *manifest.Index) cells {
			return cells{x.ManifestID, x.Kind, clock(x.CreatedAt), x.WorkspaceID, x.ThreadID, x.Seq, x.TurnID, x.Profile, x.FingerprintFull}
		})
		a.printOlder(list.Older, "manifest")
	})
}

// printOlder says how many older rows of a list are not shown, if any.
func (a *app) printOlder(n int, one string) {
	if n > 0 {
		a.printf("\n%s not shown; --limit 0 shows all\n", words.Count(n, "older "+one+" is", "older "+one+"s are"))
	}
}

func (a *app) manifestBlameCommand() *cobra.Command {
	var f filterFlags
	var limit int
	c := newCommand("blame --thread ID",
		"Say, turn by turn, what broke the provider's prompt cache, and who did", noArgs(),
		func(c *cobra.Command, _ []string) error {
			switch {
			case f.thread == "":
				return usagef("blame needs a --thread; see: grapnel manifest list")
			case limit < 0:
				return usagef("--limit %d: give a number of prompts, or 0 for all", limit)
			}
			filter := f.filter()
			filter.Limit = limit
			return a.withStore(c.Context(), store.Options{ReadOnly: true}, func(s *openedStore) error {
				progress := a.startCount("reading: %s manifests")
				blame, err := api.BlameOf(s.Entries(c.Context(), filter), limit, progress.add)
				progress.stop()
				if err != nil {
					return storeError(err)
				}
				if len(blame.Turns) == 0 {
					return refused(fmt.Errorf("there are no prompts%s; see: grapnel manifest list", api.About(f.filter())))
				}
				return a.printBlame(&blame, &f)
			})
		})
	f.register(c)
	c.Flags().IntVar(&limit, "limit", api.BlameLimit, "judge the newest `N` prompts; 0 judges all")
	return c
}

const notKnownBreak = "not known here: the agent compiles the request"

func (a *app) printBlame(blame *api.Blame, f *filterFlags) error {
	if a.json {
		return a.printJSON(blame)
	}
	rows := blame.Turns
	several := f.workspace == "" && slices.ContainsFunc(rows, func(r manifest.BlamedTurn) bool { return r.WorkspaceID != rows[0].WorkspaceID })
	columns := "?workspace|>seq|turn|manifest|broke at|owner|>tokens lost|why"
	printList(a, "turns of the thread "+clean(f.thread), columns, rows, func(r *manifest.BlamedTurn) cells {
		return cells{
			words.If(several, r.WorkspaceID), r.Seq, r.TurnID, r.ManifestID, r.Place(), r.Owner,
			words.If(r.Cause != "", text.Thousands(r.TokensLost)), words.If(r.OfAgent, notKnownBreak) + r.Words() + words.If(!r.OfAgent && r.Expected && r.Cause != manifest.CauseEpoch, ", after a compaction"),
		}
	})
	a.printCulprits(rows)
	if blame.Older {
		a.println("\nolder prompts are not shown; --limit 0 shows all")
	}
	return nil
}

// printCulprits prints what broke the prefix, the most expensive first, not counting expected breaks.
func (a *app) printCulprits(rows []manifest.BlamedTurn) {
	type culprit struct {
		place, owner  string
		cause         manifest.Cause
		turns, tokens int
	}
	var list []culprit
	for i := range rows {
		r := &rows[i]
		if !r.Broke() {
			continue
		}
		at := slices.IndexFunc(list, func(c culprit) bool { return c.place == r.Place() && c.owner == r.Owner && c.cause == r.Cause })
		if at < 0 {
			at, list = len(list), append(list, culprit{place: r.Place(), owner: r.Owner, cause: r.Cause})
		}
		list[at].turns++
		list[at].tokens += r.TokensLost
	}
	if len(list) == 0 && !rows[len(rows)-1].OfAgent {
		a.println("\nno turn broke the prefix")
	}
	slices.SortStableFunc(list, func(x, y culprit) int {
		return cmp.Or(cmp.Compare(y.tokens, x.tokens), cmp.Compare(y.turns, x.turns))
	})
	printList(a, "what broke the prefix", "broke at|cause|owner|>turns|>tokens lost", list, func(c *culprit) cells {
		return cells{c.place, c.cause, c.owner, c.turns, text.Thousands(c.tokens)}
	})
}

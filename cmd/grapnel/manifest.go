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
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/internal/translog"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// manifestCommands are those on the audit log.
func (a *app) manifestCommands() *cobra.Command {
	return group("manifest", "The audit log: look at kept manifests, compare and verify them",
		command[api.ManifestList](a, "list", "List the newest kept manifests", noArgs(), reading(a, a.manifestList)),
		completing(command[noResult](a, "show ID|latest", "Show a kept manifest, or its prompt", exactlyOne("show needs one ID, or the word latest"), reading(a, a.manifestShow)), a.completeManifests(1)),
		command[store.SearchResult](a, "find [SENTENCE]", "Find the kept manifests whose prompt holds a sentence, or has a section, a plugin, a tool, …", cobra.MaximumNArgs(1), a.manifestFind),
		command[manifest.Stats](a, "stats", "Add up tokens, cuts, failures and cache hits by plugin, section and day", noArgs(), reading(a, a.manifestStats)),
		command[auditList](a, "audits", "List the audit events that plugins brought", noArgs(), reading(a, a.manifestAudits)),
		command[callList](a, "calls", "List what was decided: tool calls, verdicts and rewrites, and by whom", noArgs(), reading(a, a.manifestCalls)),
		completing(command[manifest.Difference](a, "diff A B", "Compare two manifests, and the texts of their prompts where they were kept", nil, a.manifestDiff), a.completeManifests(2)),
		command[api.Blame](a, "blame --thread ID", "Say, turn by turn, what broke the provider's prompt cache, and who did", noArgs(), a.manifestBlame),
		command[manifest.Verdict](a, "verify", "Check that the log is whole: schema, order, hashes, texts", noArgs(), a.manifestVerify),
		command[checkpointResult](a, "checkpoint --key-file FILE", "Sign what the log is now: how many records it has, and the hash over all of them", noArgs(), a.manifestCheckpoint),
		completing(command[manifestProof](a, "prove ID|latest", "Print a proof that a record is in the log, for those who have neither the log nor its key",
			exactlyOne("prove needs one ID, or the word latest"), reading(a, a.manifestProve)), a.completeManifests(1)),
		command[translog.Checkpoint](a, "witness REQUEST", "Sign a checkpoint of a log that continues the one that was signed last",
			exactlyOne("witness needs one REQUEST: the file that \"manifest checkpoint --since\" printed, or -"), a.manifestWitness),
		command[logKey](a, "key NAME --out FILE", "Make a key that signs checkpoints of a log, or those that a witness has seen",
			exactlyOne("key needs one NAME, such as example.com/prompts"), a.manifestKey),
		command[noResult](a, "export", "Write the kept manifests to standard output, as JSON lines or in a format of other tools", noArgs(), a.manifestExport),
		command[store.Pruned](a, "prune", "Take old manifests out of the log, so that what stays can be verified", noArgs(), a.manifestPrune),
		command[erasure](a, "erase", "Erase kept texts of a thread, workspace, person or age, with a record of who asked for it", noArgs(), a.manifestErase),
		command[holdList](a, "hold", "Keep records from prune and erase, or list what is held", noArgs(), a.manifestHold),
		command[holdList](a, "release", "End a hold", noArgs(), a.manifestRelease),
	)
}

// reading makes work on the store that is only read, so that looking at a log never changes it.
func reading[F any](a *app, work func(context.Context, *openedStore, *F, []string) error) func(context.Context, *F, []string) error {
	return func(ctx context.Context, f *F, args []string) error {
		return a.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error { return work(ctx, s, f, args) })
	}
}

type filterFlags struct {
	Workspace string `flag:"workspace" usage:"only manifests of the workspace {ID} (default all)"`
	Thread    string `flag:"thread"    usage:"only manifests of the thread {ID} (default all)"`
}

func (f *filterFlags) filter() store.Filter {
	return store.Filter{Workspace: f.Workspace, Thread: f.Thread}
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

type listFlags struct {
	filterFlags

	Limit int `default:"50" flag:"limit" usage:"list the newest {N}; 0 lists all"`
}

// manifestList lists the newest last: on a terminal the end is what is seen.
func (a *app) manifestList(ctx context.Context, s *openedStore, f *listFlags, _ []string) error {
	filter := f.filter()
	filter.Limit = f.Limit
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

type blameFlags struct {
	filterFlags

	Limit int `default:"100" flag:"limit" usage:"judge the newest {N} prompts; 0 judges all"`
}

func (a *app) manifestBlame(ctx context.Context, f *blameFlags, _ []string) error {
	if f.Thread == "" {
		return usagef("blame needs a --thread; see: grapnel manifest list")
	}
	filter := f.filter()
	filter.Limit = f.Limit
	return a.withStore(ctx, store.Options{ReadOnly: true}, func(s *openedStore) error {
		progress := a.startCount("reading: %s manifests")
		blame, err := api.BlameOf(s.Entries(ctx, filter), f.Limit, progress.add)
		progress.stop()
		switch {
		case err != nil:
			return storeError(err)
		case len(blame.Turns) == 0:
			return refused(fmt.Errorf("there are no prompts%s; see: grapnel manifest list", api.About(f.filter())))
		}
		return a.print(blame, func() { a.printBlame(&blame, &f.filterFlags) })
	})
}

const notKnownBreak = "not known here: the agent compiles the request"

func (a *app) printBlame(blame *api.Blame, f *filterFlags) {
	rows := blame.Turns
	several := f.Workspace == "" && slices.ContainsFunc(rows, func(r manifest.BlamedTurn) bool { return r.WorkspaceID != rows[0].WorkspaceID })
	columns := "?workspace|>seq|turn|manifest|broke at|owner|>tokens lost|why"
	printList(a, "turns of the thread "+clean(f.Thread), columns, rows, func(r *manifest.BlamedTurn) cells {
		return cells{
			words.If(several, r.WorkspaceID), r.Seq, r.TurnID, r.ManifestID, r.Place(), r.Owner,
			words.If(r.Cause != "", text.Thousands(r.TokensLost)), words.If(r.OfAgent, notKnownBreak) + r.Words() + words.If(!r.OfAgent && r.Expected && r.Cause != manifest.CauseEpoch, ", after a compaction"),
		}
	})
	a.printCulprits(rows)
	if blame.Older {
		a.println("\nolder prompts are not shown; --limit 0 shows all")
	}
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

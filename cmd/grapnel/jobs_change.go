package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/store/jobqueue"
)

// jobsChanged is the JSON of jobs retry and jobs remove.
type jobsChanged struct {
	Store  string   `json:"store"   jsonschema:"where the jobs are, without user and password"`
	DryRun bool     `json:"dry_run"`
	Jobs   []jobRow `json:"jobs"    jsonschema:"the dead jobs that were meant, as they were"`
	IDs    []int64  `json:"ids"     jsonschema:"those that were changed; another program may have been faster with the rest"`
}

// changeFlags say which dead jobs are meant.
type changeFlags struct {
	ids      []int64
	plugin   string
	all      bool
	yes, dry bool
}

// register adds the flags that retry and remove share.
func (f *changeFlags) register(c *cobra.Command, verb string) {
	flags := c.Flags()
	flags.BoolVar(&f.all, "all", false, verb+" all dead jobs")
	flags.StringVar(&f.plugin, "plugin", "", verb+" all dead jobs of the plugin `NAME`")
	flags.BoolVar(&f.dry, "dry-run", false, "show which jobs are meant, and change nothing")
}

// check refuses what says too little, or two things.
func (f *changeFlags) check(args []string, verb string) (err error) {
	if (len(args) > 0) == (f.all || f.plugin != "") {
		return usagef("say what to %s: an ID (see: grapnel jobs dead), --plugin NAME, or --all", verb)
	}
	f.ids, err = jobIDs(args)
	slices.Sort(f.ids)
	f.ids = slices.Compact(f.ids)
	return err
}

// jobsRetryCommand offers dead jobs again.
func (a *app) jobsRetryCommand() *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use:   "retry ID... | retry --plugin NAME | retry --all",
		Short: "Offer dead jobs again, at once and with all their attempts",
		Long: "Retry puts jobs that were given up back into the queue, where a gateway of the store takes\n" +
			"them. One that was interrupted may have been done: look at what it does before you say\n" +
			"that it may be done again. The queue's bounds do not hold for them.\n\n" +
			"Exit code 1: there is no dead job with one of the IDs; then none is retried.",
		Example: "  grapnel jobs retry 17 18\n" +
			"  grapnel jobs retry --plugin memory --dry-run",
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(args, "retry"); err != nil {
				return err
			}
			return a.jobsChange(c.Context(), &f, retryVerb())
		},
	}
	f.register(c, "retry")
	return c
}

// jobsRemoveCommand removes dead jobs for good.
func (a *app) jobsRemoveCommand() *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use:   "remove ID... | remove --plugin NAME | remove --all",
		Short: "Remove dead jobs for good",
		Long: "Remove takes jobs that were given up out of the store, with what they were to work on, and\n" +
			"with the memory of their idempotency keys. It shows what goes and asks first; without a\n" +
			"terminal it needs --yes.\n\n" +
			"Exit code 1: there is no dead job with one of the IDs (then none is removed), or the answer\n" +
			"was no.",
		Example: "  grapnel jobs remove 17\n" +
			"  grapnel jobs remove --all --yes",
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(args, "remove"); err != nil {
				return err
			}
			return a.jobsChange(c.Context(), &f, removeVerb())
		},
	}
	f.register(c, "remove")
	c.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	return c
}

// jobsVerb is what a command does to dead jobs.
type jobsVerb struct {
	past, conditional string
	// asks says that it cannot be taken back.
	asks bool
	do   func(r *jobqueue.Records, ctx context.Context, ids ...int64) ([]int64, error)
}

func retryVerb() jobsVerb {
	return jobsVerb{past: "put back into the queue", conditional: "would put back into the queue", do: (*jobqueue.Records).Retry}
}

func removeVerb() jobsVerb {
	return jobsVerb{past: "removed", conditional: "would remove", asks: true, do: (*jobqueue.Records).Remove}
}

// jobsChange finds what is meant, asks if it has to, and only then begins: nothing is
// open while a person thinks, and looking changes nothing.
func (a *app) jobsChange(ctx context.Context, f *changeFlags, verb jobsVerb) error {
	result := jobsChanged{DryRun: f.dry, Jobs: []jobRow{}, IDs: []int64{}}
	err := a.withJobs(ctx, store.Options{ReadOnly: true}, func(r *jobqueue.Records, name string) (err error) {
		result.Store = name
		result.Jobs, err = f.find(ctx, r)
		return err
	})
	if err != nil {
		return err
	}
	if len(result.Jobs) > 0 && !f.dry {
		if err := a.jobsAgreed(f, verb, result.Jobs); err != nil {
			return err
		}
		err = a.withJobs(ctx, store.Options{}, func(r *jobqueue.Records, _ string) error {
			for part := range slices.Chunk(result.Jobs, jobsPage) {
				ids := make([]int64, len(part))
				for i := range part {
					ids[i] = part[i].ID
				}
				done, err := verb.do(r, ctx, ids...)
				if err != nil {
					return err
				}
				result.IDs = append(result.IDs, done...)
			}
			return nil
		})
	}
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(result)
	}
	a.printChanged(&result, verb)
	return nil
}

// find has the dead jobs that are meant.
func (f *changeFlags) find(ctx context.Context, r *jobqueue.Records) ([]jobRow, error) {
	if len(f.ids) == 0 {
		rows, _, err := jobRows(ctx, r, jobqueue.Filter{Dead: true, Plugin: f.plugin}, 0)
		return rows, err
	}
	var rows []jobRow
	for _, id := range f.ids {
		row, err := r.Job(ctx, id)
		if err != nil {
			return nil, notThere(err)
		}
		if row.State != jobqueue.StateDead {
			return nil, refused(fmt.Errorf("the job %d is not dead but %s", id, row.State))
		}
		rows = append(rows, rowOfJob(&row))
	}
	return rows, nil
}

// jobsAgreed shows what goes, and asks whether it is to go.
func (a *app) jobsAgreed(f *changeFlags, verb jobsVerb, rows []jobRow) error {
	if !verb.asks || f.yes {
		return nil
	}
	return a.confirm(doing{"remove", "removed"}, len(rows), jobsText(len(rows)), func() {
		a.printJobs("to be removed", rows[:min(len(rows), jobsPage)], time.Now())
		if more := len(rows) - jobsPage; more > 0 {
			a.printf("  and %d more\n", more)
		}
	})
}

// printChanged says what was done.
func (a *app) printChanged(r *jobsChanged, verb jobsVerb) {
	switch {
	case len(r.Jobs) == 0:
		a.println("no job is dead that was meant, in " + clean(r.Store))
		return
	case r.DryRun:
		a.printf("%s %s\n", verb.conditional, jobsText(len(r.Jobs)))
	default:
		a.printf("%s %s\n", verb.past, jobsText(len(r.IDs)))
	}
	a.printJobs("", r.Jobs[:min(len(r.Jobs), jobsPage)], time.Now())
}

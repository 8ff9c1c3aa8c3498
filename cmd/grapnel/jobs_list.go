package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/store/jobqueue"
)

// jobsPage is how many jobs a list shows unless it is told otherwise.
const jobsPage = 50

// jobsList is the JSON of jobs list and jobs dead.
type jobsList struct {
	Store  string              `json:"store"  jsonschema:"where the jobs are, without user and password"`
	Counts runtime.QueueCounts `json:"counts" jsonschema:"of all jobs, whatever was asked for"`
	Jobs   []jobRow            `json:"jobs"`
	Next   int64               `json:"next"   jsonschema:"the --after of what comes behind these; 0 at the end"`
}

// jobsFlags say which jobs are listed.
type jobsFlags struct {
	plugin string
	limit  int
	after  int64
}

func (f *jobsFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.plugin, "plugin", "", "only jobs of the plugin `NAME`")
	flags.IntVar(&f.limit, "limit", jobsPage, "list at most `N`; 0 lists all")
	flags.Int64Var(&f.after, "after", 0, "list what comes behind the job `ID`")
}

// jobsListCommand shows what is to be done.
func (a *app) jobsListCommand() *cobra.Command {
	var f jobsFlags
	c := &cobra.Command{
		Use:   "list",
		Short: "List the background work that waits or runs",
		Long: "List shows the jobs of the store that have not ended, in the order in which they were\n" +
			"queued, those of all gateways that share it. What was given up is in: grapnel jobs dead.\n\n" +
			"Without a store (--store, or store: in the configuration) it is that of grapnel serve.",
		Example: "  grapnel jobs list\n" +
			"  grapnel jobs list --plugin memory --store postgres://me@db/grapnel --json",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.jobsList(c.Context(), &f, false) },
	}
	f.register(c)
	return c
}

// jobsDeadCommand shows what was given up.
func (a *app) jobsDeadCommand() *cobra.Command {
	var f jobsFlags
	c := &cobra.Command{
		Use:   "dead",
		Short: "List the background work that was given up",
		Long: "Dead shows the jobs that failed for good, were refused, or were interrupted: their process\n" +
			"ended in the middle, and they do not say that doing them twice does no harm. They are kept\n" +
			"for 30 days; retry them, or remove them.",
		Example: "  grapnel jobs dead\n" +
			"  grapnel jobs dead --plugin memory --limit 0 --json",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.jobsList(c.Context(), &f, true) },
	}
	f.register(c)
	return c
}

// jobsList prints one row per job.
func (a *app) jobsList(ctx context.Context, f *jobsFlags, dead bool) error {
	if f.limit < 0 || f.after < 0 {
		return usagef("--limit and --after take numbers, not less than 0")
	}
	result := jobsList{Jobs: []jobRow{}}
	err := a.withJobs(ctx, store.Options{ReadOnly: true}, func(r *jobqueue.Records, name string) (err error) {
		result.Store = name
		if result.Counts, err = r.Counts(ctx); err != nil {
			return err
		}
		result.Jobs, result.Next, err = jobRows(ctx, r, jobqueue.Filter{Dead: dead, Plugin: f.plugin, After: f.after}, f.limit)
		return err
	})
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(result)
	}
	a.printJobsList(&result, dead)
	return nil
}

// jobRows has up to a limit of jobs, 0 is all, and where a list goes on.
func jobRows(ctx context.Context, r *jobqueue.Records, f jobqueue.Filter, limit int) (rows []jobRow, next int64, err error) {
	rows = []jobRow{}
	for {
		f.Limit = 500
		if limit > 0 {
			f.Limit = min(f.Limit, limit-len(rows)+1) // one more tells whether there are more
		}
		page, err := r.List(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		for i := range page {
			if limit > 0 && len(rows) == limit {
				return rows, rows[limit-1].ID, nil
			}
			rows = append(rows, rowOfJob(&page[i]))
			f.After = page[i].ID
		}
		if len(page) < f.Limit {
			return rows, 0, nil
		}
	}
}

// printJobsList prints the rows, and how many there are of which kind.
func (a *app) printJobsList(r *jobsList, dead bool) {
	c := &r.Counts
	a.printf("%s: %d waiting, %d running, %d scheduled, %d dead\n", clean(r.Store), c.Waiting, c.Running, c.Scheduled, c.Dead)
	title := "jobs"
	if dead {
		title = "dead jobs"
	}
	a.printJobs(title, r.Jobs, time.Now())
	if r.Next > 0 {
		a.printf("\nthere are more: --limit 0 shows all, --after %d goes on here\n", r.Next)
	}
	if dead && len(r.Jobs) > 0 {
		a.println("\nwhy: grapnel jobs show ID; again: grapnel jobs retry ID; for good: grapnel jobs remove ID")
	}
}

// jobWhole is the JSON of jobs show.
type jobWhole struct {
	jobRow

	Store          string                `json:"store"`
	Error          string                `json:"error"              jsonschema:"what there is to say of the last failure"`
	Why            string                `json:"why"                jsonschema:"why it was put off the last time"`
	Holder         string                `json:"holder"             jsonschema:"the process that works on it, or did last: host, process id, and a word of its own"`
	IdempotencyKey string                `json:"idempotency_key"`
	Payload        json.RawMessage       `json:"payload,omitempty"  jsonschema:"with --payload: the phase's input, or the job's payload"`
	Policies       []phases.PolicyEntry  `json:"policies,omitempty" jsonschema:"with --payload: the turn's policies, as far as it may see them"`
	Contexts       []phases.ContextEntry `json:"contexts,omitempty" jsonschema:"with --payload: the turn's contexts, as far as it may see them"`
}

// jobsShowCommand shows one job.
func (a *app) jobsShowCommand() *cobra.Command {
	var payload bool
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show one job: what it is, how often it was tried, why it failed",
		Long: "Show prints a job that has not ended, or was given up. What it works on may be what users\n" +
			"have written, and is shown with --payload alone. Exit code 1 says that there is none with\n" +
			"that ID.",
		Example: "  grapnel jobs show 17\n" +
			"  grapnel jobs show 17 --payload --json",
		Args: exactlyOne("show needs one ID; see: grapnel jobs list, grapnel jobs dead"),
		RunE: func(c *cobra.Command, args []string) error { return a.jobsShow(c.Context(), args, payload) },
	}
	c.Flags().BoolVar(&payload, "payload", false, "show what it works on, too")
	return c
}

// jobsShow prints one job.
func (a *app) jobsShow(ctx context.Context, args []string, payload bool) error {
	ids, err := jobIDs(args)
	if err != nil {
		return err
	}
	var w jobWhole
	err = a.withJobs(ctx, store.Options{ReadOnly: true}, func(r *jobqueue.Records, name string) error {
		row, err := r.Job(ctx, ids[0])
		if err != nil {
			return notThere(err)
		}
		w = jobWhole{jobRow: rowOfJob(&row), Store: name, Error: row.Error, Why: row.Why, Holder: row.Holder, IdempotencyKey: row.Job.IdempotencyKey}
		if payload {
			w.Payload, w.Policies, w.Contexts = row.Job.Payload, row.Job.Policies, row.Job.Contexts
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(w)
	}
	return a.printJob(&w)
}

// printJob prints a job for people.
func (a *app) printJob(w *jobWhole) error {
	now := time.Now()
	a.printf("%s", rule(fmt.Sprintf("job %d", w.ID)))
	t := newTable("")
	t.add("store", w.Store)
	t.add("state", fmt.Sprintf("%s, %s", w.State, w.when(now)))
	t.add("work", w.work())
	t.add("subscription", w.Subscription)
	t.add("plugin", w.Plugin)
	t.add("turn", fmt.Sprintf("%s of the thread %s in the workspace %s", cell(w.TurnID), cell(w.ThreadID), cell(w.WorkspaceID)))
	t.add("queued", clock(w.AddedAt)+", "+ageText(now.Sub(w.AddedAt))+" ago")
	t.add("tried", fmt.Sprintf("%d %s, put off %d %s since", w.Attempts, plural(w.Attempts, "time", "times"), w.Requeued, plural(w.Requeued, "time", "times")))
	t.add("put off because", w.Why)
	t.add("last failure", w.Code)
	t.add("worked on by", w.Holder)
	t.add("idempotency key", w.IdempotencyKey)
	a.printTable(t)
	if w.Error != "" {
		a.printf("\nwhy it failed\n  %s\n", w.Error)
	}
	for _, part := range []struct {
		title string
		value any
		there bool
	}{{"payload", w.Payload, len(w.Payload) > 0}, {"policies", w.Policies, len(w.Policies) > 0}, {"contexts", w.Contexts, len(w.Contexts) > 0}} {
		if !part.there {
			continue
		}
		data, err := encodeJSON(part.value)
		if err != nil {
			return unable(err)
		}
		a.printf("\n%s\n%s", part.title, string(data))
	}
	return nil
}

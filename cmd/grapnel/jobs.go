package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

func (a *app) withJobs(ctx context.Context, o store.Options, work func(r jobs.Records, name string) error) error {
	return a.withStore(ctx, o, func(s *openedStore) error {
		return work(s.Jobs(), s.ref.name)
	})
}

// jobRow is what the gateway's methods show, too.
type jobRow = gateway.Job

func rowOfJob(r *jobs.Row) jobRow {
	j := &r.Job
	return jobRow{
		ID: r.ID, State: string(r.State), Kind: j.Kind, Phase: j.Phase, Plugin: j.Plugin, Subscription: j.Subscription,
		WorkspaceID: j.Context.WorkspaceID, ThreadID: j.Context.ThreadID, TurnID: j.Context.TurnID,
		Attempts: r.Attempts, Requeued: r.Requeued, Code: r.Code, AddedAt: r.Added, DueAt: r.Due, BegunAt: orNull(r.Begun), EndedAt: orNull(r.Ended),
	}
}

func orNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func jobWork(r *jobRow) string { return cmp.Or(r.Kind, string(r.Phase)) }

func (a *app) printJobs(title string, rows []jobRow, now time.Time) {
	printList(a, title, ">job|state|subscription|work|>tries|last failure|>age|when", rows, func(r *jobRow) cells {
		return cells{r.ID, r.State, r.Subscription, jobWork(r), r.Attempts, r.Code, ageText(now.Sub(r.AddedAt)), jobWhen(r, now)}
	})
}

func jobWhen(r *jobRow, now time.Time) string {
	switch {
	case r.EndedAt != nil:
		return "discarded " + ago(*r.EndedAt, now)
	case r.State == string(jobs.StateScheduled):
		return "in " + ageText(r.DueAt.Sub(now))
	case r.State == string(jobs.StateWaiting):
		return "due for " + ageText(now.Sub(r.DueAt))
	}
	return "now"
}

func ageText(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func jobIDs(args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for i, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id < 1 {
			return nil, usagef("%q is not a job ID, which is a number; see: grapnel jobs list, grapnel jobs dead", arg)
		}
		ids[i] = id
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

func queueText(q *runtime.QueueStatus) string {
	place := "in the store: "
	if !q.Durable {
		place = "in memory, lost at the end: "
	}
	if q.Error != "" {
		return place + q.Error
	}
	waiting := strconv.Itoa(q.Waiting) + " waiting"
	if q.Waiting > 0 {
		waiting += " (the oldest for " + ageText(time.Duration(q.OldestSeconds*float64(time.Second))) + ")"
	}
	s := fmt.Sprintf("%s%s, %d running, %d scheduled", place, waiting, q.Running, q.Scheduled)
	if q.Dead > 0 {
		s += fmt.Sprintf(", %d dead (see: grapnel jobs dead)", q.Dead)
	}
	return s
}

const jobLost = "lost" // the state of a job that an engine without a store abandons when it closes

type lostWork struct{ n atomic.Int64 }

func countLost(o *runtime.Options) *lostWork {
	l, others := &lostWork{}, o.OnEvent
	if o.Queue != nil {
		return l
	}
	o.OnEvent = func(ev runtime.Event) {
		if ev.Kind == runtime.EventJob && (ev.State == jobLost || ev.Code == string(phases.CauseInterrupted)) {
			l.n.Add(1)
		}
		if others != nil {
			others(ev)
		}
	}
	return l
}

func (l *lostWork) report(w io.Writer) {
	if n := int(l.n.Load()); n > 0 {
		reportf(w, "grapnel: %s in the background %s not finished within %s, and %s lost\n",
			fmt.Sprintf("%d %s", n, words.Plural(n, "piece of work", "pieces of work")), words.Plural(n, "was", "were"), closeTime, words.Plural(n, "is", "are"))
	}
}

func (a *app) jobsCommands() *cobra.Command {
	return group("jobs", "Background work in the store: look at it, retry or remove what was discarded",
		command[jobsList](a, "list", "List the background work that waits or runs", noArgs(), func(ctx context.Context, f *jobsFlags, _ []string) error {
			return a.jobsList(ctx, f, false)
		}),
		command[jobsList](a, "dead", "List the background work that was discarded", noArgs(), func(ctx context.Context, f *jobsFlags, _ []string) error {
			return a.jobsList(ctx, f, true)
		}),
		command[jobWhole](a, "show ID", "Show one job: what it is, how often it was tried, why it failed",
			exactlyOne("show needs one ID; see: grapnel jobs list, grapnel jobs dead"), a.jobsShow),
		command[jobsChanged](a, "retry ID... | retry --plugin NAME | retry --all", "Offer dead jobs again, at once and with all their attempts", nil,
			func(ctx context.Context, f *deadFlags, args []string) error {
				return a.changeJobs(ctx, &jobsChange{deadFlags: *f, verb: "retry", past: "put back into the queue", do: jobs.Records.Retry, yes: true}, args)
			}),
		command[jobsChanged](a, "remove ID... | remove --plugin NAME | remove --all", "Remove dead jobs for good", nil,
			func(ctx context.Context, f *removeFlags, args []string) error {
				return a.changeJobs(ctx, &jobsChange{deadFlags: f.deadFlags, verb: "remove", past: "removed", do: jobs.Records.Remove, yes: f.Yes}, args)
			}))
}

const jobsPage = 50

type jobsList struct {
	Store  string      `json:"store"  jsonschema:"where the jobs are, without user and password"`
	Counts jobs.Counts `json:"counts" jsonschema:"of all jobs, whatever was asked for"`
	Jobs   []jobRow    `json:"jobs"`
	Next   int64       `json:"next"   jsonschema:"the --after of what comes behind these; 0 at the end"`
}

type jobsFlags struct {
	Plugin string `flag:"plugin" usage:"only jobs of the plugin {NAME}"`
	Limit  int    `default:"50"  flag:"limit"                                usage:"list at most {N}; 0 lists all"`
	After  int64  `flag:"after"  usage:"list what comes behind the job {ID}"`
}

func (a *app) jobsList(ctx context.Context, f *jobsFlags, dead bool) error {
	result := jobsList{Jobs: []jobRow{}}
	err := a.withJobs(ctx, store.Options{ReadOnly: true}, func(r jobs.Records, name string) (err error) {
		result.Store = name
		if result.Counts, err = r.Counts(ctx); err != nil {
			return err
		}
		result.Jobs, result.Next, err = jobRows(ctx, r, jobs.Filter{Dead: dead, Plugin: f.Plugin, After: f.After}, "", f.Limit)
		return err
	})
	if err != nil {
		return err
	}
	return a.print(result, func() {
		c := &result.Counts
		a.printf("%s: %d waiting, %d running, %d scheduled, %d dead\n", clean(result.Store), c.Waiting, c.Running, c.Scheduled, c.Dead)
		a.printJobs(words.If(dead, "dead ")+"jobs", result.Jobs, time.Now())
		if result.Next > 0 {
			a.printf("\nthere are more: --limit 0 shows all, --after %d goes on here\n", result.Next)
		}
		if dead && len(result.Jobs) > 0 {
			a.println("\nwhy: grapnel jobs show ID; again: grapnel jobs retry ID; for good: grapnel jobs remove ID")
		}
	})
}

// jobRows returns the first jobs, of one state if it is not empty, and the id after which there are more; 0 at the end.
func jobRows(ctx context.Context, r jobs.Records, f jobs.Filter, state string, limit int) (rows []jobRow, next int64, err error) {
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
			if job := rowOfJob(&page[i]); state == "" || job.State == state {
				rows = append(rows, job)
			}
			f.After = page[i].ID
		}
		if len(page) < f.Limit {
			return rows, 0, nil
		}
	}
}

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

type jobFlags struct {
	Payload bool `flag:"payload" usage:"show what it works on, too"`
}

func (a *app) jobsShow(ctx context.Context, f *jobFlags, args []string) error {
	ids, err := jobIDs(args)
	if err != nil {
		return err
	}
	return a.withJobs(ctx, store.Options{ReadOnly: true}, func(r jobs.Records, name string) error {
		row, err := r.Job(ctx, ids[0])
		if err != nil {
			return notThere(err)
		}
		w := jobWhole{jobRow: rowOfJob(&row), Store: name, Error: row.Error, Why: row.Why, Holder: row.Holder, IdempotencyKey: row.Job.IdempotencyKey}
		if f.Payload {
			w.Payload, w.Policies, w.Contexts = row.Job.Payload, row.Job.Policies, row.Job.Contexts
		}
		return a.print(w, func() { a.printJob(&w) })
	})
}

func (a *app) printJob(w *jobWhole) {
	now := time.Now()
	a.printf("%s", rule(fmt.Sprintf("job %d", w.ID)))
	a.printFields("store", w.Store, "state", fmt.Sprintf("%s, %s", w.State, jobWhen(&w.jobRow, now)), "work", jobWork(&w.jobRow),
		"subscription", w.Subscription, "plugin", w.Plugin,
		"turn", fmt.Sprintf("%s of the thread %s in the workspace %s", cell(w.TurnID), cell(w.ThreadID), cell(w.WorkspaceID)),
		"queued", clock(w.AddedAt)+", "+ago(w.AddedAt, now),
		"tried", fmt.Sprintf("%s, put off %s since", words.Count(w.Attempts, "time", "times"), words.Count(w.Requeued, "time", "times")),
		"put off because", w.Why, "last failure", w.Code, "worked on by", w.Holder, "idempotency key", w.IdempotencyKey)
	if w.Error != "" {
		a.printf("\nwhy it failed\n  %s\n", w.Error)
	}
	a.printPart("payload", w.Payload, len(w.Payload))
	a.printPart("policies", w.Policies, len(w.Policies))
	a.printPart("contexts", w.Contexts, len(w.Contexts))
}

func (a *app) printPart(title string, value any, size int) {
	if data, err := encodeJSON(value); err == nil && size > 0 {
		a.printf("\n%s\n%s", title, data)
	}
}

type jobsChanged struct {
	Store  string   `json:"store"   jsonschema:"where the jobs are, without user and password"`
	DryRun bool     `json:"dry_run"`
	Jobs   []jobRow `json:"jobs"    jsonschema:"the dead jobs that were meant, as they were"`
	IDs    []int64  `json:"ids"     jsonschema:"those that were changed; another program may have been faster with the rest"`
}

// deadFlags choose dead jobs.
type deadFlags struct {
	All    bool   `flag:"all"     usage:"all dead jobs"`
	Plugin string `flag:"plugin"  usage:"all dead jobs of the plugin {NAME}"`
	Dry    bool   `flag:"dry-run" usage:"show which jobs are meant, and change nothing"`
}

// removeFlags: removing cannot be undone.
type removeFlags struct {
	deadFlags

	Yes bool `flag:"yes" usage:"do not ask"`
}

// jobsChange is a change of dead jobs.
type jobsChange struct {
	deadFlags

	verb, past string
	do         func(r jobs.Records, ctx context.Context, ids ...int64) ([]int64, error)
	yes        bool
	ids        []int64 // without any the jobs are those of the plugin, or all
}

// changeJobs finds the jobs, asks if it has to, and only then opens the store for writing.
func (a *app) changeJobs(ctx context.Context, f *jobsChange, args []string) (err error) {
	if (len(args) > 0) == (f.All || f.Plugin != "") {
		return usagef("say what to %s: an ID (see: grapnel jobs dead), --plugin NAME, or --all", f.verb)
	}
	if f.ids, err = jobIDs(args); err != nil {
		return err
	}
	result := jobsChanged{DryRun: f.Dry, Jobs: []jobRow{}, IDs: []int64{}}
	err = a.withJobs(ctx, store.Options{ReadOnly: true}, func(r jobs.Records, name string) (err error) {
		result.Store = name
		result.Jobs, err = f.find(ctx, r)
		return err
	})
	dead := result.Jobs
	if err == nil && len(dead) > 0 && !f.Dry && !f.yes {
		err = a.confirm("remove", "removed", len(dead), words.Count(len(dead), "job", "jobs"), func() {
			a.printJobs("to be removed", dead[:min(len(dead), jobsPage)], time.Now())
			a.printMore(len(dead) - jobsPage)
		})
	}
	if err == nil && len(dead) > 0 && !f.Dry {
		err = a.withJobs(ctx, store.Options{}, func(r jobs.Records, _ string) error {
			for part := range slices.Chunk(dead, jobsPage) {
				ids := make([]int64, len(part))
				for i := range part {
					ids[i] = part[i].ID
				}
				done, err := f.do(r, ctx, ids...)
				if err != nil {
					return err
				}
				result.IDs = append(result.IDs, done...)
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	return a.print(result, func() {
		switch {
		case len(dead) == 0:
			a.println("no job is dead that was meant, in " + clean(result.Store))
		case f.Dry:
			a.printf("would be %s: %s\n", f.past, words.Count(len(dead), "job", "jobs"))
		default:
			a.printf("%s %s\n", f.past, words.Count(len(result.IDs), "job", "jobs"))
		}
		a.printJobs("", dead[:min(len(dead), jobsPage)], time.Now())
	})
}

func (f *jobsChange) find(ctx context.Context, r jobs.Records) ([]jobRow, error) {
	if len(f.ids) == 0 {
		rows, _, err := jobRows(ctx, r, jobs.Filter{Dead: true, Plugin: f.Plugin}, "", 0)
		return rows, err
	}
	var rows []jobRow
	for _, id := range f.ids {
		row, err := r.Job(ctx, id)
		if err != nil {
			return nil, notThere(err)
		}
		if row.State != jobs.StateDead {
			return nil, refused(fmt.Errorf("the job %d is not dead but %s", id, row.State))
		}
		rows = append(rows, rowOfJob(&row))
	}
	return rows, nil
}

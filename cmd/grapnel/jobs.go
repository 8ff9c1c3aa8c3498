package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/store/jobqueue"
)

// jobsCommand holds what an operator has to do with background work in a store. It
// goes to the database, whether or not a gateway works on it.
func (a *app) jobsCommand() *cobra.Command {
	return group("jobs", "Background work in the store: look at it, retry or remove what was given up",
		a.jobsListCommand(), a.jobsDeadCommand(), a.jobsShowCommand(), a.jobsRetryCommand(), a.jobsRemoveCommand())
}

// withJobs opens the store's records of background work, works on them, and closes
// the store. Without a store of its own name it is the one of serve.
func (a *app) withJobs(ctx context.Context, o store.Options, work func(r *jobqueue.Records, name string) error) (err error) {
	cfg, from, err := a.loadConfig()
	if err != nil {
		return err
	}
	ref := a.storeNamed(cfg, from)
	if ref.dsn == "" {
		dir, err := dataFolder()
		if err != nil {
			return usagef("%w; give --store", err)
		}
		ref = serveStore(dir)
	}
	s, err := openStore(ctx, ref, cfg, o)
	if err != nil {
		return storeError(err)
	}
	defer func() { err = firstOf(err, s.Close()) }()
	r, err := jobqueue.Look(ctx, s.DB(), jobqueue.Options{})
	if err != nil {
		return storeError(err)
	}
	return storeError(work(r, ref.name))
}

// jobRow is a job in JSON, without the texts that may be users'.
type jobRow struct {
	ID           int64          `json:"id"`
	State        jobqueue.State `json:"state"`
	Kind         string         `json:"kind"         jsonschema:"job_kind of a background_job; empty for an observing hook"`
	Phase        phases.Phase   `json:"phase"        jsonschema:"the phase that a hook observes; empty for a background_job"`
	Plugin       string         `json:"plugin"`
	Subscription string         `json:"subscription" jsonschema:"the hook, or the one that asked for the job"`
	WorkspaceID  string         `json:"workspace_id"`
	ThreadID     string         `json:"thread_id"`
	TurnID       string         `json:"turn_id"`
	Attempts     int            `json:"attempts"     jsonschema:"how often it was tried, the attempt that runs included"`
	Requeued     int            `json:"requeued"     jsonschema:"how often it was put off since"`
	Code         phases.Cause   `json:"code"         jsonschema:"why the last attempt failed; interrupted: it ended without a word, and may have been done; empty if none has failed"`
	AddedAt      time.Time      `json:"added_at"`
	DueAt        time.Time      `json:"due_at"       jsonschema:"when it may be tried"`
	BegunAt      *time.Time     `json:"begun_at"     jsonschema:"when the last attempt began, or its lease was renewed; null is never"`
	EndedAt      *time.Time     `json:"ended_at"     jsonschema:"when it was given up; null is not yet"`
}

func rowOfJob(r *jobqueue.Row) jobRow {
	j := &r.Job
	return jobRow{
		ID: r.ID, State: r.State, Kind: j.Kind, Phase: j.Phase, Plugin: j.Plugin, Subscription: j.Subscription,
		WorkspaceID: j.Context.WorkspaceID, ThreadID: j.Context.ThreadID, TurnID: j.Context.TurnID,
		Attempts: r.Attempts, Requeued: r.Requeued, Code: r.Code, AddedAt: r.Added, DueAt: r.Due, BegunAt: orNull(r.Begun), EndedAt: orNull(r.Ended),
	}
}

// orNull is a time, or nil for none.
func orNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// work is what is to be done, in a word.
func (r *jobRow) work() string {
	if r.Kind == "" {
		return string(r.Phase)
	}
	return r.Kind
}

// printJobs prints a row for each job. now is what ages are counted to.
func (a *app) printJobs(title string, rows []jobRow, now time.Time) {
	t := newTable(title, ">job", "state", "subscription", "work", ">tries", "last failure", ">age", "when")
	for i := range rows {
		r := &rows[i]
		t.add(r.ID, r.State, r.Subscription, r.work(), r.Attempts, r.Code, ageText(now.Sub(r.AddedAt)), r.when(now))
	}
	a.printTable(t)
}

// when is what its state makes one want to know.
func (r *jobRow) when(now time.Time) string {
	switch {
	case r.EndedAt != nil:
		return "given up " + ageText(now.Sub(*r.EndedAt)) + " ago"
	case r.State == jobqueue.StateScheduled:
		return "in " + ageText(r.DueAt.Sub(now))
	case r.State == jobqueue.StateWaiting:
		return "due for " + ageText(now.Sub(r.DueAt))
	}
	return "now"
}

// ageText is a time as exact as is of use.
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

// jobIDs reads the arguments of a command.
func jobIDs(args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for i, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id < 1 {
			return nil, usagef("%q is no ID of a job: those are numbers; see: grapnel jobs list, grapnel jobs dead", arg)
		}
		ids[i] = id
	}
	return ids, nil
}

// jobsText is a number of jobs in words.
func jobsText(n int) string { return fmt.Sprintf("%d %s", n, plural(n, "job", "jobs")) }

// queueText is how a gateway's background work stands, in a line.
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

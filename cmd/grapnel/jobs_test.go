package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/grapnelhq/grapnel/jobs"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/store/jobqueue"
)

// TestJobsRemoveAsks: what cannot be taken back is shown and asked for, unless it is
// said that it need not be.
func TestJobsRemoveAsks(t *testing.T) {
	t.Parallel()

	asked{
		place:    func(t *testing.T) string { t.Helper(); return deadJobs(t, 2) },
		left:     func(t *testing.T, dsn string) int { t.Helper(); return countJobs(t, dsn).Dead },
		args:     func(dsn string) []string { return []string{"jobs", "remove", "--all", "--store", dsn} },
		question: "Remove 2 jobs for good? [y/N]", shows: "to be removed (2)", title: "to be removed (2)", refusal: "nothing was removed",
	}.run(t)
}

// errEnough ends the service of deadJobs.
var errEnough = errors.New("that will do")

// deadJobs makes a store with so many dead jobs, and one that waits.
func deadJobs(t *testing.T, n int) (dsn string) {
	t.Helper()
	dsn = "sqlite:" + filepath.Join(t.TempDir(), "q.db")
	s, err := store.Open(t.Context(), dsn, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	q, err := jobqueue.Open(s.DB(), jobqueue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	for range n {
		if err := q.Add(t.Context(), jobs.Job{Kind: "k", Plugin: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, end := context.WithCancelCause(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- q.Serve(ctx, func(context.Context, jobs.Attempt) jobs.Result {
			return jobs.Result{Action: jobs.Discard, Err: errEnough}
		})
	}()
	if err := q.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	end(errEnough)
	if err := <-served; !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	if err := q.Add(t.Context(), jobs.Job{Kind: "k", Plugin: "p"}); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// countJobs counts what is in a store.
func countJobs(t *testing.T, dsn string) jobs.Counts {
	t.Helper()
	s, err := store.Open(t.Context(), dsn, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	c, err := jobqueue.Look(s.DB()).Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

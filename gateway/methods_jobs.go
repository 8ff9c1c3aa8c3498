package gateway

import (
	"context"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// Jobs is the durable queue of background work, as methods show and change it.
type Jobs interface {
	Counts(ctx context.Context) (runtime.JobCounts, error)
	// List returns jobs in the order in which they were queued, at most limit after the job with the id after: those in a state, or
	// with an empty one all that are not dead.
	List(ctx context.Context, state string, after int64, limit int) ([]Job, error)
	// Retry and Remove work on dead jobs, and return the ids of those that there were.
	Retry(ctx context.Context, ids ...int64) ([]int64, error)
	Remove(ctx context.Context, ids ...int64) ([]int64, error)
}

// Job is a piece of background work, without the texts that may be users'.
type Job struct {
	ID           int64        `json:"id"`
	State        string       `json:"state"        jsonschema:"waiting, scheduled, running or dead"`
	Kind         string       `json:"kind"         jsonschema:"job_kind of a background_job; empty for an observing hook"`
	Phase        phases.Phase `json:"phase"        jsonschema:"the phase that a hook observes; empty for a background_job"`
	Plugin       string       `json:"plugin"`
	Subscription string       `json:"subscription" jsonschema:"the hook, or the one that asked for the job"`
	WorkspaceID  string       `json:"workspace_id"`
	ThreadID     string       `json:"thread_id"`
	TurnID       string       `json:"turn_id"`
	Attempts     int          `json:"attempts"     jsonschema:"how often it was tried, the attempt that runs included"`
	Requeued     int          `json:"requeued"     jsonschema:"how often it was put off since"`
	Code         phases.Cause `json:"code"         jsonschema:"why the last attempt failed; interrupted: it ended without a result, and may have been done; empty if none has failed"`
	AddedAt      time.Time    `json:"added_at"`
	DueAt        time.Time    `json:"due_at"       jsonschema:"when it may be tried"`
	BegunAt      *time.Time   `json:"begun_at"     jsonschema:"when the last attempt began, or its lease was renewed; null is never"`
	EndedAt      *time.Time   `json:"ended_at"     jsonschema:"when it was discarded; null is not yet"`
}

type (
	jobsListParams struct {
		State string `json:"state,omitempty" jsonschema:"waiting, scheduled, running or dead; absent for all that are not dead"`
		After int64  `json:"after,omitempty" jsonschema:"the next of an earlier call"`
		Limit int    `json:"limit,omitempty" jsonschema:"so many: 50 if absent, 1000 at most"`
		Actor string `json:"actor,omitempty"`
	}
	jobsListResult struct {
		Counts runtime.JobCounts `json:"counts" jsonschema:"of all jobs, whatever was asked for"`
		Jobs   []Job             `json:"jobs"`
		Next   int64             `json:"next"   jsonschema:"after for the next page; 0 at the end"`
	}
	jobsParams struct {
		IDs   []int64 `json:"ids"             jsonschema:"dead jobs, 1000 at most"`
		Actor string  `json:"actor,omitempty"`
	}
	jobsResult struct {
		IDs []int64 `json:"ids" jsonschema:"those that there were"`
	}
)

func jobMethods(queue Jobs) []rpc.Method {
	of := quick().unless(queue == nil, "this gateway keeps no background work")
	of.everywhere = true
	return []rpc.Method{
		method(of, "jobs/list", rpc.AdminRight, "Lists background work that is kept in the database, as \"grapnel jobs list\" and \"grapnel jobs dead\" do.",
			func(ctx context.Context, c call[jobsListParams]) (jobsListResult, error) {
				return listJobs(ctx, queue, &c.params)
			}),
		method(of, "jobs/retry", rpc.AdminRight, "Puts dead jobs back into the queue, as \"grapnel jobs retry\" does.",
			func(ctx context.Context, c call[jobsParams]) (jobsResult, error) {
				return changeJobs(ctx, c.params.IDs, queue.Retry)
			}),
		method(of, "jobs/remove", rpc.AdminRight, "Removes dead jobs for good, as \"grapnel jobs remove\" does.",
			func(ctx context.Context, c call[jobsParams]) (jobsResult, error) {
				return changeJobs(ctx, c.params.IDs, queue.Remove)
			}),
	}
}

func listJobs(ctx context.Context, queue Jobs, p *jobsListParams) (result jobsListResult, err error) {
	limit, err := limitOf(p.Limit, api.ListLimit, maxList)
	switch {
	case err != nil:
		return result, err
	case !slices.Contains([]string{"", "waiting", "scheduled", "running", "dead"}, p.State):
		return result, rpc.Errorf(rpc.CodeInvalid, "state: %q is not waiting, scheduled, running or dead", p.State)
	case p.After < 0:
		return result, rpc.Errorf(rpc.CodeInvalid, "after: %d is less than 0", p.After)
	}
	if result.Counts, err = queue.Counts(ctx); err != nil {
		return result, err
	}
	list, err := queue.List(ctx, p.State, p.After, limit+1) // one more tells whether there are more
	if result.Jobs = append([]Job{}, list...); len(list) > limit {
		result.Jobs = list[:limit]
		result.Next = result.Jobs[limit-1].ID
	}
	return result, err
}

func changeJobs(ctx context.Context, ids []int64, change func(context.Context, ...int64) ([]int64, error)) (jobsResult, error) {
	if err := checkCount("ids", len(ids), maxList); err != nil {
		return jobsResult{}, err
	}
	done, err := change(ctx, ids...)
	return jobsResult{IDs: append([]int64{}, done...)}, err
}

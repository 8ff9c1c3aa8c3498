package jobqueue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/jobs"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/store/jobqueue"
)

// An engine gets the queue by its options; here the work is done by hand.
func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// attempt 1 at mail
	// a second one: true
	// waiting 0, dead 1
	// mail: the address does not exist
	// waiting 1, dead 0
}

func example(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	st, err := store.Open(ctx, "sqlite:"+filepath.Join(dir, "grapnel.db"), store.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	q, err := jobqueue.Open(st.DB(), jobqueue.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()

	serving, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, 1)
	go func() {
		ended <- q.Serve(serving, func(_ context.Context, a jobs.Attempt) jobs.Result {
			fmt.Println("attempt", a.Number, "at", a.Job.Kind)
			return jobs.Result{Action: jobs.Discard, Err: errors.New("the address does not exist")}
		})
	}()
	mail := jobs.Job{Kind: "mail", Plugin: "p", IdempotencyKey: "turn-1"}
	if err := q.Add(ctx, mail); err != nil {
		return err
	}
	if err := q.Idle(ctx); err != nil {
		return err
	}
	fmt.Println("a second one:", errors.Is(q.Add(ctx, mail), jobs.ErrDuplicate))
	end()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return err
	}
	return operate(ctx, q)
}

// operate is what an operator does with dead jobs.
func operate(ctx context.Context, q *jobqueue.Queue) error {
	show := func() error {
		c, err := q.Counts(ctx)
		fmt.Printf("waiting %d, dead %d\n", c.Waiting, c.Dead)
		return err
	}
	if err := show(); err != nil {
		return err
	}
	list, err := q.List(ctx, jobqueue.Filter{Dead: true})
	if err != nil {
		return err
	}
	for _, d := range list {
		fmt.Printf("%s: %s\n", d.Job.Kind, d.Error)
		if _, err := q.Retry(ctx, d.ID); err != nil {
			return err
		}
	}
	return show()
}

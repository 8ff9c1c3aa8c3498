package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// withStore calls do with a store in a new directory.
func withStore(do func(ctx context.Context, s *store.Store) error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "grapnel-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := store.Open(ctx, "sqlite:"+filepath.Join(dir, "grapnel.db"), store.Options{})
	if err == nil {
		err = errors.Join(do(ctx, s), s.Close())
	}
	if err != nil {
		fmt.Println(err)
	}
}

func Example() {
	withStore(func(ctx context.Context, s *store.Store) error {
		for n := range 3 {
			if err := s.Append(ctx, sample("workspace", "thread", n), nil); err != nil {
				return err
			}
		}
		list, err := s.List(ctx, store.Filter{Thread: "thread", Limit: 2})
		if err != nil {
			return err
		}
		for _, x := range list {
			fmt.Println(x.Seq, x.TurnID)
		}
		verdict, err := s.Verify(ctx, store.Filter{}, manifest.VerifyOptions{Head: list[1].Hash})
		fmt.Println(verdict.OK, verdict.Anchored, verdict.Checked, err)
		pruned, err := s.Prune(ctx, store.Retention{Count: 1}, epoch())
		fmt.Println(pruned.Manifests, err)
		_, err = s.Get(ctx, sampleID(0))
		fmt.Println(store.HasCode(err, store.CodeNotFound))
		return nil
	})
	// Output:
	// 1 turn-1
	// 2 turn-2
	// true true 3 <nil>
	// 2 <nil>
	// true
}

// What a provider reports stands beside the manifest that it is about.
func ExampleStore_Report() {
	withStore(func(ctx context.Context, s *store.Store) error {
		if err := s.Append(ctx, sample("workspace", "thread", 0), sampleTexts()); err != nil {
			return err
		}
		last, err := s.Last(ctx, "workspace", "thread")
		if err != nil {
			return err
		}
		fmt.Println(s.Report(ctx, manifest.Usage{ManifestID: last.ManifestID, Rounds: 1, ReportedAt: epoch(), Usage: phases.Usage{CacheReadTokens: 900}}))
		reports, err := s.Usage(ctx, last.ManifestID)
		fmt.Println(reports[0].CacheReadTokens, err)
		text, err := s.Text(ctx, last.Sections[3].Hash)
		fmt.Println(text, err)
		return nil
	})
	// Output:
	// <nil>
	// 900 <nil>
	// text of section 3 <nil>
}

// An engine gets the queue by its options; here the work is done by hand.
func ExampleStore_Queue() {
	withStore(func(ctx context.Context, s *store.Store) error {
		q, err := s.Queue(store.QueueOptions{})
		if err != nil {
			return err
		}
		serving, end := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- q.Serve(serving, func(_ context.Context, a runtime.Attempt) runtime.JobResult {
				fmt.Println("attempt", a.Number, "at", a.Job.Kind)
				return runtime.JobResult{Action: "discarded", Err: errors.New("the address does not exist")}
			})
		}()
		mail := runtime.Job{Kind: "mail", Plugin: "p", IdempotencyKey: "turn-1"}
		err = errors.Join(q.Add(ctx, mail), q.Idle(ctx))
		fmt.Println("a second one:", errors.Is(q.Add(ctx, mail), runtime.ErrDuplicateJob))
		end()
		if served := <-ended; !errors.Is(served, context.Canceled) {
			err = errors.Join(err, served)
		}
		if err != nil {
			return err
		}
		return operate(ctx, s.Jobs())
	})
	// Output:
	// attempt 1 at mail
	// a second one: true
	// mail: the address does not exist
	// waiting 1, dead 0
}

// operate is what an operator does with dead jobs.
func operate(ctx context.Context, r store.JobRecords) error {
	list, err := r.List(ctx, store.JobFilter{Dead: true})
	if err != nil {
		return err
	}
	for _, d := range list {
		fmt.Printf("%s: %s\n", d.Job.Kind, d.Error)
		if _, err := r.Retry(ctx, d.ID); err != nil {
			return err
		}
	}
	c, err := r.Counts(ctx)
	fmt.Printf("waiting %d, dead %d\n", c.Waiting, c.Dead)
	return err
}

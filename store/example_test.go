package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/jobs"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/tree"
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

// A document is kept at a folder, and found for a thread below it.
func ExampleStore_Tree() {
	withStore(func(ctx context.Context, s *store.Store) error {
		t, err := s.Tree(ctx)
		if err != nil {
			return err
		}
		_, errWorkspace := t.CreateWorkspace(ctx, tree.CreateWorkspace{ID: "acme", Name: "ACME"})
		_, errFolder := t.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: "acme", ID: "backend", Name: "Backend"})
		_, errBelow := t.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: "acme", ID: "billing", ParentID: "backend", Name: "Billing"})
		_, errThread := t.CreateThread(ctx, tree.CreateThread{WorkspaceID: "acme", FolderID: "billing", ID: "t1", Title: "Invoices"})
		place := tree.Scope{WorkspaceID: "acme", FolderID: "backend"}
		_, errSave := t.Save(ctx, tree.Save{Scope: place, Content: "Write tests first.", Actor: "ann"})
		got, err := t.Resolve(ctx, tree.ThreadRef{WorkspaceID: "acme", ThreadID: "t1"})
		if err := errors.Join(errWorkspace, errFolder, errBelow, errThread, errSave, err); err != nil {
			return err
		}
		fmt.Printf("%s (from %s, for thread t1)\n", got.Effective.Doc.Content, got.Effective.SourcePath[0])
		return nil
	})
	// Output: Write tests first. (from Backend, for thread t1)
}

// An engine gets the queue by its options; here the work is done by hand.
func ExampleStore_Queue() {
	withStore(func(ctx context.Context, s *store.Store) error {
		q, err := s.Queue(jobs.QueueOptions{})
		if err != nil {
			return err
		}
		serving, end := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- q.Serve(serving, func(_ context.Context, a jobs.Attempt) jobs.Result {
				fmt.Println("attempt", a.Number, "at", a.Job.Kind)
				return jobs.Result{Action: jobs.Discard, Err: errors.New("the address does not exist")}
			})
		}()
		mail := jobs.Job{Kind: "mail", Plugin: "p", IdempotencyKey: "turn-1"}
		err = errors.Join(q.Add(ctx, mail), q.Idle(ctx))
		fmt.Println("a second one:", errors.Is(q.Add(ctx, mail), jobs.ErrDuplicate))
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
func operate(ctx context.Context, r jobs.Records) error {
	list, err := r.List(ctx, jobs.Filter{Dead: true})
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

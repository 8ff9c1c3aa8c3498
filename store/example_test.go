package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/manifest"
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

package treestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/store/treestore"
	"github.com/grapnelhq/grapnel/tree"
)

// A document is kept at a folder, and a thread below it is told what it says.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "grapnel-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	st, err := store.Open(ctx, "sqlite:"+filepath.Join(dir, "grapnel.db"), store.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = st.Close() }()
	tr, err := treestore.New(ctx, st.DB(), treestore.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = tr.Close() }()
	if err := instruct(ctx, tr); err != nil {
		fmt.Println(err)
	}
	// Output: Write tests first. (from Backend, for thread t1)
}

func instruct(ctx context.Context, s tree.Store) error {
	if _, err := s.CreateWorkspace(ctx, tree.CreateWorkspace{ID: "acme", Name: "ACME"}); err != nil {
		return err
	}
	for _, f := range []tree.CreateFolder{{ID: "backend", Name: "Backend"}, {ID: "billing", ParentID: "backend", Name: "Billing"}} {
		f.WorkspaceID = "acme"
		if _, err := s.CreateFolder(ctx, f); err != nil {
			return err
		}
	}
	if _, err := s.CreateThread(ctx, tree.CreateThread{WorkspaceID: "acme", FolderID: "billing", ID: "t1", Title: "Invoices"}); err != nil {
		return err
	}
	place := tree.Scope{WorkspaceID: "acme", FolderID: "backend"}
	if _, err := s.Save(ctx, tree.Save{Scope: place, Content: "Write tests first.", Actor: "ann"}); err != nil {
		return err
	}
	got, err := s.Resolve(ctx, tree.ThreadRef{WorkspaceID: "acme", ThreadID: "t1"})
	if err != nil {
		return err
	}
	fmt.Printf("%s (from %s, for thread t1)\n", got.Effective.Doc.Content, got.Effective.SourcePath[0])
	return nil
}

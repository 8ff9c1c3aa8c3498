package treestore_test

import (
	"context"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/store/internal/treestore"
)

// TestDamagedTree has folders that lie below themselves, which nobody can make by
// this package. All walks end, and say so; the rest of the tree is as before.
func TestDamagedTree(t *testing.T) {
	t.Parallel()

	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		ctx := t.Context()
		parent := tree.FolderID("")
		for _, id := range []string{"a", "b", "c"} {
			if _, err := s.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: "w", ParentID: parent, ID: id, Name: id}); err != nil {
				t.Fatal(err)
			}
			parent = tree.FolderID(id)
		}
		if _, err := s.CreateThread(ctx, tree.CreateThread{WorkspaceID: "w", FolderID: "b", ID: "t", Title: "t"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: "w", ID: "good", Name: "good"}); err != nil {
			t.Fatal(err)
		}
		storetest.Exec(t, dsn, "UPDATE tree_folders SET parent_id = 'c', parent = (SELECT p.node FROM tree_folders p WHERE p.id = 'c') WHERE id = 'a'")
		for name, call := range damagedCalls() {
			if err := call(ctx, s); !tree.HasCode(err, tree.CodeCycle) {
				t.Errorf("%s: error %v, want the code %s", name, err, tree.CodeCycle)
			}
		}
		if _, err := s.Save(ctx, tree.Save{Scope: scope("b"), Content: "x"}); err != nil {
			t.Errorf("saving needs no walk: %v", err)
		}
		if _, err := s.Doc(ctx, scope("good")); err != nil {
			t.Errorf("another part of the tree: %v", err)
		}
		if page, err := s.Tree(ctx, tree.Query{Scope: scope("")}); err != nil || len(page.Folders) != 4 {
			t.Errorf("the whole tree needs no walk: %+v, %v", page, err)
		}
	})
}

// damagedCalls are calls that walk through the cycle.
func damagedCalls() map[string]func(ctx context.Context, s *treestore.Store) error {
	return map[string]func(ctx context.Context, s *treestore.Store) error{
		"resolve": func(ctx context.Context, s *treestore.Store) error {
			_, err := s.Resolve(ctx, tree.ThreadRef{WorkspaceID: "w", ThreadID: "t"})
			return err
		},
		"affected": func(ctx context.Context, s *treestore.Store) error {
			_, err := s.Affected(ctx, scope("c"))
			return err
		},
		"tree": func(ctx context.Context, s *treestore.Store) error {
			_, err := s.Tree(ctx, tree.Query{Scope: scope("a"), Depth: 3})
			return err
		},
		"move into": func(ctx context.Context, s *treestore.Store) error {
			_, err := s.MoveFolder(ctx, tree.MoveFolder{WorkspaceID: "w", FolderID: "good", ParentID: "b"})
			return err
		},
		"delete": func(ctx context.Context, s *treestore.Store) error {
			_, err := s.DeleteFolder(ctx, tree.DeleteFolder{WorkspaceID: "w", FolderID: "b", Recursive: true})
			return err
		},
	}
}

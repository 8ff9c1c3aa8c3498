package treestore_test

import (
	"fmt"
	"testing"

	"github.com/grapnelhq/grapnel/store/storetest"
	"github.com/grapnelhq/grapnel/tree"
)

// TestMoveOfTooMany: a move looks at so many folders and no more while nobody else can
// change anything.
func TestMoveOfTooMany(t *testing.T) {
	t.Parallel()

	storetest.Both(t, newPostgres, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		storetest.Exec(t, dsn, fmt.Sprintf(`INSERT INTO tree_folders (workspace_id, id, parent_id, name, created_at, created_by)
			WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			SELECT 'w', CASE WHEN i = 0 THEN 'top' ELSE 'f' || i END, CASE WHEN i = 0 THEN NULL ELSE 'top' END, 'n', 0, '' FROM n`, tree.MaxMove+1))
		if _, err := s.CreateFolder(t.Context(), tree.CreateFolder{WorkspaceID: "w", ID: "to", Name: "to"}); err != nil {
			t.Fatal(err)
		}
		move := tree.MoveFolder{WorkspaceID: "w", FolderID: "top", ParentID: "to"}
		_, err := s.MoveFolder(t.Context(), move)
		wantCode(t, err, tree.CodeInvalid)
		if _, err := s.DeleteFolder(t.Context(), tree.DeleteFolder{WorkspaceID: "w", FolderID: "f1"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.MoveFolder(t.Context(), move); err != nil {
			t.Error(err)
		}
	})
}

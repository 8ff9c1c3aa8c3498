package tree_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/grapnelhq/grapnel/internal/treetest"
	"github.com/grapnelhq/grapnel/tree"
)

func ExampleStore() {
	ctx := context.Background()
	var s tree.Store = treetest.NewModel(nil) // or one on a database

	check := func(err error) {
		if err != nil {
			fmt.Println(err)
		}
	}
	_, err := s.CreateWorkspace(ctx, tree.CreateWorkspace{ID: "acme", Name: "Acme"})
	check(err)
	_, err = s.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: "acme", ID: "support", Name: "Support"})
	check(err)
	_, err = s.CreateThread(ctx, tree.CreateThread{WorkspaceID: "acme", FolderID: "support", ID: "t1", Title: "A question"})
	check(err)

	root := tree.Scope{WorkspaceID: "acme"}
	saved, err := s.Save(ctx, tree.Save{Scope: root, Content: "Be brief.\r\n", Actor: "ann"})
	check(err)
	fmt.Println("saved version", saved.Doc.Version, saved.Doc.Status)

	told, err := s.Resolve(ctx, tree.ThreadRef{WorkspaceID: "acme", ThreadID: "t1"})
	check(err)
	fmt.Printf("the thread is told %q, inherited: %t\n", told.Effective.Doc.Content, told.Effective.Inherited)

	// Somebody who has not seen version 1 does not overwrite it.
	_, err = s.Save(ctx, tree.Save{Scope: root, Content: "Be verbose.", Actor: "bob"})
	if conflict, ok := errors.AsType[*tree.Error](err); ok {
		fmt.Println(conflict.Code, *conflict.Conflict.ActualVersion, *conflict.Conflict.UpdatedBy)
	}
	// Output:
	// saved version 1 active
	// the thread is told "Be brief.\n", inherited: true
	// version_conflict 1 ann
}

func ExampleNormalize() {
	content, err := tree.Normalize("\ufeffBe brief.\r\n")
	fmt.Printf("%q %v %s\n", content, err, tree.StatusOf(content))

	_, err = tree.Normalize("a\x00b")
	fmt.Println(tree.HasCode(err, tree.CodeInvalid), err)
	// Output:
	// "Be brief.\n" <nil> active
	// true content: a NUL character at byte 1
}

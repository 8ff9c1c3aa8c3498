package tree_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tree"
)

// sensible are parameters of every kind that make sense, with everything set.
func sensible() map[string]any {
	scope := tree.Scope{WorkspaceID: "w", FolderID: "f"}
	return map[string]any{
		"create workspace": tree.CreateWorkspace{ID: "w", Name: "n", Actor: "a"},
		"rename workspace": tree.RenameWorkspace{WorkspaceID: "w", Name: "n", Actor: "a"},
		"delete workspace": tree.DeleteWorkspace{WorkspaceID: "w", Actor: "a"},
		"create folder":    tree.CreateFolder{WorkspaceID: "w", ParentID: "p", ID: "f", Name: "n", Actor: "a"},
		"rename folder":    tree.RenameFolder{WorkspaceID: "w", FolderID: "f", Name: "n", Actor: "a"},
		"move folder":      tree.MoveFolder{WorkspaceID: "w", FolderID: "f", ParentID: "p", Actor: "a"},
		"delete folder":    tree.DeleteFolder{WorkspaceID: "w", FolderID: "f", Actor: "a"},
		"create thread":    tree.CreateThread{WorkspaceID: "w", FolderID: "f", ID: "t", Title: "n", Actor: "a"},
		"rename thread":    tree.RenameThread{WorkspaceID: "w", ThreadID: "t", Title: "n", Actor: "a"},
		"move thread":      tree.MoveThread{WorkspaceID: "w", ThreadID: "t", FolderID: "f", Actor: "a"},
		"delete thread":    tree.DeleteThread{WorkspaceID: "w", ThreadID: "t", Actor: "a"},
		"scope":            scope,
		"thread":           tree.ThreadRef{WorkspaceID: "w", ThreadID: "t"},
		"save":             tree.Save{Scope: scope, ExpectedDocID: "d", SaveReason: tree.Autosave, ExpectedVersion: new(int64(0)), Actor: "a"},
		"archive":          tree.ArchiveDoc{Scope: scope, ExpectedDocID: "d", Actor: "a"},
		"restore":          tree.RestoreDoc{Scope: scope, DocID: "d", Version: 1, Actor: "a"},
		"revisions":        tree.RevisionQuery{Scope: scope, DocID: "d", Limit: tree.MaxLimit, BeforeVersion: 1},
		"archived":         tree.ArchivedQuery{Scope: scope, Limit: tree.MaxLimit},
		"tree":             tree.Query{Scope: scope, Depth: 1, Threads: tree.AllThreads},
	}
}

// TestCheckFields: of sensible parameters, every text field that takes nonsense or
// nothing is refused or not as the table says; none is forgotten.
func TestCheckFields(t *testing.T) {
	t.Parallel()

	// Texts that are judged elsewhere: by Normalize, and by the store.
	free := map[string]bool{"Content": true, "Cursor": true}
	required := map[string]bool{"Name": true, "Title": true, "WorkspaceID": true, "ThreadID": true}
	for name, p := range sensible() {
		if err := tree.Check(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, field := range reflect.VisibleFields(reflect.TypeOf(p)) {
			if field.Type.Kind() != reflect.String {
				continue
			}
			set := func(text string) error {
				changed := reflect.New(reflect.TypeOf(p)).Elem()
				changed.Set(reflect.ValueOf(p))
				changed.FieldByIndex(field.Index).SetString(text)
				return tree.Check(changed.Interface())
			}
			if err := set("\x00"); tree.HasCode(err, tree.CodeInvalid) == free[field.Name] {
				t.Errorf("%s: with nonsense in %s: %v", name, field.Name, err)
			}
			// The folder is required where it is no place but what the call is about.
			must := required[field.Name] || field.Name == "FolderID" && strings.HasSuffix(name, " folder")
			if err := set(""); tree.HasCode(err, tree.CodeInvalid) != must {
				t.Errorf("%s: without %s: %v, want an error: %t", name, field.Name, err, must)
			}
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()

	scope := tree.Scope{WorkspaceID: "w"}
	got := map[string]string{}
	for name, p := range map[string]any{
		"autosave":  tree.Save{Scope: scope, SaveReason: tree.Autosave},
		"reason":    tree.Save{Scope: scope, SaveReason: tree.Archive},
		"version":   tree.RestoreDoc{Scope: scope},
		"before":    tree.RevisionQuery{Scope: scope, BeforeVersion: -1},
		"limit":     tree.RevisionQuery{Scope: scope, Limit: tree.MaxLimit + 1},
		"negative":  tree.ArchivedQuery{Scope: scope, Limit: -1},
		"depth":     tree.Query{Scope: scope, Depth: -1},
		"threads":   tree.Query{Scope: scope, Threads: "some"},
		"workspace": tree.Query{},
	} {
		got[name] = "fine"
		if err := tree.Check(p); tree.HasCode(err, tree.CodeInvalid) {
			got[name] = err.Error()
		}
	}
	want := map[string]string{
		"autosave":  "expected_version: an autosave says which version it is based on (0 for none)",
		"reason":    `save_reason: "archive" is not autosave or manual`,
		"version":   "version: 0 is less than 1",
		"before":    "before_version: -1 is less than 0",
		"limit":     "limit: 1001 is not between 0 and 1000",
		"negative":  "limit: -1 is not between 0 and 1000",
		"depth":     "depth: -1 is less than 0",
		"threads":   `threads: "some" is not all or none`,
		"workspace": "workspace_id: an id has 1 to 64 characters, this one 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}

package tree_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/tree"
)

func sample() tree.Doc {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return tree.Doc{
		ID: "d", WorkspaceID: "w", FolderID: "f", Status: tree.Active, Title: tree.Title, Content: "a ✓", ContentSHA256: "00",
		Version: 3, CreatedAt: at, UpdatedAt: at.Add(time.Hour), CreatedBy: "ann", UpdatedBy: "bob",
	}
}

// TestJSON pins the wire's shapes: absent ones are null, lists are never null.
func TestJSON(t *testing.T) {
	t.Parallel()

	doc, text, cursor := sample(), "a ✓", "next"
	root := doc
	root.FolderID = ""
	const docJSON = `{"id":"d","workspace_id":"w","folder_id":"f","status":"active","title":"AGENTS.md","content":"a ✓","content_sha256":"00",` +
		`"version":3,"created_at":"2026-03-01T12:00:00Z","updated_at":"2026-03-01T13:00:00Z","created_by":"ann","updated_by":"bob"}`
	rootJSON := `{"id":"d","workspace_id":"w","folder_id":null,` + docJSON[len(`{"id":"d","workspace_id":"w","folder_id":"f",`):]
	const summaryJSON = `"id":"d","folder_id":"f","status":"active","content_sha256":"00","version":3,"chars":3,"updated_at":"2026-03-01T13:00:00Z"`
	for _, test := range []struct {
		name  string
		value any
		want  string
	}{
		{"workspace", tree.Workspace{ID: "w", Name: "n"}, `{"id":"w","name":"n"}`},
		{"folder at the root", tree.Folder{ID: "f", Name: "n"}, `{"id":"f","parent_id":null,"name":"n"}`},
		{"folder", tree.Folder{ID: "f", ParentID: "p", Name: "n"}, `{"id":"f","parent_id":"p","name":"n"}`},
		{"thread at the root", tree.Thread{ID: "t", Title: "n"}, `{"id":"t","folder_id":null,"title":"n"}`},
		{"thread", tree.Thread{ID: "t", FolderID: "f", Title: "n"}, `{"id":"t","folder_id":"f","title":"n"}`},
		{"doc", doc, docJSON},
		{"doc at the root", root, rootJSON},
		{"summary", doc.Summary(), "{" + summaryJSON + "}"},
		{"nothing", tree.View{}, `{"explicit":null,"effective":null}`},
		{
			"effective",
			tree.Effective{Doc: root, SourcePath: []string{}, Inherited: true, ResolvedForFolderID: "f", ResolvedAt: doc.CreatedAt},
			`{"doc":` + rootJSON + `,"source_folder_id":null,"source_path":[],"inherited":true,"resolved_for_folder_id":"f","resolved_at":"2026-03-01T12:00:00Z"}`,
		},
		{"saved", tree.Saved{Doc: doc, Unchanged: true}, `{"doc":` + docJSON + `,"unchanged":true}`},
		{"nothing archived", tree.ArchivedNow{}, `{"archived":false,"doc":null,"effective":null}`},
		{
			"revision",
			tree.Revision{DocID: "d", Version: 1, ContentSHA256: "00", Chars: 3, SavedAt: doc.CreatedAt, SavedBy: "ann", SaveReason: tree.Manual},
			`{"doc_id":"d","version":1,"content_sha256":"00","chars":3,"saved_at":"2026-03-01T12:00:00Z","saved_by":"ann","save_reason":"manual","content":null}`,
		},
		{
			"archived",
			tree.ArchivedDoc{Summary: doc.Summary(), ArchivedAt: doc.CreatedAt, ArchivedBy: "ann", Content: &text},
			"{" + summaryJSON + `,"archived_at":"2026-03-01T12:00:00Z","archived_by":"ann","content":"a ✓"}`,
		},
		{
			"empty page",
			tree.Page{Folders: []tree.Folder{}, Threads: []tree.Thread{}, AgentsDocs: []tree.Summary{}},
			`{"folders":[],"threads":[],"agents_docs":[],"next_cursor":null}`,
		},
		{
			"page",
			tree.Page{Folders: []tree.Folder{{ID: "f", Name: "n"}}, Threads: []tree.Thread{}, AgentsDocs: []tree.Summary{doc.Summary()}, NextCursor: &cursor},
			`{"folders":[{"id":"f","parent_id":null,"name":"n"}],"threads":[],"agents_docs":[{` + summaryJSON + `}],"next_cursor":"next"}`,
		},
		{"conflict with nothing", tree.ConflictWith(new(int64(2)), nil).Conflict, `{"expected_version":2,"actual_version":null,` +
			`"actual_doc_id":null,"actual_content_sha256":null,"updated_by":null,"updated_at":null}`},
		{"conflict", tree.ConflictWith(nil, &doc).Conflict, `{"expected_version":null,"actual_version":3,` +
			`"actual_doc_id":"d","actual_content_sha256":"00","updated_by":"bob","updated_at":"2026-03-01T13:00:00Z"}`},
		{"scope", tree.Scope{WorkspaceID: "w"}, `{"workspace_id":"w"}`},
		{
			"save",
			tree.Save{Scope: tree.Scope{WorkspaceID: "w", FolderID: "f"}, ExpectedVersion: new(int64(0)), SaveReason: tree.Autosave},
			`{"workspace_id":"w","folder_id":"f","content":"","expected_version":0,"save_reason":"autosave"}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			got, err := json.Marshal(test.value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
			again := reflect.New(reflect.TypeOf(test.value))
			if err := json.Unmarshal(got, again.Interface()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.value, again.Elem().Interface()); diff != "" {
				t.Errorf("read again (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFolderID(t *testing.T) {
	t.Parallel()

	type holder struct {
		FolderID tree.FolderID `json:"folder_id,omitzero"`
	}
	for text, want := range map[string]tree.FolderID{`{}`: "", `{"folder_id":null}`: "", `{"folder_id":"f"}`: "f", `{"folder_id":"null"}`: "null"} {
		got := holder{FolderID: "before"}
		if text == `{}` {
			got = holder{}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.FolderID != want {
			t.Errorf("%s: %q, %v; want %q", text, got.FolderID, err, want)
		}
	}
	for _, text := range []string{`{"folder_id":""}`, `{"folder_id":1}`, `{"folder_id":["f"]}`, `{"folder_id":{}}`, `{"folder_id":true}`} {
		var got holder
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is read as %q", text, got.FolderID)
		}
	}
}

func FuzzFolderID(f *testing.F) {
	for _, seed := range []string{`null`, `"f"`, `""`, `1`, `"\u0000"`, `"\ud800"`, ` null `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var id, again tree.FolderID
		if json.Unmarshal(data, &id) != nil {
			return
		}
		text, err := json.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &again); err != nil || again != id {
			t.Errorf("%q became %s, and that %q, %v", id, text, again, err)
		}
	})
}

func TestError(t *testing.T) {
	t.Parallel()

	cause := fs.ErrClosed
	err := fmt.Errorf("saving: %w", &tree.Error{Code: tree.CodeUnavailable, Message: "the database is out of reach", Err: cause})
	if got, want := err.Error(), "saving: the database is out of reach: file already closed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !tree.HasCode(err, tree.CodeUnavailable) || tree.HasCode(err, tree.CodeConflict) || !errors.Is(err, cause) {
		t.Error("the code or the cause is lost")
	}
	for _, other := range []error{nil, cause} {
		if tree.HasCode(other, "") || tree.HasCode(other, tree.CodeInvalid) {
			t.Errorf("%v has a code", other)
		}
	}
}

// TestConflictWith: a conflict keeps what it was told, whatever becomes of the
// document.
func TestConflictWith(t *testing.T) {
	t.Parallel()

	doc := sample()
	err := tree.ConflictWith(new(int64(2)), &doc)
	doc.Version, doc.UpdatedBy = 4, "eve"
	if got, want := err.Error(), `the document is at version 3, saved by "bob"; read it, merge, and save with that version`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err.Code != tree.CodeConflict || *err.Conflict.ExpectedVersion != 2 || *err.Conflict.ActualVersion != 3 {
		t.Errorf("%+v", err.Conflict)
	}
	if err := tree.ConflictWith(nil, nil); err.Code != tree.CodeConflict || err.Conflict == nil || err.Message == "" {
		t.Errorf("%+v", err)
	}
}

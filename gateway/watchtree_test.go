package gateway

import (
	"slices"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// TestTreeWatcher: who shows a tree and listens to thread/tree/changed alone learns of
// every document that is saved, becomes a draft, is archived or restored, over
// WebSocket and both databases; and who goes on from any place misses neither note.
func TestTreeWatcher(t *testing.T) {
	t.Parallel()

	storetest.Both(t, storetest.NewPostgres, func(t *testing.T, dsn string) {
		model := treeStore(t, dsn)
		workspace(t, model, "w")
		s := serve(t, Options{Tree: model})
		c, schemas := s.dial(t, ""), description(t)
		at := ready(t, c, object{"workspace_id": "w"}).Seq
		next := func() message { // leaves out the workspace's creation, which PostgreSQL still tells while other transactions run
			for {
				if n := c.anyNote(t); n.Method != notifyTree || decoded[TreeChanged](t, n.Params).Workspace == nil {
					return n
				}
			}
		}
		const doc = "thread/agents_doc/"
		for _, step := range []struct {
			method string
			params object
			action tree.Action
			status tree.Status
		}{
			{doc + "save", object{"content": "one"}, tree.DocSaved, tree.Active},
			{doc + "save", object{"content": " ", "expected_version": 1, "save_reason": "autosave"}, tree.DocSaved, tree.Draft},
			{doc + "archive", object{}, tree.DocArchived, tree.Archived},
			{doc + "restore", object{"version": 1}, tree.DocRestored, tree.Active},
		} {
			step.params["workspace_id"] = "w"
			do[any](t, c, step.method, step.params)
			first, second := next(), next()
			if first.Method != notifyTree || second.Method != notifyDoc {
				t.Fatalf("%s: told by %s, %s", step.action, first.Method, second.Method)
			}
			if err := fits(schemas.Notifications[notifyTree].Params, first.Params); err != nil {
				t.Errorf("%s: %v", first.Params, err)
			}
			n, last := decoded[TreeChanged](t, first.Params), noted(t, second)
			if n.Action != step.action || n.AgentsDoc == nil || n.AgentsDoc.Status != step.status || n.Folder != nil || n.Workspace != nil || n.Thread != nil || n.Gap {
				t.Errorf("%s: %s", step.action, first.Params)
			}
			if n.Seq < at || last.Seq <= n.Seq {
				t.Errorf("%s: places %d, %d behind %d", step.action, n.Seq, last.Seq, at)
			}
			resumes(t, s, n.Seq, 2)
			resumes(t, s, last.Seq, 0)
			at = last.Seq
		}
		do[any](t, c, doc+"save", object{"workspace_id": "w", "content": "one", "expected_version": 4}) // nothing new
		do[any](t, c, "workspace/rename", object{"workspace_id": "w", "name": "V"})
		if m := c.anyNote(t); decoded[TreeChanged](t, m.Params).Workspace == nil {
			t.Errorf("a save of the same text was told: %s", m.Params)
		}
	})
}

// resumes goes on from a place on another connection, and wants so many notes of what
// was missed.
func resumes(t *testing.T, s *served, at tree.Seq, want int) {
	t.Helper()
	c := s.dial(t, "")
	if got := do[watchResult](t, c, "workspace/watch", object{"workspace_id": "w", "since_seq": at}); got.Gap {
		t.Errorf("from %d: a gap", at)
	}
	do[any](t, c, "workspace/list", nil) // what was told stands before its answer
	for range want {
		c.anyNote(t)
	}
	if n := len(c.notes); n > 0 {
		t.Errorf("from %d: %d notes more than %d", at, n, want)
	}
}

// changeOf makes a change of a document, or of a folder.
func changeOf(seq tree.Seq, name string) tree.Change {
	if name[0] == 'f' {
		return tree.Change{Seq: seq, WorkspaceID: "w", Action: tree.Renamed, Folder: &tree.Folder{ID: name}}
	}
	return tree.Change{Seq: seq, WorkspaceID: "w", Action: tree.DocSaved, Doc: &tree.Summary{ID: name, FolderID: tree.FolderID(name), Version: int64(seq)}}
}

// TestAutosaveStorm: many saves of one document in a row are one pair of notes. Each note has a key of its own, so that one
// waits for a slow reader at most; and who goes on from it misses nothing of its transaction.
func TestAutosaveStorm(t *testing.T) {
	t.Parallel()

	var in []tree.Change
	for seq := range tree.Seq(100) {
		in = append(in, changeOf(seq+1, "d1"))
	}
	in = append(in, changeOf(101, "f1"), changeOf(101, "f2"))
	notes := digest(in, burst)
	var places []tree.Seq
	keys := map[string]bool{}
	for i := range notes {
		if err := notes[i].encode(nil); err != nil {
			t.Fatal(err)
		}
		keys[notes[i].key] = true
		places = append(places, notes[i].resume)
	}
	if !slices.Equal(places, []tree.Seq{99, 100, 100, 101}) || len(keys) != 4 || notes[0].method != notifyTree || notes[1].method != notifyDoc {
		t.Errorf("notes %+v", notes)
	}
}

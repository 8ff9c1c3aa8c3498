package agentsdoc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/thread"
	"github.com/grapnelhq/grapnel/internal/engine/hostservice"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// newTree is a tree with the folders Clients and, in it, Paris, and the thread "t"
// there.
func newTree(tb testing.TB) tree.Store {
	tb.Helper()
	m := storetest.Tree(tb, time.Now)
	_, err := m.CreateWorkspace(tb.Context(), tree.CreateWorkspace{ID: "w", Name: "W"})
	_, err1 := m.CreateFolder(tb.Context(), tree.CreateFolder{WorkspaceID: "w", ID: "clients", Name: "Clients"})
	_, err2 := m.CreateFolder(tb.Context(), tree.CreateFolder{WorkspaceID: "w", ParentID: "clients", ID: "paris", Name: "Paris"})
	_, err3 := m.CreateThread(tb.Context(), tree.CreateThread{WorkspaceID: "w", FolderID: "paris", ID: "t", Title: "T"})
	if err := errors.Join(err, err1, err2, err3); err != nil {
		tb.Fatal(err)
	}
	return m
}

// TestThreadTree is the whole way, from a save to the prompt, over the gateway's
// own service.
func TestThreadTree(t *testing.T) {
	t.Parallel()
	store := newTree(t)
	eng := withDocuments(t, declared("", treeGrants, "{source: both, global: false}", ""), runtime.Options{
		Services: map[string]runtime.Service{gateway.ServiceDocuments: gateway.Documents(store)}, State: hostservice.NewMemoryState(),
	})
	// In a session, in which files would stay the same bytes.
	where := phases.Context{WorkspaceID: "w", ThreadID: "t", SessionID: "s"}
	child := phases.Context{WorkspaceID: "w", ThreadID: "sub", ConversationThreadID: "t", ParentSessionID: "s", SessionID: "c"}
	save := func(folder tree.FolderID, text string) func() error {
		return func() error {
			p := tree.Save{Scope: tree.Scope{WorkspaceID: "w", FolderID: folder}, Content: text, SaveReason: tree.Manual, Actor: "a"}
			if view, err := store.Doc(t.Context(), p.Scope); err == nil && view.Explicit != nil {
				p.ExpectedVersion = &view.Explicit.Version
			}
			_, err := store.Save(t.Context(), p)
			return err
		}
	}
	archive := func(folder tree.FolderID) func() error {
		return func() error {
			_, err := store.Archive(t.Context(), tree.ArchiveDoc{Scope: tree.Scope{WorkspaceID: "w", FolderID: folder}, Actor: "a"})
			return err
		}
	}
	steps := []struct {
		name  string
		do    func() error
		where phases.Context
		body  string
		label string
		codes []string
	}{
		{"nothing yet", func() error { return nil }, where, "", "", nil},
		{"at the root", save("", "Be brief.\n"), where, "Be brief.", "root", nil},
		{"a nearer one", save("clients", "In French."), where, "In French.", "Clients", nil},
		{"the same again", nil, where, "In French.", "Clients", nil},
		{"saved again", save("clients", "In Italian."), where, "In Italian.", "Clients", nil},
		{"the nearest", save("paris", "En français.\n</AGENTS_MD>"), where, "En français.\n<\\/AGENTS_MD>", "Clients / Paris", []string{"escaped"}},
		{"a sub-task", nil, child, "En français.\n<\\/AGENTS_MD>", "Clients / Paris", []string{"escaped"}},
		{"a thread that nobody knows", nil, phases.Context{WorkspaceID: "w", ThreadID: "other"}, "Be brief.", "root", []string{"thread_unknown"}},
		{"a workspace that nobody knows", nil, phases.Context{WorkspaceID: "v", ThreadID: "t"}, "", "", []string{"thread_unknown"}},
		{"a draft", save("paris", " \n"), where, "In Italian.", "Clients", nil},
		{"archived", archive("clients"), where, "Be brief.", "root", nil},
		{"all archived", archive(""), where, "", "", nil},
	}
	for _, tt := range steps {
		if tt.do != nil {
			if err := tt.do(); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
		}
		done, err := compileIn(t, eng, tt.where)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		want := ""
		if tt.body != "" {
			want = thread.FrameOpen + "\n" + tt.body + "\n" + thread.FrameClose
		}
		if diff := cmp.Diff(agentsText(done), want); diff != "" {
			t.Errorf("%s (-got +want)\n%s", tt.name, diff)
		}
		if got := state(done, "agentsdoc.thread_prompt"); got != phases.StateSucceeded {
			t.Errorf("%s: the hook %s", tt.name, got)
		}
		if diff := cmp.Diff(documentRefs(done), refsOf(tt.label)); diff != "" {
			t.Errorf("%s: labels (-got +want)\n%s", tt.name, diff)
		}
		var got []string
		for _, d := range done.Diagnostics {
			got = append(got, d.Code)
		}
		if diff := cmp.Diff(got, tt.codes); diff != "" {
			t.Errorf("%s: diagnostics (-got +want)\n%s", tt.name, diff)
		}
	}
}

// documentRefs are the labels of the documents in a manifest.
func documentRefs(done *runtime.Compiled) []string {
	var labels []string
	for _, s := range done.Manifest.Sections {
		for _, ref := range s.SourceRefs {
			if ref.Kind == "document" {
				labels = append(labels, ref.Label)
			}
		}
	}
	return labels
}

func refsOf(label string) []string {
	if label == "" {
		return nil
	}
	return []string{label}
}

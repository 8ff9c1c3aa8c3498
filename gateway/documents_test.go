package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TestDocuments checks what plugins are told, and what they are not.
func TestDocuments(t *testing.T) {
	t.Parallel()

	model := storetest.Tree(t, nil)
	for _, id := range []string{"w", "v", "empty"} {
		workspace(t, model, id)
	}
	folder(t, model, "a")
	save(t, model, "w", "", "root of w")
	save(t, model, "w", "a", "folder a")
	save(t, model, "v", "", "root of v")
	must(model.CreateThread(t.Context(), tree.CreateThread{WorkspaceID: "w", FolderID: "a", ID: "t", Title: "T"}))(t)
	must(model.CreateThread(t.Context(), tree.CreateThread{WorkspaceID: "w", ID: "sub", Title: "Sub"}))(t)

	here := phases.Context{WorkspaceID: "w", ThreadID: "t"}
	for _, tt := range []struct {
		name    string
		context phases.Context
		params  string
		want    string // content; empty for none
		unknown bool
		code    phases.Cause
	}{
		{name: "the context's thread", context: here, want: "folder a"},
		{name: "the context's conversation", context: phases.Context{WorkspaceID: "w", ThreadID: "sub", ConversationThreadID: "t"}, want: "folder a"},
		{name: "a thread that is named", context: here, params: `{"thread_id": "sub"}`, want: "root of w"},
		{name: "its own workspace is named", context: here, params: `{"workspace_id": "w"}`, want: "folder a"},
		{name: "an empty object", context: here, params: `{}`, want: "folder a"},
		{name: "another workspace", context: here, params: `{"workspace_id": "v"}`, code: phases.CauseForbidden},
		{name: "a workspace without a context", params: `{"workspace_id": "v", "thread_id": "t"}`, code: phases.CauseForbidden},
		{name: "an unknown thread", context: phases.Context{WorkspaceID: "w", ThreadID: "new"}, want: "root of w", unknown: true},
		{name: "a thread that no tree would take", context: phases.Context{WorkspaceID: "w", ThreadID: "slack:C1/p1"}, want: "root of w", unknown: true},
		{name: "an unknown workspace", context: phases.Context{WorkspaceID: "local", ThreadID: "t"}, unknown: true},
		{name: "a workspace that no tree would take", context: phases.Context{WorkspaceID: "a/b", ThreadID: "t/u"}, unknown: true},
		{name: "no document", context: phases.Context{WorkspaceID: "empty", ThreadID: "new"}, unknown: true},
		{name: "no workspace", context: phases.Context{ThreadID: "t"}, code: phases.CauseInvalidReply},
		{name: "no thread", context: phases.Context{WorkspaceID: "w"}, code: phases.CauseInvalidReply},
		{name: "params that are none", context: here, params: `[]`, code: phases.CauseInvalidReply},
	} {
		raw, err := Documents(model)["resolve_for_thread"].Call(t.Context(), runtime.Caller{Plugin: "p", Context: tt.context}, json.RawMessage(tt.params))
		if got := phases.CodeOf(err); err != nil && got != tt.code || err == nil && tt.code != "" {
			t.Fatalf("%s: %v, want the code %q", tt.name, err, tt.code)
		}
		if err != nil {
			continue
		}
		got := decoded[documentAnswer](t, raw)
		content := ""
		if got.Effective != nil {
			content = got.Effective.Doc.Content
		}
		if content != tt.want {
			t.Errorf("%s: %s, want %q", tt.name, raw, tt.want)
		}
		if unknown := len(got.Diagnostics) == 1 && got.Diagnostics[0].Code == "thread_unknown"; unknown != tt.unknown || got.Diagnostics == nil {
			t.Errorf("%s: diagnostics of %s, want thread_unknown: %v", tt.name, raw, tt.unknown)
		}
	}
}

// TestDocumentsDown: a database that is out of reach has a code of its own, so that
// an operator may decide what a hook does then.
func TestDocumentsDown(t *testing.T) {
	t.Parallel()

	ask := func(err error) error {
		_, err = Documents(unresolved{err: err})["resolve_for_thread"].Call(t.Context(),
			runtime.Caller{Context: phases.Context{WorkspaceID: "w", ThreadID: "t"}}, nil)
		return err
	}
	if err := ask(errDown); phases.CodeOf(err) != phases.CauseUnavailable || !errors.Is(err, errDown) {
		t.Errorf("down: %v", err)
	}
	if err := ask(context.DeadlineExceeded); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("too late: %v", err)
	}
}

// unresolved is a store that fails.
type unresolved struct {
	tree.Store

	err error
}

func (u unresolved) Resolve(context.Context, tree.ThreadRef) (tree.Resolution, error) {
	return tree.Resolution{}, u.err
}

// TestDocumentsInPrompt goes the whole way: a client saves, another one compiles,
// and a plugin puts the document in effect into the prompt.
func TestDocumentsInPrompt(t *testing.T) {
	t.Parallel()

	model := storetest.Tree(t, nil)
	c := serve(t, Options{Tree: model, Engine: engine(t, model, nil)}).post(t, "")
	do[any](t, c, "workspace/create", object{"id": "w", "name": "W"})
	do[any](t, c, "folder/create", object{"workspace_id": "w", "id": "a", "name": "A"})
	do[any](t, c, "thread/create", object{"workspace_id": "w", "id": "t", "title": "T", "folder_id": "a"})
	do[any](t, c, "thread/agents_doc/save", object{"workspace_id": "w", "content": "Speak like a pirate."})
	prompt := func() string {
		return do[runtime.Compiled](t, c, "turn/compile", object{"turn": turnOf(nil)}).Prompt.FullText
	}
	if got := prompt(); !strings.Contains(got, "Speak like a pirate.") {
		t.Errorf("the inherited document is not in the prompt:\n%s", got)
	}
	do[any](t, c, "thread/agents_doc/save", object{"workspace_id": "w", "folder_id": "a", "content": "Speak like a poet."})
	if got := prompt(); !strings.Contains(got, "Speak like a poet.") || strings.Contains(got, "pirate") {
		t.Errorf("the nearest document is not in the prompt:\n%s", got)
	}
}

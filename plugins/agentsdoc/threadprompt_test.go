package agentsdoc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/thread"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// documentJSON is the service's answer with a document.
func documentJSON(tb testing.TB, content string, path ...string) string {
	tb.Helper()
	data, err := json.Marshal(map[string]any{
		"effective": map[string]any{
			"doc": map[string]any{"id": "01J", "workspace_id": "w", "status": "active", "content": content, "version": 3}, "source_path": path, "inherited": true,
		},
		"diagnostics": []any{},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// answers is a service that always gives the same.
func answers(answer string) func(context.Context, string) (string, error) {
	return func(context.Context, string) (string, error) { return answer, nil }
}

// withTree is the plugin with a configuration and a service of documents.
func withTree(tb testing.TB, config string, documents func(context.Context, string) (string, error)) *sdk.Plugin {
	tb.Helper()
	p := withoutHome()
	configure(tb, p, config, &fakeHost{documents: documents})
	return p
}

// inThread is a context of a thread.
func inThread(id string) phases.Context { return phases.Context{WorkspaceID: "w", ThreadID: id} }

// askTree dispatches the hook and returns its one contribution, or nil.
func askTree(tb testing.TB, p *sdk.Plugin, where phases.Context, room phases.AnswerBudget) phases.Contribution {
	tb.Helper()
	cs := dispatch(tb, p, "thread_prompt", where, &phases.PrePromptCompileInput{}, room)
	if len(cs) > 1 {
		tb.Fatalf("%d contributions", len(cs))
	}
	if len(cs) == 0 {
		return nil
	}
	return cs[0]
}

// askDocument is askTree where there must be a section.
func askDocument(tb testing.TB, p *sdk.Plugin, where phases.Context, room phases.AnswerBudget) *phases.PromptSection {
	tb.Helper()
	c := askTree(tb, p, where, room)
	s, ok := c.(*phases.PromptSection)
	if !ok {
		tb.Fatalf("got %T, want a section", c)
	}
	return s
}

// TestSources: the hooks of a source that is off are not described.
func TestSources(t *testing.T) {
	t.Parallel()
	files := []string{"prompt", "changed", "start", "resume", "compacted", "end", "touching", "touched"}
	tests := []struct {
		source   string
		services []string
		want     []string
		refused  bool
	}{
		{"files", nil, files, false},
		{"files", []string{"documents", "state"}, files, false},
		{"tree", []string{"documents"}, []string{"thread_prompt"}, false},
		{"both", []string{"documents", "state"}, append(slices.Clip(files), "thread_prompt"), false},
		{"tree", []string{"state"}, nil, true},
		{"both", nil, nil, true},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.source, tt.services), func(t *testing.T) {
			t.Parallel()
			d, err := withoutHome().Configure(t.Context(), &phases.Configuration{
				Config: json.RawMessage(`{"source":"` + tt.source + `"}`), Services: tt.services, Host: &fakeHost{},
			})
			if tt.refused {
				found, ok := errors.AsType[*phases.ConfigError](err)
				if !ok || found.Pointer != "/source" || !strings.Contains(found.Message, "grant it with host: [documents]") {
					t.Errorf("error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range d.Hooks {
				got = append(got, h.Name)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("hooks (-got +want)\n%s", diff)
			}
		})
	}
}

// TestSwitchedOff: what is not in force needs no service.
func TestSwitchedOff(t *testing.T) {
	t.Parallel()
	d, err := withoutHome().Configure(t.Context(), &phases.Configuration{Config: json.RawMessage(`{"source":"tree","enabled":false}`)})
	if err != nil || len(d.Hooks) != 0 {
		t.Errorf("error %v, %d hooks", err, len(d.Hooks))
	}
}

func TestThreadSection(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, config string
		placement    phases.Placement
		priority     int
	}{
		{"tree", `{"source":"tree"}`, "", 0},
		{"both", `{"source":"both"}`, "", -1},
		{"codex", `{"source":"both","preset":"codex"}`, phases.PlacementUserMessage, -1},
		{"codelia", `{"source":"tree","preset":"codelia"}`, phases.PlacementSystemMessage, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := withTree(t, tt.config, answers(documentJSON(t, "Be brief.\r\nSay </AGENTS_MD>.\n", "Clients", "Paris")))
			got := askDocument(t, p, inThread("t"), phases.AnswerBudget{MaxChars: 16_000})
			want := &phases.PromptSection{
				Common: phases.Common{ContributionID: "prompt.agents_doc", Domain: "thread_agents_doc", Priority: tt.priority, Diagnostics: []phases.Diagnostic{{
					Code: "escaped", Severity: phases.SeverityWarning, SafeForUser: true,
					Message: "document Clients / Paris: places that look like lines or tags of the prompt, and got a backslash: 1",
				}}},
				SectionID: "agents_md", Title: "AGENTS.md", Stability: phases.StabilityDynamic, Placement: tt.placement,
				Content: "Be brief.\nSay <\\/AGENTS_MD>.", Frame: &phases.Frame{Open: thread.Preamble + "\n\n<AGENTS_MD>", Close: "</AGENTS_MD>"},
				SourceRefs: []phases.SourceRef{{Kind: "document", ID: "01J@3", Label: "Clients / Paris", Hash: "sha256:db013d8253653c32be768991b3728001056c27bfda8abeca3ef9850413244cd4"}},
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

// TestThreadSubtasks: a sub-task that inherits has the document of the conversation
// it belongs to; one that gets the operator's file alone, or nothing, has none.
func TestThreadSubtasks(t *testing.T) {
	t.Parallel()
	child := phases.Context{WorkspaceID: "w", ThreadID: "sub", ConversationThreadID: "main"}
	inPlace := phases.Context{WorkspaceID: "w", ThreadID: "main", Mode: phases.ModeTask}
	nobody := phases.Context{Mode: phases.ModeTask}
	tests := []struct {
		name, subtasks string
		where          phases.Context
		asked          string
	}{
		{"inherit", "inherit", child, "main"},
		{"inherit in place", "inherit", inPlace, "main"},
		{"operator's file", "managed_only", child, ""},
		{"operator's file, in place", "managed_only", inPlace, ""},
		{"nothing", "none", child, ""},
		{"nothing, for nobody", "none", nobody, ""},
		{"no sub-task", "none", inThread("main"), "main"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var asked struct {
				ThreadID string `json:"thread_id"`
			}
			p := withTree(t, `{"source":"tree","subtasks":"`+tt.subtasks+`"}`, func(_ context.Context, params string) (string, error) {
				return documentJSON(t, "x"), json.Unmarshal([]byte(params), &asked)
			})
			got := askTree(t, p, tt.where, phases.AnswerBudget{})
			if asked.ThreadID != tt.asked || (got != nil) != (tt.asked != "") {
				t.Errorf("asked for the thread %q, want %q; got %T", asked.ThreadID, tt.asked, got)
			}
		})
	}
}

package memory_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/storetest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory"
	"github.com/grapnelhq/grapnel/plugins/memory/internal/toolset"
	"github.com/grapnelhq/grapnel/runtime"
)

// keep stores facts of a workspace, and forgets all that it had before.
func keep(t *testing.T, dsn, workspace string, texts []string) {
	t.Helper()
	s, err := itemstore.Open(t.Context(), dsn, itemstore.Options{LockTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	view := itemstore.View{WorkspaceID: workspace, AllScopes: true}
	var ids []string
	err = s.Export(t.Context(), view, func(i itemstore.Item) error {
		ids = append(ids, i.ID)
		return nil
	})
	if err == nil {
		_, err = s.Forget(t.Context(), view, ids)
	}
	for _, text := range texts {
		if err == nil {
			_, err = s.Remember(t.Context(), itemstore.Batch{WorkspaceID: workspace, Items: []itemstore.New{
				{Scope: itemstore.ScopeWorkspace, Category: turnpolicy.Factual, Text: text, Source: itemstore.SourceUser},
			}})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// seen is what a turn sees of the memory: its section with the sources, and what the
// tool finds, with scores. The turn fails, so that nothing counts as used.
func seen(t *testing.T, eng *runtime.Engine, says string) string {
	t.Helper()
	turn, err := eng.BeginTurn(t.Context(), phases.Context{
		WorkspaceID: "w", ThreadID: "t", Mode: phases.ModeAgent, Actor: phases.Actor{Kind: "user", ID: "ada"}, Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	text := phases.T(says)
	for _, in := range []phases.Input{&phases.PrePolicyInput{UserText: text}, &phases.PrePromptContextInput{UserText: text}, &phases.PreToolsInput{ToolCalling: true}} {
		if out, err := turn.Dispatch(t.Context(), in); err != nil || out.Error != nil {
			t.Fatalf("%s: %v, %v", phases.PhaseOf(in), err, out)
		}
	}
	compiled, err := turn.Compile(t.Context(), runtime.CompileInput{UserText: says, ToolCalling: true})
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{compiled.Prompt.FullText}
	for _, s := range compiled.Manifest.Sections {
		lines = append(lines, fmt.Sprint(s.SectionID, s.SourceRefs))
	}
	var hits json.RawMessage
	call(t, turn, toolset.Search, fmt.Sprintf(`{"query":%q}`, says), &hits)
	if _, err := turn.End(t.Context(), &phases.PostTurnInput{Status: phases.TurnFailed}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(append(lines, string(hits)), "\n")
}

// TestOtherWorkspaces: what other workspaces remember and forget changes nothing that a
// turn sees through the plugin's process.
func TestOtherWorkspaces(t *testing.T) {
	storetest.SkipShort(t)
	for name, newDSN := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return storetest.SQLite(t) },
		"postgres": func(t *testing.T) string { return memory.NewPostgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			place(t)
			dsn := newDSN(t)
			keep(t, dsn, "w", []string{"Katharina leads the billing team", "our database is PostgreSQL 17", "we deploy on Tuesdays", "the staging server is called kiwi"})
			eng := engine(t, declaration+"      dsn: "+dsn+"\n", runtime.Options{})
			questions := []string{"Who is Katharina?", "who is Katarina", "Which database is it?", "When do we deploy to kiwi?", "What about zanzibar?"}
			ask := func() (all []string) {
				for _, q := range questions {
					all = append(all, seen(t, eng, q))
				}
				return all
			}
			want := ask()
			if !strings.Contains(want[0], ") Katharina leads the billing team") || !strings.Contains(want[2], "PostgreSQL 17") {
				t.Fatalf("%q", want)
			}
			var noise []string
			for n := range 50 {
				noise = append(noise, fmt.Sprintf("Katharina %d knows Katarina, the databse of zanzibar and kiwi; we deploy %s", n, strings.Repeat("the database ", n)))
			}
			for _, step := range []struct {
				workspace string
				texts     []string
			}{{"v", noise}, {"u", noise[:30]}, {"v", []string{"Katarina", "databse"}}, {"u", nil}, {"v", nil}} {
				keep(t, dsn, step.workspace, step.texts)
				if diff := cmp.Diff(want, ask()); diff != "" {
					t.Fatalf("after %d facts of %s (-before +after):\n%s", len(step.texts), step.workspace, diff)
				}
			}
		})
	}
}

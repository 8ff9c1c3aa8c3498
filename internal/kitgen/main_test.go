package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFresh wants every generated file to say what the contract says now.
func TestFresh(t *testing.T) {
	t.Parallel()

	root := filepath.Join("..", "..")
	m, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, emit := range outputs() {
		have, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(have), emit(m)); diff != "" {
			t.Errorf("%s is stale, run go generate ./internal/kitgen (-have +want):\n%s", name, diff)
		}
	}
}

// TestModel looks at one of each thing that the model takes from another source.
func TestModel(t *testing.T) {
	t.Parallel()

	m, err := load(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(m.Messages, func(m message) bool { return m.Name == "Decision" })
	if i < 0 {
		t.Fatal("no message Decision")
	}
	want := []field{
		{Name: "verdict", Doc: `"allow", "ask" or "deny".`, Type: "string", Required: true, Words: "Verdict"},
		{Name: "reason", Type: "string"},
		{Name: "reason_code", Type: "string"},
	}
	if diff := cmp.Diff(want, m.Messages[i].Fields); diff != "" {
		t.Errorf("fields of Decision (-want +got):\n%s", diff)
	}
	p := phase{
		Name: "tool.pre_call", When: "before a tool runs", Key: "ToolPreCall", Field: "tool_pre_call", Message: "ToolPreCallInput",
		Kinds: []string{"decision", "rewrite", "reminder"},
	}
	if i := slices.IndexFunc(m.Phases, func(q phase) bool { return q.Name == p.Name }); i < 0 || !cmp.Equal(m.Phases[i], p) {
		t.Errorf("phases %+v, want %+v among them", m.Phases, p)
	}
	if !slices.ContainsFunc(m.Words, func(w wordSet) bool {
		return w.Name == "Verdict" && slices.Equal(w.Values, []string{"allow", "ask", "deny"})
	}) {
		t.Errorf("words %+v, want the verdicts among them", m.Words)
	}
}

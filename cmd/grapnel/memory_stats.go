package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
)

// memoryStats is the JSON of memory stats.
type memoryStats struct {
	Memory     string           `json:"memory"     jsonschema:"where the memories are, without user and password"`
	Bytes      int64            `json:"bytes"      jsonschema:"the size of the whole database; 0 if there is none"`
	Untidy     bool             `json:"untidy"     jsonschema:"bytes of what was forgotten may still be in the files; it is tried again when something is forgotten or the memory is opened"`
	Workspaces []workspaceStats `json:"workspaces"`
}

// workspaceStats are about one workspace.
type workspaceStats struct {
	WorkspaceID string         `json:"workspace_id"`
	Items       int            `json:"items"        jsonschema:"memories in effect"`
	History     int            `json:"history"      jsonschema:"memories that others took the place of"`
	Uses        int            `json:"uses"         jsonschema:"how often they went into prompts"`
	Scopes      map[string]int `json:"scopes"       jsonschema:"memories in effect by scope"`
	Categories  map[string]int `json:"categories"   jsonschema:"memories in effect by category"`
}

// memoryStatsCommand counts.
func (a *app) memoryStatsCommand() *cobra.Command {
	var f memoryFlags
	c := &cobra.Command{
		Use:     "stats",
		Short:   "Count what is remembered, and say how large the database is",
		Example: "  grapnel memory stats --json",
		Args:    noArgs(),
		RunE:    func(c *cobra.Command, _ []string) error { return a.memoryStats(c.Context(), &f) },
	}
	f.registerWorkspace(c)
	return c
}

// memoryStats counts workspace by workspace.
func (a *app) memoryStats(ctx context.Context, f *memoryFlags) error {
	place, workspaces, err := a.survey(ctx, f)
	if err != nil {
		return err
	}
	result := memoryStats{Memory: place.name, Workspaces: []workspaceStats{}}
	if len(workspaces) > 0 {
		err = a.withMemory(ctx, place, itemstore.Options{ReadOnly: true}, func(s *itemstore.Store) error {
			for _, workspace := range workspaces {
				counts, err := s.Stats(ctx, itemstore.View{WorkspaceID: workspace, AllScopes: true})
				if err != nil {
					return err
				}
				result.Bytes, result.Untidy = counts.Bytes, counts.Untidy
				result.Workspaces = append(result.Workspaces, workspaceStats{
					workspace, counts.Items, counts.History, counts.Uses, named(counts.Scopes), named(counts.Categories),
				})
			}
			return nil
		})
	}
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(result)
	case len(workspaces) == 0:
		a.println(place.nothing())
		return nil
	}
	a.printMemoryStats(&result)
	return nil
}

// named are counts by plain names.
func named[T ~string](counts map[T]int) map[string]int {
	out := map[string]int{}
	for name, n := range counts {
		out[string(name)] = n
	}
	return out
}

// printMemoryStats prints one row per workspace.
func (a *app) printMemoryStats(r *memoryStats) {
	a.printf("%s: %s bytes\n", clean(r.Memory), text.Thousands(int(r.Bytes)))
	header := []string{"workspace", ">memories", ">history", ">uses"}
	for _, scope := range itemstore.Scopes() {
		header = append(header, ">of "+string(scope))
	}
	for _, category := range turnpolicy.Categories() {
		header = append(header, ">"+string(category))
	}
	t := newTable("workspaces", header...)
	for i := range r.Workspaces {
		w := &r.Workspaces[i]
		cells := []any{w.WorkspaceID, text.Thousands(w.Items), text.Thousands(w.History), text.Thousands(w.Uses)}
		for _, scope := range itemstore.Scopes() {
			cells = append(cells, text.Thousands(w.Scopes[string(scope)]))
		}
		for _, category := range turnpolicy.Categories() {
			cells = append(cells, text.Thousands(w.Categories[string(category)]))
		}
		t.add(cells...)
	}
	a.printTable(t)
	if r.Untidy {
		a.println("\nbytes of what was forgotten may still be in the files; it is tried again when something is forgotten or the memory is opened")
	}
}

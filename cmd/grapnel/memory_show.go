package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/toolset"
)

// memoryWhole is the JSON of memory show: a memory with all that is kept about it.
type memoryWhole struct {
	memoryRow

	Evidence     string           `json:"evidence"      jsonschema:"what was said, in the words in which it was said"`
	Source       itemstore.Source `json:"source"`
	Slot         string           `json:"slot"          jsonschema:"what it is the one answer to, such as home_city; most memories have none"`
	CreatedAt    time.Time        `json:"created_at"`
	LastUsedAt   *time.Time       `json:"last_used_at"  jsonschema:"when it last went into a prompt; null is never"`
	Supersedes   string           `json:"supersedes"    jsonschema:"the memory that it took the place of"`
	SupersededBy string           `json:"superseded_by" jsonschema:"the memory that took its place: it is history then"`
	// Shortened is for texts that are nearly all escapes.
	Shortened bool `json:"shortened" jsonschema:"the texts are not all there: there was no room in the tool's answer; export has them"`
}

// memoryShowCommand shows one memory.
func (a *app) memoryShowCommand() *cobra.Command {
	var f memoryFlags
	c := &cobra.Command{
		Use:     "show ID",
		Short:   "Show one memory with where it comes from",
		Long:    "Show prints a memory whole, with what was said when it was stored, also one that another\ntook the place of. Exit code 1 says that there is none with that ID.",
		Example: "  grapnel memory show 01KAHSXJ6N3M0Q0S3C3VJ0Y6QG",
		Args:    exactlyOne("show needs one ID; see: grapnel memory list"),
		RunE:    func(c *cobra.Command, args []string) error { return a.memoryShow(c.Context(), &f, args[0]) },
	}
	f.registerWorkspace(c)
	return c
}

// memoryShow finds the memory in whichever workspace has it.
func (a *app) memoryShow(ctx context.Context, f *memoryFlags, id string) error {
	place, workspaces, err := a.survey(ctx, f)
	if err != nil {
		return err
	}
	if len(workspaces) == 0 {
		return refused(fmt.Errorf("there is no memory %q: %s", id, place.nothing()))
	}
	var m memoryWhole
	err = a.withTools(ctx, place, func(ctx context.Context, t *memoryTools) error {
		whole, workspace, err := t.find(ctx, place, workspaces, id)
		m = wholeOf(workspace, &whole)
		return err
	})
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(m)
	}
	a.printMemory(&m)
	return nil
}

// wholeOf is a tool's answer with its workspace.
func wholeOf(workspace string, w *toolset.Whole) memoryWhole {
	d := &w.Item
	m := memoryWhole{
		memoryRow: rowOf(workspace, &d.Entry), Evidence: d.Evidence, Source: d.Source, Slot: d.Slot, CreatedAt: d.CreatedAt,
		Supersedes: d.Supersedes, SupersededBy: d.SupersededBy, Shortened: w.Shortened,
	}
	if d.WorkspaceID != "" {
		m.WorkspaceID = d.WorkspaceID
	}
	if !d.LastUsedAt.IsZero() {
		m.LastUsedAt = &d.LastUsedAt
	}
	return m
}

// printMemory prints a memory for people.
func (a *app) printMemory(m *memoryWhole) {
	a.printf("%s", rule("memory "+clean(m.ID)))
	a.println(m.Text)
	t := newTable("")
	t.add("workspace", m.WorkspaceID)
	t.add("scope", scopeName(string(m.Scope), m.ScopeID))
	t.add("category", m.Category)
	t.add("source", m.Source)
	t.add("slot", m.Slot)
	t.add("stored", clock(m.CreatedAt))
	t.add("last said", clock(m.UpdatedAt))
	used := "never"
	if m.LastUsedAt != nil {
		used = fmt.Sprintf("%d %s, last %s", m.Uses, plural(m.Uses, "time", "times"), clock(*m.LastUsedAt))
	}
	t.add("used", used)
	t.add("took the place of", m.Supersedes)
	t.add("place taken by", m.SupersededBy)
	a.println()
	a.printTable(t)
	if m.Evidence != "" {
		a.printf("\nwhat was said\n  %s\n", clean(m.Evidence))
	}
	if m.Shortened {
		a.println("\nnot all of it is shown; export has it")
	}
}

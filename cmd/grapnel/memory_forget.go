package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/toolset"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
)

// memoryForgotten is the JSON of memory forget.
type memoryForgotten struct {
	DryRun bool `json:"dry_run"`
	// Items are at most as many as list shows in a page.
	Items     []memoryRow `json:"items"     jsonschema:"what was to be forgotten, the first of them"`
	Count     int         `json:"count"     jsonschema:"how many were to be forgotten"`
	Forgotten []string    `json:"forgotten" jsonschema:"the ids that are gone, older versions included; of very many not all"`
	Gone      int         `json:"gone"      jsonschema:"how many are gone, older versions included"`
	More      bool        `json:"more"      jsonschema:"others fit the query that were not shown and not forgotten"`
	Lingering string      `json:"lingering" jsonschema:"why their bytes may still be in the files of the database; empty if they are not"`
}

// forgetFlags say what is to be forgotten.
type forgetFlags struct {
	memoryFlags
	narrowed

	ids      []string
	query    string
	all      bool
	yes, dry bool
}

// memoryForgetCommand removes memories for good.
func (a *app) memoryForgetCommand() *cobra.Command {
	var f forgetFlags
	c := &cobra.Command{
		Use:   "forget ID... | forget --query TEXT | forget --all",
		Short: "Remove memories for good",
		Long: "Forget removes memories by their ids, by what they say, or all of a workspace: texts,\n" +
			"evidence, and the versions that they had taken the place of. It shows what goes and asks\n" +
			"first; without a terminal it needs --yes. What was forgotten is not stored again before\n" +
			"the user asks for it. Copies elsewhere, such as backups and exports, are not touched.\n\n" +
			"--query and --all are about one workspace. Exit code 1: there is no memory with one of\n" +
			"the ids (then none is forgotten), or the answer was no.",
		Example: "  grapnel memory forget 01KAHSXJ6N3M0Q0S3C3VJ0Y6QG\n" +
			"  grapnel memory forget --query 'my old address' --workspace acme\n" +
			"  grapnel memory forget --all --workspace acme --yes",
		RunE: func(c *cobra.Command, args []string) error {
			f.ids = slices.Compact(slices.Sorted(slices.Values(args)))
			if err := f.check(); err != nil {
				return err
			}
			return a.memoryForget(c.Context(), &f)
		},
	}
	f.registerWorkspace(c)
	f.narrowed.register(c)
	flags := c.Flags()
	flags.StringVar(&f.query, "query", "", "forget what fits the `TEXT`")
	flags.BoolVar(&f.all, "all", false, "forget all memories of the workspace; with --scope and --category those")
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	flags.BoolVar(&f.dry, "dry-run", false, "show what would be forgotten, and forget nothing")
	return c
}

// maxForgetQuery is the most characters of --query, as of the tool.
const maxForgetQuery = 500

// check refuses what says too little, or two things.
func (f *forgetFlags) check() error {
	f.query = strings.TrimSpace(f.query)
	ways := 0
	for _, given := range []bool{len(f.ids) > 0, f.query != "", f.all} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return usagef("say what to forget: an ID (see: grapnel memory list), --query TEXT, or --all")
	case f.narrowed != (narrowed{}) && !f.all:
		return usagef("--scope and --category go with --all")
	case utf8.RuneCountInString(f.query) > maxForgetQuery:
		return usagef("--query has more than %d characters", maxForgetQuery)
	}
	return f.narrowed.check()
}

// doomed is what is about to be forgotten.
type doomed struct {
	// rows are shown; ids are all of a workspace's.
	rows  []memoryRow
	count int
	ids   map[string][]string
	// confirmation goes back to the tool with the query that gave it.
	confirmation string
}

// add notes one memory.
func (d *doomed) add(r memoryRow) {
	d.ids[r.WorkspaceID] = append(d.ids[r.WorkspaceID], r.ID)
	d.count++
	if len(d.rows) < memoryPage {
		d.rows = append(d.rows, r)
	}
}

// memoryForget finds what is meant, shows it, asks, and only then begins: nothing
// is open while a person thinks.
func (a *app) memoryForget(ctx context.Context, f *forgetFlags) error {
	place, workspaces, err := a.survey(ctx, &f.memoryFlags)
	if err == nil && len(f.ids) == 0 {
		workspaces, err = oneWorkspace(workspaces)
	}
	if err != nil {
		return err
	}
	d := &doomed{rows: []memoryRow{}, ids: map[string][]string{}}
	if err := a.findDoomed(ctx, f, place, workspaces, d); err != nil {
		return err
	}
	result := &memoryForgotten{DryRun: f.dry, Items: d.rows, Count: d.count, Forgotten: []string{}}
	if d.count > 0 && !f.dry {
		if err := a.agreed(f, d); err != nil {
			return err
		}
		if err := a.forgetDoomed(ctx, f, place, workspaces, d, result); err != nil {
			return err
		}
	}
	if result.Lingering != "" {
		tellf(a.err, "grapnel: it is forgotten, but bytes of it may still be in the files of the database: %s\n", result.Lingering)
	}
	if a.json {
		return a.printJSON(result)
	}
	nothing := nothingFits
	if len(workspaces) == 0 {
		nothing = place.nothing()
	}
	a.printForgotten(result, nothing)
	return nil
}

// oneWorkspace refuses several: what is taken away by its look is taken away in a
// place that was named.
func oneWorkspace(list []string) ([]string, error) {
	if len(list) < 2 {
		return list, nil
	}
	names := make([]string, min(len(list), 10))
	for i := range names {
		names[i] = clean(list[i])
	}
	return nil, usagef("there are memories of %d workspaces; choose one with --workspace: %s", len(list), strings.Join(names, ", "))
}

// findDoomed finds what is meant.
func (a *app) findDoomed(ctx context.Context, f *forgetFlags, place *memoryPlace, workspaces []string, d *doomed) error {
	switch {
	case len(workspaces) == 0 && len(f.ids) > 0:
		return refused(fmt.Errorf("there is no memory %q: %s", f.ids[0], place.nothing()))
	case len(workspaces) == 0:
		return nil
	case f.all:
		return a.findAll(ctx, f, place, workspaces[0], d)
	}
	return a.withTools(ctx, place, func(ctx context.Context, t *memoryTools) error {
		if f.query != "" {
			return t.failed(t.findMatching(ctx, f.query, workspaces[0], d))
		}
		for _, id := range f.ids {
			whole, workspace, err := t.find(ctx, place, workspaces, id)
			if err != nil {
				return err
			}
			d.add(rowOf(workspace, &whole.Item.Entry))
		}
		return nil
	})
}

// findAll reads all memories of a workspace out of the store: the tool shows fifty at
// once, and there may be many thousands.
func (a *app) findAll(ctx context.Context, f *forgetFlags, place *memoryPlace, workspace string, d *doomed) error {
	view := itemstore.View{WorkspaceID: workspace, AllScopes: true}
	filter := itemstore.Filter{Scope: itemstore.Scope(f.scope), Category: turnpolicy.Category(f.category)}
	page := itemstore.Page{Limit: itemstore.MaxPage}
	return a.withMemory(ctx, place, itemstore.Options{ReadOnly: true}, func(s *itemstore.Store) error {
		for {
			items, next, err := s.List(ctx, view, filter, page)
			if err != nil {
				return err
			}
			for i := range items {
				e := toolset.EntryOf(&items[i])
				d.add(rowOf(workspace, &e))
			}
			if page.After = next; next == "" {
				return nil
			}
		}
	})
}

// findMatching makes the first call of memory_forget, which forgets nothing.
func (t *memoryTools) findMatching(ctx context.Context, query, workspace string, d *doomed) error {
	var m toolset.Matches
	if err := t.call(ctx, workspace, toolset.Forget, map[string]any{"query": query}, &m); err != nil {
		return err
	}
	d.rows, d.count, d.confirmation = rowsOf(workspace, m.Matches), m.Count, m.Confirmation
	return nil
}

// agreed shows what goes, and asks whether it is to go.
func (a *app) agreed(f *forgetFlags, d *doomed) error {
	if f.yes {
		return nil
	}
	return a.confirm(doing{"forget", "forgotten"}, d.count, memories(d.count), func() {
		a.printMemories("to be forgotten", d.rows)
		if more := d.count - len(d.rows); more > 0 {
			a.printf("  and %s more\n", text.Thousands(more))
		}
	})
}

// forgetDoomed forgets what was shown.
func (a *app) forgetDoomed(ctx context.Context, f *forgetFlags, place *memoryPlace, workspaces []string, d *doomed, r *memoryForgotten) error {
	if f.all {
		return a.forgetAll(ctx, place, workspaces[0], d.ids[workspaces[0]], r)
	}
	return a.withTools(ctx, place, func(ctx context.Context, t *memoryTools) error {
		if f.query != "" {
			return t.failed(t.confirm(ctx, f.query, workspaces[0], d, r))
		}
		for workspace, ids := range d.ids {
			for part := range slices.Chunk(ids, maxToolPage) {
				var done toolset.Forgotten
				if err := t.call(ctx, workspace, toolset.Forget, map[string]any{"ids": part}, &done); err != nil {
					return t.failed(err)
				}
				r.add(&done)
			}
		}
		return nil
	})
}

// add notes what a call of the tool has forgotten.
func (r *memoryForgotten) add(done *toolset.Forgotten) {
	r.Forgotten = append(r.Forgotten, done.IDs...)
	r.Gone += done.Count
	r.More = r.More || done.More
	if done.Lingering != "" {
		r.Lingering = done.Lingering
	}
}

// confirm makes the second call of memory_forget. It forgets if the same memories
// match as before; otherwise it answers like the first one.
func (t *memoryTools) confirm(ctx context.Context, query, workspace string, d *doomed, r *memoryForgotten) error {
	var answer struct {
		toolset.Forgotten

		Confirmation string `json:"confirmation"`
	}
	if err := t.call(ctx, workspace, toolset.Forget, map[string]any{"query": query, "confirmation": d.confirmation}, &answer); err != nil {
		return err
	}
	if answer.Confirmation != "" || answer.Count == 0 {
		return refused(errors.New("nothing was forgotten: other memories fit by now; look again"))
	}
	r.add(&answer.Forgotten)
	return nil
}

// forgetPart is how many memories are forgotten at once. After each part the database
// is tidied up, which takes the longer, the larger it is.
const forgetPart = 5_000

// forgetAll forgets many: not by the tool, which takes fifty.
func (a *app) forgetAll(ctx context.Context, place *memoryPlace, workspace string, ids []string, r *memoryForgotten) error {
	view := itemstore.View{WorkspaceID: workspace, AllScopes: true}
	progress := a.newTally("forgetting: %s memories")
	defer progress.stop()
	return a.withMemory(ctx, place, itemstore.Options{}, func(s *itemstore.Store) error {
		for part := range slices.Chunk(ids, forgetPart) {
			done, err := s.Forget(ctx, view, part)
			r.removed(&done)
			progress.set(r.Gone)
			if err != nil && r.Gone > 0 {
				err = unable(fmt.Errorf("%s of %s are forgotten, the rest is not: %w", text.Thousands(r.Gone), memories(len(ids)), oneLine{err}))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// removed notes what the store has removed, and only the first ids of very many. What
// lingered after one part may be gone after the next.
func (r *memoryForgotten) removed(done *itemstore.Removed) {
	r.Gone += len(done.IDs)
	room := itemstore.MaxPage - min(len(r.Forgotten), itemstore.MaxPage)
	r.Forgotten = append(r.Forgotten, done.IDs[:min(len(done.IDs), room)]...)
	r.Lingering = ""
	if done.Lingering != nil {
		r.Lingering = oneLine{done.Lingering}.Error()
	}
}

// memories is a number of them.
func memories(n int) string { return text.Thousands(n) + plural(n, " memory", " memories") }

// printForgotten prints for people what is gone, or would go.
func (a *app) printForgotten(r *memoryForgotten, nothing string) {
	if r.Count == 0 {
		a.println(nothing)
		return
	}
	verb := "forgot"
	if r.DryRun {
		verb = "would forget"
	}
	a.printf("%s %s", verb, memories(r.Count))
	if older := r.Gone - r.Count; older > 0 {
		a.printf(" and %s %s of them", text.Thousands(older), plural(older, "older version", "older versions"))
	}
	a.println()
	a.printMemories("", r.Items)
	if more := r.Count - len(r.Items); more > 0 {
		a.printf("  and %s more\n", text.Thousands(more))
	}
	if r.More {
		a.println("\nmore than these fit: run the same again")
	}
}

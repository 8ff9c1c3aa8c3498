package main

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/plugins/memory/toolset"
)

// memoryPage is how many memories list shows unless it is told otherwise;
// maxToolPage is how many the tool gives at once.
const (
	memoryPage  = 50
	maxToolPage = 50
)

// memoryList is the JSON of memory list.
type memoryList struct {
	Items []memoryRow `json:"items"`
	Next  string      `json:"next"  jsonschema:"the cursor of what comes behind these; empty at the end"`
}

// memoryListCommand shows what is remembered.
func (a *app) memoryListCommand() *cobra.Command {
	var f memoryFlags
	var n narrowed
	var limit int
	var cursor string
	c := &cobra.Command{
		Use:   "list",
		Short: "List what is remembered, workspace by workspace, the latest first",
		Long: "List shows memories, those of each workspace together, the latest first. What others took\n" +
			"the place of is not shown; export has it.",
		Example: "  grapnel memory list --workspace acme\n" +
			"  grapnel memory list --scope user --limit 0 --json",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit %d: give a number of memories, or 0 for all", limit)
			}
			from, err := parsePlaceInList(cursor)
			if err == nil {
				err = n.check()
			}
			if err != nil {
				return err
			}
			return a.memoryList(c.Context(), &f, n, limit, from)
		},
	}
	f.registerWorkspace(c)
	n.register(c)
	c.Flags().IntVar(&limit, "limit", memoryPage, "list at most `N`; 0 lists all")
	c.Flags().StringVar(&cursor, "cursor", "", "go on where an earlier list ended, which gave the `CURSOR`")
	return c
}

// nothingFits is what there is to say where there are memories, and none are meant.
const nothingFits = "nothing that is remembered fits"

// placeInList is where a list goes on: in a workspace, behind a page of its.
type placeInList struct{ workspace, cursor string }

// String is the cursor that people are given.
func (p placeInList) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.workspace + "\x00" + p.cursor))
}

// parsePlaceInList reads a cursor. None is the beginning.
func parsePlaceInList(cursor string) (*placeInList, error) {
	if cursor == "" {
		return nil, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	workspace, rest, ok := strings.Cut(string(data), "\x00")
	if err != nil || !ok {
		return nil, usagef("--cursor %q: it is none that memory list has given", cursor)
	}
	return &placeInList{workspace, rest}, nil
}

// memoryList prints one row per memory.
func (a *app) memoryList(ctx context.Context, f *memoryFlags, n narrowed, limit int, from *placeInList) error {
	place, workspaces, err := a.survey(ctx, f)
	if err != nil {
		return err
	}
	result := memoryList{Items: []memoryRow{}}
	if from != nil {
		// A workspace may be gone by now: the list goes on with those behind it.
		workspaces = slices.DeleteFunc(workspaces, func(w string) bool { return w < from.workspace })
	}
	if len(workspaces) > 0 {
		err = a.withTools(ctx, place, func(ctx context.Context, t *memoryTools) error {
			return t.failed(t.list(ctx, workspaces, n, limit, from, &result))
		})
	}
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(result)
	case len(workspaces) == 0:
		a.println(place.nothing())
	case len(result.Items) == 0:
		a.println(nothingFits)
	}
	a.printMemories("", result.Items)
	if result.Next != "" {
		a.printf("\nthere are more: --limit 0 shows all, --cursor %s goes on here\n", result.Next)
	}
	return nil
}

// list gathers pages of the workspaces up to a limit; 0 is none.
func (t *memoryTools) list(ctx context.Context, workspaces []string, n narrowed, limit int, from *placeInList, into *memoryList) error {
	for i, workspace := range workspaces {
		cursor := ""
		if from != nil && from.workspace == workspace {
			cursor = from.cursor
		}
		for {
			room := maxToolPage
			if limit > 0 {
				room = min(room, limit-len(into.Items))
			}
			page, err := t.page(ctx, workspace, n, room, cursor)
			if err != nil {
				return err
			}
			into.Items = append(into.Items, rowsOf(workspace, page.Items)...)
			cursor = page.Next
			if limit > 0 && len(into.Items) >= limit {
				if cursor != "" {
					into.Next = placeInList{workspace, cursor}.String()
				} else if i+1 < len(workspaces) {
					into.Next = placeInList{workspaces[i+1], ""}.String()
				}
				return nil
			}
			if cursor == "" {
				break
			}
		}
	}
	return nil
}

// printMemories prints memories, with a column for their workspace if they are not
// all of one.
func (a *app) printMemories(title string, rows []memoryRow) {
	several := slices.ContainsFunc(rows, func(r memoryRow) bool { return r.WorkspaceID != rows[0].WorkspaceID })
	header := []string{"memory", "scope", "category", "said", ">uses", "text"}
	if several {
		header = append([]string{"workspace"}, header...)
	}
	t := newTable(title, header...)
	for i := range rows {
		r := &rows[i]
		cells := []any{r.ID, scopeName(string(r.Scope), r.ScopeID), r.Category, clock(r.UpdatedAt), r.Uses, r.Text}
		if several {
			cells = append([]any{r.WorkspaceID}, cells...)
		}
		t.add(cells...)
	}
	a.printTable(t)
}

// scopeName is a scope with whose it is.
func scopeName(scope, id string) string {
	if id == "" {
		return scope
	}
	return scope + " " + id
}

// memoryHit is a memory that was searched for and found.
type memoryHit struct {
	memoryRow

	Score float64 `json:"score" jsonschema:"how well it fits, in its workspace"`
}

// memoryHits is the JSON of memory search.
type memoryHits struct {
	Items []memoryHit `json:"items"`
}

// The numbers of memories that search shows.
const (
	searchLimit    = 10
	maxSearchLimit = 20
)

// memorySearchCommand finds memories as a turn would.
func (a *app) memorySearchCommand() *cobra.Command {
	var f memoryFlags
	limit := searchLimit
	c := &cobra.Command{
		Use:   "search QUERY",
		Short: "Show the memories that fit a query best, as a model's search would find them",
		Example: "  grapnel memory search 'which editor do I use' --workspace acme\n" +
			"  grapnel memory search deploy --json",
		Args: exactlyOne("search takes one QUERY; put several words into quotes"),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case limit < 1 || limit > maxSearchLimit:
				return usagef("--limit %d: give a number from 1 to %d", limit, maxSearchLimit)
			case strings.TrimSpace(args[0]) == "":
				return usagef("the QUERY is empty")
			}
			return a.memorySearch(c.Context(), &f, args[0], limit)
		},
	}
	f.registerWorkspace(c)
	c.Flags().IntVar(&limit, "limit", searchLimit, "show at most `N`")
	return c
}

// memorySearch searches each workspace. Scores of different workspaces compare only
// roughly: how rare a word is depends on what else is there.
func (a *app) memorySearch(ctx context.Context, f *memoryFlags, query string, limit int) error {
	place, workspaces, err := a.survey(ctx, f)
	if err != nil {
		return err
	}
	result := memoryHits{Items: []memoryHit{}}
	if len(workspaces) > 0 {
		err = a.withTools(ctx, place, func(ctx context.Context, t *memoryTools) error {
			return t.failed(t.search(ctx, workspaces, query, limit, &result))
		})
	}
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(result)
	case len(workspaces) == 0:
		a.println(place.nothing())
	case len(result.Items) == 0:
		a.println(nothingFits)
	}
	rows := make([]memoryRow, len(result.Items))
	for i := range rows {
		rows[i] = result.Items[i].memoryRow
	}
	a.printMemories("", rows)
	return nil
}

// search gathers what fits, the best first.
func (t *memoryTools) search(ctx context.Context, workspaces []string, query string, limit int, into *memoryHits) error {
	for _, workspace := range workspaces {
		var hits toolset.Hits
		if err := t.call(ctx, workspace, toolset.Search, map[string]any{"query": query, "limit": limit}, &hits); err != nil {
			return err
		}
		for i := range hits.Items {
			into.Items = append(into.Items, memoryHit{rowOf(workspace, &hits.Items[i]), hits.Items[i].Score})
		}
	}
	slices.SortStableFunc(into.Items, func(a, b memoryHit) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	into.Items = into.Items[:min(limit, len(into.Items))]
	return nil
}

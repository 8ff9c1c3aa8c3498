package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/suggest"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/words"
	"github.com/grapnelhq/grapnel/plugins/memory"
)

type memoryFlags struct {
	dsn       string // --memory: it may hold a password, and is in no message
	workspace string // the chosen one if chosen is set; "" is the workspace without a name
	chosen    bool
}

func (f *memoryFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.dsn, "memory", "", "where the memories are: sqlite:PATH or postgres://… (`DSN`; default the configuration's, then the user's data directory)")
}

func (f *memoryFlags) registerWorkspace(c *cobra.Command) {
	f.register(c)
	c.Flags().StringVar(&f.workspace, "workspace", "", "only memories of the workspace `ID` (default all)")
	c.PreRun = func(c *cobra.Command, _ []string) { f.chosen = c.Flags().Changed("workspace") }
}

// narrowed are flags that say which memories of a workspace are meant.
type narrowed struct {
	scope, category string
}

func (n *narrowed) register(c *cobra.Command) {
	c.Flags().StringVar(&n.scope, "scope", "", "only memories of the `SCOPE`: "+joined(itemstore.Scopes()))
	c.Flags().StringVar(&n.category, "category", "", "only memories of the `CATEGORY`: "+joined(turnpolicy.Categories()))
	completeFlag(c, "scope", wordsOf(itemstore.Scopes()))
	completeFlag(c, "category", wordsOf(turnpolicy.Categories()))
}

func (n *narrowed) filter() (itemstore.Filter, error) {
	f := itemstore.Filter{Scope: itemstore.Scope(n.scope), Category: turnpolicy.Category(n.category)}
	switch {
	case n.scope != "" && !slices.Contains(itemstore.Scopes(), f.Scope):
		return f, usagef("--scope %q: use one of %s", n.scope, joined(itemstore.Scopes()))
	case n.category != "" && !slices.Contains(turnpolicy.Categories(), f.Category):
		return f, usagef("--category %q: use one of %s", n.category, joined(turnpolicy.Categories()))
	}
	return f, nil
}

func wordsOf[T ~string](list []T) []string {
	var out []string
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}

func joined[T ~string](list []T) string { return strings.Join(wordsOf(list), ", ") }

// memories are what a command works on. Without a database the store is nil.
type memories struct {
	*itemstore.Store

	flags    *memoryFlags
	plugin   config.Plugin
	declared bool
	from     origin
	dsn      string
	// all are the workspaces with memories, and workspaces those that were chosen.
	all, workspaces []string
}

// memories finds the database: by the flag, the plugin's configuration, or the plugin's default.
func (a *app) memories(f *memoryFlags) (*memories, error) {
	if a.store != "" {
		return nil, usagef("--store says where manifests are kept; for memories use --memory")
	}
	cfg, from, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	m := &memories{flags: f, from: from, plugin: config.Plugin{Name: "memory"}}
	if i := slices.IndexFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Builtin == "memory" }); i >= 0 {
		m.plugin, m.declared = cfg.Plugins[i], true
	}
	if f.dsn != "" {
		dsn := f.dsn
		if path, file := strings.CutPrefix(dsn, sqliteScheme); file && path != "" && !strings.HasPrefix(path, "~/") {
			if path, err = filepath.Abs(path); err != nil {
				return nil, usagef("--memory: %w", err)
			}
			dsn = sqliteScheme + path
		}
		if m.plugin.Config, err = json.Marshal(map[string]string{"dsn": dsn}); err != nil {
			return nil, usagef("--memory: %w", err)
		}
	}
	if m.dsn, err = memory.DSN(m.plugin.Config, m.getenv); err != nil {
		return nil, usagef("%s: the configuration of the plugin %s: %w", from.name(), m.plugin.Name, err)
	}
	return m, nil
}

// getenv reads the environment that the plugin would get, or this process's if none is declared.
func (m *memories) getenv(name string) string {
	value, set := m.plugin.Env.Set[name]
	switch {
	case set:
		return value.Value
	case m.declared && !slices.Contains(m.plugin.Env.Pass, name):
		return ""
	}
	return os.Getenv(name)
}

// open opens the store for work, and closes it afterwards. It fails if the server does not answer in time; building
// the index may take as long as it takes.
func (m *memories) open(ctx context.Context, a *app, o itemstore.Options, work func() error) (err error) {
	opening, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(openTime, func() { cancel(noAnswer(m.dsn)) })
	defer silence.Stop()
	indexed := a.startCount("indexing: %s memories")
	o.Progress = func(done, _ int) {
		silence.Stop()
		indexed.Store(int64(done))
	}
	m.Store, err = itemstore.Open(opening, m.dsn, o)
	indexed.stop()
	silence.Stop()
	if err != nil {
		return storeError(err)
	}
	defer func() { err = firstOf(err, m.Close()) }()
	return storeError(work())
}

// withMemories opens the store for reading. It does not create a missing database.
func (a *app) withMemories(ctx context.Context, f *memoryFlags, work func(m *memories) error) error {
	m, err := a.memories(f)
	if err != nil {
		return err
	}
	do := func() (err error) {
		if m.all, err = m.Workspaces(ctx); err != nil {
			return err
		}
		m.workspaces = m.all
		if f.chosen {
			m.workspaces = slices.DeleteFunc(slices.Clone(m.all), func(w string) bool { return w != f.workspace })
		}
		return work(m)
	}
	err = m.open(ctx, a, itemstore.Options{ReadOnly: true}, do)
	if sqldb.HasCode(err, sqldb.CodeSchema) {
		// Opening for writing migrates what an older program wrote, and refuses what is not ours.
		err = m.open(ctx, a, itemstore.Options{}, do)
	}
	if m.Store == nil && sqldb.HasCode(err, sqldb.CodeNotFound) {
		return work(m)
	}
	return err
}

// whole is the view of somebody who may see all of a workspace.
func whole(workspace string) itemstore.View {
	return itemstore.View{WorkspaceID: workspace, AllScopes: true}
}

// nothing says that there are no memories, and where it looked.
func (m *memories) nothing() string {
	s := "nothing is remembered"
	if m.flags.chosen {
		s += " of the workspace " + cmp.Or(clean(m.flags.workspace), `""`) + suggest.DidYouMean(m.flags.workspace, m.all)
	}
	s += " in " + clean(shownDSN(m.dsn))
	if !m.declared && m.flags.dsn == "" {
		s += "; the configuration in force (" + clean(m.from.name()) + ") has no memory plugin"
	}
	return s
}

// find looks for a memory in the workspaces. If there is none, the error says which one may be meant.
func (m *memories) find(ctx context.Context, id string) (itemstore.Item, error) {
	if len(m.workspaces) == 0 {
		return itemstore.Item{}, refused(fmt.Errorf("there is no memory %q: %s", id, m.nothing()))
	}
	var ids []string
	for _, workspace := range m.workspaces {
		item, err := m.Get(ctx, whole(workspace), id)
		if !sqldb.HasCode(err, sqldb.CodeNotFound) {
			return item, err
		}
		page, _, err := m.List(ctx, whole(workspace), itemstore.Filter{}, itemstore.Page{Limit: itemstore.MaxPage})
		if err != nil {
			return item, err
		}
		for i := range page {
			ids = append(ids, page[i].ID)
		}
	}
	hint, in := suggest.DidYouMean(id, ids), ""
	// The beginning of an id is all that fits on some screens.
	if i := slices.IndexFunc(ids, func(full string) bool { return len(id) >= 6 && strings.HasPrefix(full, strings.ToUpper(id)) }); i >= 0 {
		hint = suggest.DidYouMean(ids[i], ids[i:i+1])
	}
	if m.flags.chosen {
		in = fmt.Sprintf(" in the workspace %q", m.flags.workspace)
	}
	return itemstore.Item{}, refused(fmt.Errorf("there is no memory %q%s%s; see: grapnel memory list", id, in, hint))
}

const memoryPage = 50 // how many memories list shows unless it is given a limit

type memoryList struct {
	Items []itemstore.Item `json:"items"`
	Next  string           `json:"next"  jsonschema:"the cursor of what comes behind these; empty at the end"`
}

func (a *app) memoryListCommand() *cobra.Command {
	var f memoryFlags
	var n narrowed
	var limit int
	var cursor string
	c := newCommand("list", "List what is remembered, workspace by workspace, the latest first", noArgs(),
		func(c *cobra.Command, _ []string) error {
			from, err := parsePlaceInList(cursor)
			if err != nil {
				return err
			}
			filter, err := n.filter()
			if err != nil {
				return err
			}
			if limit < 0 {
				return usagef("--limit %d: give a number of memories, or 0 for all", limit)
			}
			return a.withMemories(c.Context(), &f, func(m *memories) error {
				result := memoryList{Items: []itemstore.Item{}}
				if err := m.list(c.Context(), filter, limit, from, &result); err != nil {
					return err
				}
				return a.print(result, func() {
					a.printFound(m, result.Items)
					if result.Next != "" {
						a.printf("\nthere are more: --limit 0 shows all, --cursor %s goes on here\n", result.Next)
					}
				})
			})
		})
	f.registerWorkspace(c)
	n.register(c)
	c.Flags().IntVar(&limit, "limit", memoryPage, "list at most `N`; 0 lists all")
	c.Flags().StringVar(&cursor, "cursor", "", "go on where an earlier list ended, which gave the `CURSOR`")
	return c
}

// placeInList is where a list continues: a workspace and the store's cursor in it.
type placeInList struct{ workspace, cursor string }

func (p placeInList) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.workspace + "\x00" + p.cursor))
}

// parsePlaceInList reads a cursor; an empty one is the beginning.
func parsePlaceInList(cursor string) (placeInList, error) {
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	workspace, rest, ok := strings.Cut(string(data), "\x00")
	if cursor != "" && (err != nil || !ok) {
		return placeInList{}, usagef("--cursor %q: not a cursor from memory list", cursor)
	}
	return placeInList{workspace, rest}, nil
}

// list reads pages of the workspaces up to a limit; 0 means no limit. A workspace that is gone since is skipped.
func (m *memories) list(ctx context.Context, filter itemstore.Filter, limit int, from placeInList, into *memoryList) error {
	for i, workspace := range m.workspaces {
		if workspace < from.workspace {
			continue
		}
		page := itemstore.Page{Limit: itemstore.MaxPage}
		if workspace == from.workspace {
			page.After = from.cursor
		}
		for more := true; more; more = page.After != "" {
			if limit > 0 {
				page.Limit = min(itemstore.MaxPage, limit-len(into.Items))
			}
			items, next, err := m.List(ctx, whole(workspace), filter, page)
			if err != nil {
				return err
			}
			into.Items = append(into.Items, items...)
			page.After = next
			if limit == 0 || len(into.Items) < limit {
				continue
			}
			if next != "" {
				into.Next = placeInList{workspace, next}.String()
			} else if i+1 < len(m.workspaces) {
				into.Next = placeInList{m.workspaces[i+1], ""}.String()
			}
			return nil
		}
	}
	return nil
}

const nothingFits = "nothing that is remembered fits"

func (a *app) printFound(m *memories, items []itemstore.Item) {
	switch {
	case len(m.workspaces) == 0:
		a.println(m.nothing())
	case len(items) == 0:
		a.println(nothingFits)
	}
	a.printMemories("", items)
}

func (a *app) printMemories(title string, items []itemstore.Item) {
	several := slices.ContainsFunc(items, func(i itemstore.Item) bool { return i.WorkspaceID != items[0].WorkspaceID })
	printList(a, title, "?workspace|memory|scope|category|said|>uses|text", items, func(i *itemstore.Item) cells {
		return cells{words.If(several, i.WorkspaceID), i.ID, scopeName(i), i.Category, clock(i.UpdatedAt), i.Uses, i.Text}
	})
}

func scopeName(i *itemstore.Item) string { return strings.TrimSpace(string(i.Scope) + " " + i.ScopeID) }

type memoryHits struct {
	Items []itemstore.Hit `json:"items"`
}

const searchLimit, maxSearchLimit = 10, 20

func (a *app) memorySearchCommand() *cobra.Command {
	var f memoryFlags
	limit := searchLimit
	c := newCommand("search QUERY",
		"Show the memories that fit a query best, as a model's search would find them", exactlyOne("search takes one QUERY; put several words into quotes"),
		func(c *cobra.Command, args []string) error {
			switch {
			case limit < 1 || limit > maxSearchLimit:
				return usagef("--limit %d: give a number from 1 to %d", limit, maxSearchLimit)
			case strings.TrimSpace(args[0]) == "":
				return usagef("the QUERY is empty")
			}
			return a.memorySearch(c.Context(), &f, args[0], limit)
		})
	f.registerWorkspace(c)
	c.Flags().IntVar(&limit, "limit", searchLimit, "show at most `N`")
	return c
}

// Scores of different workspaces compare only roughly: how rare a word is depends on what else is there.
func (a *app) memorySearch(ctx context.Context, f *memoryFlags, query string, limit int) error {
	return a.withMemories(ctx, f, func(m *memories) error {
		result := memoryHits{Items: []itemstore.Hit{}}
		for _, workspace := range m.workspaces {
			hits, _, err := m.Search(ctx, whole(workspace), query, limit, time.Now())
			if err != nil {
				return err
			}
			result.Items = append(result.Items, hits...)
		}
		slices.SortStableFunc(result.Items, func(a, b itemstore.Hit) int { return cmp.Compare(b.Score, a.Score) })
		result.Items = result.Items[:min(limit, len(result.Items))]
		return a.print(result, func() {
			items := make([]itemstore.Item, len(result.Items))
			for i := range items {
				items[i] = result.Items[i].Item
			}
			a.printFound(m, items)
		})
	})
}

func (a *app) memoryShowCommand() *cobra.Command {
	var f memoryFlags
	c := newCommand("show ID",
		"Show one memory with where it comes from", exactlyOne("show needs one ID; see: grapnel memory list"),
		func(c *cobra.Command, args []string) error {
			return a.withMemories(c.Context(), &f, func(m *memories) error {
				item, err := m.find(c.Context(), args[0])
				if err != nil {
					return err
				}
				return a.print(item, func() { a.printMemory(&item) })
			})
		})
	f.registerWorkspace(c)
	return c
}

func (a *app) printMemory(i *itemstore.Item) {
	used := "never"
	if !i.LastUsedAt.IsZero() {
		used = fmt.Sprintf("%s, last %s", words.Count(i.Uses, "time", "times"), clock(i.LastUsedAt))
	}
	a.printf("%s%s\n\n", rule("memory "+clean(i.ID)), i.Text)
	a.printFields("workspace", i.WorkspaceID, "scope", scopeName(i), "category", i.Category, "source", i.Source, "slot", i.Slot,
		"stored", clock(i.CreatedAt), "last said", clock(i.UpdatedAt), "used", used,
		"took the place of", i.Supersedes, "place taken by", i.SupersededBy)
	if i.Evidence != "" {
		a.printf("\nwhat was said\n  %s\n", clean(i.Evidence))
	}
}

type memoryStats struct {
	Memory     string           `json:"memory"     jsonschema:"where the memories are, without user and password"`
	Bytes      int64            `json:"bytes"      jsonschema:"the size of the whole database; 0 if there is none"`
	Untidy     bool             `json:"untidy"     jsonschema:"bytes of what was forgotten may still be in the files; removing them is retried when something is forgotten or the memory is opened"`
	Workspaces []workspaceStats `json:"workspaces"`
}

type workspaceStats struct {
	WorkspaceID string                      `json:"workspace_id"`
	Items       int                         `json:"items"        jsonschema:"memories in effect"`
	History     int                         `json:"history"      jsonschema:"memories that others took the place of"`
	Uses        int                         `json:"uses"         jsonschema:"how often they went into prompts"`
	Scopes      map[itemstore.Scope]int     `json:"scopes"       jsonschema:"memories in effect by scope"`
	Categories  map[turnpolicy.Category]int `json:"categories"   jsonschema:"memories in effect by category"`
}

func (a *app) memoryStatsCommand() *cobra.Command {
	var f memoryFlags
	c := newCommand("stats", "Count what is remembered, and say how large the database is", noArgs(),
		func(c *cobra.Command, _ []string) error {
			return a.withMemories(c.Context(), &f, func(m *memories) error { return a.memoryStats(c.Context(), m) })
		})
	f.registerWorkspace(c)
	return c
}

func (a *app) memoryStats(ctx context.Context, m *memories) error {
	result := memoryStats{Memory: shownDSN(m.dsn), Workspaces: []workspaceStats{}}
	for _, workspace := range m.workspaces {
		s, err := m.Stats(ctx, whole(workspace))
		if err != nil {
			return err
		}
		result.Bytes, result.Untidy = s.Bytes, s.Untidy
		result.Workspaces = append(result.Workspaces, workspaceStats{workspace, s.Items, s.History, s.Uses, s.Scopes, s.Categories})
	}
	return a.print(result, func() {
		if len(m.workspaces) == 0 {
			a.println(m.nothing())
			return
		}
		a.printf("%s: %s bytes\n", clean(result.Memory), text.Thousands(int(result.Bytes)))
		scopes, categories := itemstore.Scopes(), turnpolicy.Categories()
		columns := "workspace|>memories|>history|>uses|>of " + strings.Join(wordsOf(scopes), "|>of ") + "|>" + strings.Join(wordsOf(categories), "|>")
		printList(a, "workspaces", columns, result.Workspaces, func(w *workspaceStats) cells {
			row := cells{w.WorkspaceID, text.Thousands(w.Items), text.Thousands(w.History), text.Thousands(w.Uses)}
			for _, scope := range scopes {
				row = append(row, text.Thousands(w.Scopes[scope]))
			}
			for _, category := range categories {
				row = append(row, text.Thousands(w.Categories[category]))
			}
			return row
		})
		if result.Untidy {
			a.println("\nbytes of what was forgotten may still be in the files; removing them is retried when something is forgotten or the memory is opened")
		}
	})
}

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
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/plugins/memory"
)

func (a *app) memoryCommands() *cobra.Command {
	return group("memory", "What the memory plugin remembers: look at it, have it forgotten, carry it elsewhere",
		command[memoryList](a, "list", "List what is remembered, workspace by workspace, the latest first", noArgs(), a.memoryList),
		command[memoryHits](a, "search QUERY", "Show the memories that fit a query best, as a model's search would find them",
			exactlyOne("search takes one QUERY; put several words into quotes"), a.memorySearch),
		command[itemstore.Item](a, "show ID", "Show one memory with where it comes from", exactlyOne("show needs one ID; see: grapnel memory list"), a.memoryShow),
		command[memoryForgotten](a, "forget ID... | forget --query TEXT | forget --person WHO | forget --all", "Remove memories for good", nil, a.memoryForget),
		command[memoryExported](a, "export [FILE]", "Write memories as JSON lines to a new FILE, or to standard output", atMost(1, "export takes at most one FILE"), a.memoryExport),
		command[memoryImported](a, "import FILE|-", "Add memories from JSON lines, as export writes them", exactlyOne("import takes one FILE, or - for standard input"), a.memoryImport),
		command[memoryStats](a, "stats", "Count what is remembered, and say how large the database is", noArgs(), a.memoryStats),
	)
}

type memoryFlags struct {
	DSN string `flag:"memory" usage:"where the memories are: sqlite:PATH or postgres://… ({DSN}; default the configuration's, then the user's data directory)"`
}

// memoriesFlags choose workspaces: "" is the workspace without a name.
type memoriesFlags struct {
	memoryFlags

	Workspace *string `flag:"workspace" usage:"only memories of the workspace {ID} (default all)"`
}

// narrowed are flags that say which memories of a workspace are meant.
type narrowed struct {
	Scope    itemstore.Scope     `flag:"scope"    usage:"only memories of the {SCOPE}: workspace, user, agent, thread"                          words:"workspace|user|agent|thread"`
	Category turnpolicy.Category `flag:"category" usage:"only memories of the {CATEGORY}: preference, fact, decision, task, instruction, other" words:"preference|fact|decision|task|instruction|other"`
}

func (n *narrowed) filter() itemstore.Filter {
	return itemstore.Filter{Scope: n.Scope, Category: n.Category}
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

	flags    *memoriesFlags
	plugin   config.Plugin
	declared bool
	from     origin
	dsn      string
	// all are the workspaces with memories, and workspaces those that were chosen.
	all, workspaces []string
}

// memories finds the database: by the flag, the plugin's configuration, or the plugin's default.
func (a *app) memories(f *memoriesFlags) (*memories, error) {
	if a.Store != "" {
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
	if f.DSN != "" {
		dsn := f.DSN
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
func (a *app) withMemories(ctx context.Context, f *memoriesFlags, work func(m *memories) error) error {
	m, err := a.memories(f)
	if err != nil {
		return err
	}
	do := func() (err error) {
		if m.all, err = m.Workspaces(ctx); err != nil {
			return err
		}
		m.workspaces = m.all
		if f.Workspace != nil {
			m.workspaces = slices.DeleteFunc(slices.Clone(m.all), func(w string) bool { return w != *f.Workspace })
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

// untidy reports whether bytes of forgotten memories may still be in the files. Where there is no database there are none.
func (m *memories) untidy(ctx context.Context) (bool, error) {
	if m.Store == nil {
		return false, nil
	}
	return m.Untidy(ctx)
}

// whole is the view of all scopes of a workspace.
func whole(workspace string) itemstore.View {
	return itemstore.View{WorkspaceID: workspace, AllScopes: true}
}

// nothing says that there are no memories, and where it looked.
func (m *memories) nothing() string {
	s := "nothing is remembered"
	if w := m.flags.Workspace; w != nil {
		s += " of the workspace " + cmp.Or(clean(*w), `""`) + suggest.DidYouMean(*w, m.all)
	}
	s += " in " + clean(shownDSN(m.dsn))
	if !m.declared && m.flags.DSN == "" {
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
	if m.flags.Workspace != nil {
		in = fmt.Sprintf(" in the workspace %q", *m.flags.Workspace)
	}
	return itemstore.Item{}, refused(fmt.Errorf("there is no memory %q%s%s; see: grapnel memory list", id, in, hint))
}

const memoryPage = 50 // how many memories forget shows

type memoryList struct {
	Items []itemstore.Item `json:"items"`
	Next  string           `json:"next"  jsonschema:"the cursor of what comes behind these; empty at the end"`
}

type memoryListFlags struct {
	memoriesFlags
	narrowed

	Limit  int    `default:"50"  flag:"limit"                                                       usage:"list at most {N}; 0 lists all"`
	Cursor string `flag:"cursor" usage:"go on where an earlier list ended, which gave the {CURSOR}"`
}

func (a *app) memoryList(ctx context.Context, f *memoryListFlags, _ []string) error {
	from, err := parsePlaceInList(f.Cursor)
	if err != nil {
		return err
	}
	return a.withMemories(ctx, &f.memoriesFlags, func(m *memories) error {
		result := memoryList{Items: []itemstore.Item{}}
		if err := m.list(ctx, f.filter(), f.Limit, from, &result); err != nil {
			return err
		}
		return a.print(result, func() {
			a.printFound(m, result.Items)
			if result.Next != "" {
				a.printf("\nthere are more: --limit 0 shows all, --cursor %s goes on here\n", result.Next)
			}
		})
	})
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

// list reads the workspaces from a place on, up to a limit; 0 means no limit. A workspace that is gone since is skipped.
func (m *memories) list(ctx context.Context, filter itemstore.Filter, limit int, from placeInList, into *memoryList) error {
	for _, workspace := range m.workspaces {
		at := placeInList{workspace: workspace}
		switch {
		case workspace < from.workspace:
			continue
		case workspace == from.workspace:
			at = from
		}
		page := itemstore.Page{Limit: itemstore.MaxPage, After: at.cursor}
		if limit > 0 {
			page.Limit = min(itemstore.MaxPage, limit-len(into.Items)+1)
		}
		for item, err := range m.All(ctx, whole(workspace), filter, page) {
			switch {
			case err != nil:
				return err
			case limit > 0 && len(into.Items) == limit:
				into.Next = at.String()
				return nil
			}
			into.Items = append(into.Items, item)
			at.cursor = item.ID
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

const maxSearchLimit = 20

type searchFlags struct {
	memoriesFlags

	Limit int `default:"10" flag:"limit" usage:"show at most {N}"`
}

// memorySearch searches each workspace. Scores of different workspaces compare only roughly: how rare a word is depends on what else is there.
func (a *app) memorySearch(ctx context.Context, f *searchFlags, args []string) error {
	query, limit := args[0], f.Limit
	switch {
	case limit < 1 || limit > maxSearchLimit:
		return usagef("--limit %d: give a number from 1 to %d", limit, maxSearchLimit)
	case strings.TrimSpace(query) == "":
		return usagef("the QUERY is empty")
	}
	return a.withMemories(ctx, &f.memoriesFlags, func(m *memories) error {
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

func (a *app) memoryShow(ctx context.Context, f *memoriesFlags, args []string) error {
	return a.withMemories(ctx, f, func(m *memories) error {
		item, err := m.find(ctx, args[0])
		if err != nil {
			return err
		}
		return a.print(item, func() { a.printMemory(&item) })
	})
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

func (a *app) memoryStats(ctx context.Context, f *memoriesFlags, _ []string) error {
	return a.withMemories(ctx, f, func(m *memories) error { return a.countMemories(ctx, m) })
}

func (a *app) countMemories(ctx context.Context, m *memories) error {
	untidy, err := m.untidy(ctx)
	if err != nil {
		return err
	}
	result := memoryStats{Memory: shownDSN(m.dsn), Untidy: untidy, Workspaces: []workspaceStats{}}
	for _, workspace := range m.workspaces {
		s, err := m.Stats(ctx, whole(workspace))
		if err != nil {
			return err
		}
		result.Bytes = s.Bytes
		result.Workspaces = append(result.Workspaces, workspaceStats{workspace, s.Items, s.History, s.Uses, s.Scopes, s.Categories})
	}
	return a.print(result, func() {
		if untidy {
			defer a.println("\nbytes of what was forgotten may still be in the files; removing them is retried when something is forgotten or the memory is opened")
		}
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
	})
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory"
	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/store/sqldb"
)

// memoryCommand holds what a person has to do with memories. Looking and forgetting
// go over the plugin's own tools; what is about all there is goes to the store.
func (a *app) memoryCommand() *cobra.Command {
	return group("memory", "What the memory plugin remembers: look at it, have it forgotten, carry it elsewhere",
		a.memoryListCommand(), a.memorySearchCommand(), a.memoryShowCommand(), a.memoryForgetCommand(),
		a.memoryExportCommand(), a.memoryImportCommand(), a.memoryStatsCommand(),
	)
}

// memoryFlags are what the commands take.
type memoryFlags struct {
	// dsn is --memory: it may hold a password, and is in no message.
	dsn string
	// workspace is the one that is meant, if chosen says so: the empty one is the
	// workspace without a name.
	workspace string
	chosen    bool
}

// register adds the flag of all commands.
func (f *memoryFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.dsn, "memory", "", "where the memories are: sqlite:PATH or postgres://… (`DSN`; default the configuration's, then the user's data folder)")
}

// registerWorkspace adds the flag of those that are about workspaces.
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
	for name, words := range map[string][]string{"scope": words(itemstore.Scopes()), "category": words(turnpolicy.Categories())} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for flags that are not there
	}
}

// check refuses words that there are not.
func (n *narrowed) check() error {
	if n.scope != "" && !slices.Contains(itemstore.Scopes(), itemstore.Scope(n.scope)) {
		return usagef("--scope %q: use one of %s", n.scope, joined(itemstore.Scopes()))
	}
	if n.category != "" && !slices.Contains(turnpolicy.Categories(), turnpolicy.Category(n.category)) {
		return usagef("--category %q: use one of %s", n.category, joined(turnpolicy.Categories()))
	}
	return nil
}

// words are the values of a vocabulary.
func words[T ~string](list []T) []string {
	var out []string
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}

func joined[T ~string](list []T) string { return strings.Join(words(list), ", ") }

// memoryName is the name of the plugin, both the built-in one and the usual one in a
// configuration.
const memoryName = "memory"

// memoryPlace is where memories are, and the plugin that looks after them.
type memoryPlace struct {
	flags *memoryFlags
	// cfg is the configuration in force, which comes from there, and plugin what it
	// declares; where it declares none, that is one with the defaults.
	cfg      *config.Config
	from     origin
	plugin   config.Plugin
	declared bool
	// dsn opens the store; name is what people are told.
	dsn, name string
	// found are all workspaces that have memories, once survey has looked.
	found []string
}

// memoryPlace finds the memories: by the flag, the configuration of the plugin, or
// where the plugin keeps them by itself.
func (a *app) memoryPlace(f *memoryFlags) (*memoryPlace, error) {
	if a.store != "" {
		return nil, usagef("--store says where manifests are kept; for memories use --memory")
	}
	cfg, from, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	p := &memoryPlace{flags: f, cfg: cfg, from: from, plugin: config.Plugin{Name: memoryName, Builtin: memoryName}}
	if i := slices.IndexFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Builtin == memoryName }); i >= 0 {
		p.plugin, p.declared = cfg.Plugins[i], true
	}
	if f.dsn != "" {
		dsn, err := fromHere(f.dsn)
		if err == nil {
			p.plugin.Config, err = withMember(p.plugin.Config, "dsn", dsn)
		}
		if err != nil {
			return nil, usagef("--memory: %w", err)
		}
	}
	if p.dsn, err = p.find(); err != nil {
		return nil, usagef("%s: the configuration of the plugin %s: %w", from.name(), p.plugin.Name, err)
	}
	p.name = shownDSN(p.dsn)
	// The plugin in this process is to find what was found here.
	p.plugin.Config, err = withMember(p.plugin.Config, "dsn", p.dsn)
	return p, err
}

// fromHere makes the relative path of a SQLite file one from the working folder, which
// is what somebody means who types it.
func fromHere(dsn string) (string, error) {
	path, file := strings.CutPrefix(dsn, sqliteScheme)
	if !file || path == "" || strings.HasPrefix(path, "~/") {
		return dsn, nil
	}
	path, err := filepath.Abs(path)
	return sqliteScheme + path, err
}

// find asks the plugin's own rules where the memories are.
func (p *memoryPlace) find() (string, error) {
	c, err := memory.ParseConfig(p.plugin.Config)
	if err != nil {
		return "", err
	}
	s, err := c.Settings(p.getenv)
	return s.DSN, err
}

// getenv is the environment as the plugin would see it: what it is handed. Where none
// is declared it is that of this process.
func (p *memoryPlace) getenv(name string) string {
	value, set := p.plugin.Env.Set[name]
	switch {
	case set:
		return value.Value
	case p.declared && !slices.Contains(p.plugin.Env.Pass, name):
		return ""
	}
	return os.Getenv(name)
}

// withMember is a JSON object with one member set.
func withMember(object json.RawMessage, name, value string) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(object) > 0 {
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	members[name] = text
	return json.Marshal(members)
}

// open opens the store. Commands that only look open it for reading. A server that
// says nothing is out of reach; making the index anew takes as long as it takes.
func (p *memoryPlace) open(ctx context.Context, a *app, o itemstore.Options) (*itemstore.Store, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(openTime, func() { cancel(errNoAnswer) })
	defer silence.Stop()
	indexed := a.newTally("indexing: %s memories")
	defer indexed.stop()
	o.Progress = func(done, _ int) {
		silence.Stop()
		indexed.set(done)
	}
	return itemstore.Open(ctx, p.dsn, o)
}

// withMemory opens the store, works on it, and closes it.
func (a *app) withMemory(ctx context.Context, p *memoryPlace, o itemstore.Options, work func(*itemstore.Store) error) (err error) {
	s, err := p.open(ctx, a, o)
	if err != nil {
		return memoryError(err)
	}
	defer func() { err = firstOf(err, s.Close()) }()
	return memoryError(work(s))
}

// survey finds the memories, and the workspaces that a command is about: the chosen
// one, or all that have any. Where there is no database there is none; a SQLite file
// is not made by looking.
func (a *app) survey(ctx context.Context, f *memoryFlags) (*memoryPlace, []string, error) {
	p, err := a.memoryPlace(f)
	if err != nil {
		return nil, nil, err
	}
	var list []string
	look := func(s *itemstore.Store) (err error) {
		list, err = s.Workspaces(ctx)
		return err
	}
	err = a.withMemory(ctx, p, itemstore.Options{ReadOnly: true}, look)
	if sqldb.HasCode(err, sqldb.CodeSchema) {
		// An older program wrote it, or none of ours: opening it for writing brings it up
		// to date, or refuses it untouched.
		err = a.withMemory(ctx, p, itemstore.Options{}, look)
	}
	switch {
	case sqldb.HasCode(err, sqldb.CodeNotFound):
		return p, nil, nil
	case err != nil:
		return nil, nil, err
	}
	switch p.found = list; {
	case f.chosen && slices.Contains(list, f.workspace):
		return p, []string{f.workspace}, nil
	case f.chosen:
		return p, nil, nil
	}
	return p, list, nil
}

// nothing says that there are no memories, and where none were found.
func (p *memoryPlace) nothing() string {
	s := "nothing is remembered"
	if p.flags.chosen {
		s += " of the workspace " + cmp.Or(clean(p.flags.workspace), `""`) + phases.DidYouMean(p.flags.workspace, p.found)
	}
	s += " in " + clean(p.name)
	if !p.declared {
		s += "; the configuration in force (" + clean(p.from.name()) + ") has no memory plugin"
	}
	return s
}

// memoryError gives a failure of the store its exit code.
func memoryError(err error) error {
	if err == nil {
		return nil
	}
	if _, coded := errors.AsType[*exitError](err); coded {
		return err
	}
	err = oneLine{err}
	if sqldb.HasCode(err, sqldb.CodeDSN) || sqldb.HasCode(err, itemstore.CodeInvalid) {
		return usagef("%w", err)
	}
	return unable(err)
}

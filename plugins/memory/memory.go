// Package memory is the memory plugin: it remembers durable facts across turns and brings back what matters, with
// hooks and tools alone. It uses nothing of Grapnel that another plugin cannot use, and owns its data, in SQLite or
// PostgreSQL.
//
// # The hooks
//
//   - "policy" answers turn.pre_policy with the policy memory/turn_policy: what the user wishes of memory, or what
//     the host or the operator wants instead.
//   - "recall" answers turn.pre_prompt_context with the memories about what the user says, as a context that is not
//     rendered.
//   - "active_recall" does the same at turn.post_preflight_prompt_context, by the queries of the host's plan
//     {"queries": […]}.
//   - "tools" answers turn.pre_tool_materialization with the bundle memory: the tools that the policy allows.
//   - "prompt" answers turn.pre_prompt_compile with the section memory_recall, made of what the two recalls found.
//   - "extract" listens at turn.post_turn: it stores what the user stated, and notes which memories were used.
//
// They share only the policy and the contexts of the turn. Without the policy entry they neither read nor write.
//
// # Whose memory it is
//
// What users say of themselves (preferences, facts, standing instructions) belongs to that user in this workspace;
// decisions and tasks belong to the workspace, and so does everything if the host does not say who the user is. The
// tool memory_remember may choose another scope. A turn sees the memories of its workspace, conversation, agent and
// user, and no others.
//
// Only the words of users count: a turn that an agent or the system caused ([phases.Actor]) has no wishes, and
// nothing of it is stored.
//
// "Remember that …" opens the tool memory_remember, and a sentence in the section asks the model to call it. A text
// is stored once, and if the host reports a successful call of the tool, extraction leaves the request to it.
// Forgotten memories come back only under an explicit wish.
//
// # Failures
//
// No hook fails a turn. If the database is locked, full or unreachable, the hook fails with a code such as
// memory_locked and a hint, and later calls retry. If a model fails, the rules replace it, with a diagnostic.
//
// Stability: experimental until 1.0.
package memory

import (
	"context"
	_ "embed" // the schema
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/facts/secret"
	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/internal/toolset"
	"github.com/grapnelhq/grapnel/sdk"
)

const (
	domain   = "memory"
	priority = 500 // of policy and section: below the instructions of the tree (600), above skills (400)

	// The timeouts that the hooks propose.
	quickTime  = 250 * time.Millisecond
	recallTime = 500 * time.Millisecond
	activeTime = 3 * time.Second

	openTime = 2 * time.Second // to open a database while the plugin is configured; later the first call opens it
)

//go:embed schema.json
var configSchema []byte

// New returns the plugin. It reads the clock, and the process's environment for the place of its data directory.
func New() *sdk.Plugin { return newPlugin(&life{getenv: os.Getenv, now: time.Now, openTime: openTime}) }

func newPlugin(l *life) *sdk.Plugin {
	return &sdk.Plugin{
		Name:         "memory",
		Version:      "0.1.0",
		Doc:          "Remembers durable facts across turns and brings back what matters.",
		ConfigSchema: configSchema,
		OnConfigure:  l.configure,
		OnClose:      l.close,
	}
}

// life is what outlives a configuration: the database, the rules and the scanner.
type life struct {
	getenv   func(string) string
	now      func() time.Time
	openTime time.Duration

	mu      sync.Mutex
	rules   *turnpolicy.Rules
	scanner *secret.Scanner
	db      *database
	dsn     string
}

// configure opens a changed database beside the old one, which is closed after its last call.
func (l *life) configure(ctx context.Context, c *phases.Configuration) (sdk.Setup, error) {
	settings, err := parseSettings(c.Config, l.getenv)
	if err != nil {
		return sdk.Setup{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rules == nil {
		if l.rules, err = turnpolicy.Builtin(); err != nil {
			return sdk.Setup{}, err
		}
		l.scanner = secret.New()
		// Languages are compiled on first use. English is the largest, and the first turn has only its hook's time.
		_ = l.rules.Wishes("Remember.")
	}
	if err := l.useDatabase(ctx, settings.DSN); err != nil {
		return sdk.Setup{}, err
	}
	m := &memory{
		settings: settings, db: l.db, rules: l.rules, scanner: l.scanner, now: l.now,
		model: slices.Contains(c.Services, "model"),
	}
	return sdk.Setup{Hooks: m.hooks(), Tools: m.tools()}, nil
}

// useDatabase makes the database of a DSN the one in use. Transient failures are left to the first call.
func (l *life) useDatabase(ctx context.Context, dsn string) error {
	if l.db != nil && l.dsn == dsn {
		return nil
	}
	db := newDatabase(func(ctx context.Context) (*itemstore.Store, error) {
		s, err := itemstore.Open(ctx, dsn, itemstore.Options{Now: l.now})
		return s, tooLate(err, dsn)
	}, l.now)
	ctx, cancel := context.WithTimeout(ctx, l.openTime)
	defer cancel()
	if err := db.use(ctx, func(*itemstore.Store) error { return nil }); err != nil && !transient(err) {
		return &phases.ConfigError{Pointer: "/dsn", Message: err.Error()}
	}
	if l.db != nil {
		_ = l.db.retire() // its data is safe
	}
	l.db, l.dsn = db, dsn
	return nil
}

func (l *life) close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.db == nil {
		return nil
	}
	db := l.db
	l.db = nil // a running host may configure the plugin again
	return db.retire()
}

// memory is the plugin under one configuration. It is safe for concurrent use.
type memory struct {
	settings settings
	db       *database
	rules    *turnpolicy.Rules
	scanner  *secret.Scanner
	now      func() time.Time
	model    bool // the host lets the plugin ask a model
}

// hooks are the subscriptions. None fails a phase: a turn without memory is better than no turn.
func (m *memory) hooks() []sdk.Hook {
	hooks := []sdk.Hook{
		{
			Name: "policy", Doc: "says what memory may do in the turn",
			Kinds: []phases.Kind{phases.KindPolicy}, Priority: priority, Timeout: quickTime, Needs: []string{"user_text"}, PrePolicy: m.policy,
		},
		{
			Name: "recall", Doc: "recalls what is remembered about what the user says",
			Kinds: []phases.Kind{phases.KindPromptContext, phases.KindAudit}, Timeout: recallTime, Needs: []string{"user_text", "policy"}, PrePromptContext: m.recall,
		},
		{
			Name: "active_recall", Doc: "recalls by the queries of the host's plan",
			Kinds: []phases.Kind{phases.KindPromptContext, phases.KindAudit}, Timeout: activeTime, Needs: []string{"recall_plan", "policy"}, PostPreflight: m.activeRecall,
		},
		{
			Name: "tools", Doc: "offers the memory tools that the turn's policy allows",
			Kinds: []phases.Kind{phases.KindToolBundle}, Timeout: quickTime, Needs: []string{"tool_calling", "policy"}, PreTools: m.offer,
		},
		{
			Name: "prompt", Doc: "writes what was recalled into the section memory_recall",
			Kinds: []phases.Kind{phases.KindPromptSection}, Priority: priority, Timeout: quickTime, Needs: []string{"policy", "context"}, PrePromptCompile: m.prompt,
		},
		{
			Name: "extract", Doc: "stores what the user stated, and notes which memories were used",
			Kinds: []phases.Kind{phases.KindAudit}, Role: phases.RoleObserve, PostTurn: m.extract,
			Needs: []string{"user_text", "status", "policy"},
			Retry: &phases.Retry{Attempts: 2, Backoff: phases.Duration(time.Second)},
		},
	}
	for i := range hooks {
		hooks[i].Idempotent, hooks[i].Visibility = true, phases.VisibilityUserAudit
		hooks[i].OnFailure = phases.OnFailure{Default: phases.BestEffort}
	}
	return hooks
}

// tools are the five tools. The hook "tools" says which of them a turn has.
func (m *memory) tools() []sdk.Tool {
	handlers := map[string]sdk.ToolHandler{
		toolset.Search: tool(m, toolset.ParseSearch, m.search), toolset.List: tool(m, toolset.ParseList, m.list),
		toolset.Get: tool(m, toolset.Parse[toolset.GetArguments], m.get), toolset.Remember: tool(m, toolset.Parse[toolset.RememberArguments], m.remember),
		toolset.Forget: tool(m, toolset.ParseForget, m.forget),
	}
	var all []sdk.Tool
	for _, definition := range toolset.Definitions(allows(turnpolicy.Normal.Policy())) {
		all = append(all, sdk.Tool{Tool: definition, Call: handlers[definition.Name]})
	}
	return all
}

const sqlitePrefix = "sqlite:"

// reader says who finds facts in the user's words.
type reader string

const (
	readerRules reader = "rules" // the rules of package turnpolicy alone
	readerModel reader = "model" // a model, with the rules as its fallback
	readerAuto  reader = "auto"  // a model, and the rules alone if the host grants none
)

// settings are the operator's configuration with its defaults.
type settings struct {
	// DSN is "sqlite:PATH", the path absolute or below "~/", or the URL of a PostgreSQL database. Empty is a file in
	// the plugin's data directory.
	DSN                 string            `json:"dsn"`
	DefaultPolicy       turnpolicy.Preset `json:"default_policy"`        // for turns without a wish of the user
	Extraction          reader            `json:"extraction"`            // of facts
	UserScopeEverywhere bool              `json:"user_scope_everywhere"` // recalls a user's own memories in all workspaces
}

// DSN returns where a plugin with this configuration keeps its memories, for programs that open the same database. It
// asks the environment for XDG_DATA_HOME and HOME. Errors are [*phases.ConfigError].
func DSN(configuration json.RawMessage, getenv func(string) string) (string, error) {
	c, err := parseSettings(configuration, getenv)
	return c.DSN, err
}

func parseSettings(data json.RawMessage, getenv func(string) string) (settings, error) {
	c := settings{DefaultPolicy: turnpolicy.Normal, Extraction: readerAuto}
	if err := sdk.DecodeConfig(data, &c); err != nil {
		return settings{}, err
	}
	if !slices.Contains(turnpolicy.Defaults(), c.DefaultPolicy) {
		return settings{}, sdk.ConfigErrorf("/default_policy", "%q is not one of %q", c.DefaultPolicy, turnpolicy.Defaults())
	}
	if readers := []reader{readerRules, readerModel, readerAuto}; !slices.Contains(readers, c.Extraction) {
		return settings{}, sdk.ConfigErrorf("/extraction", "%q is not one of %q", c.Extraction, readers)
	}
	var err error
	c.DSN, err = completeDSN(c.DSN, getenv)
	return c, err
}

func completeDSN(dsn string, getenv func(string) string) (string, error) {
	path, file := strings.CutPrefix(dsn, sqlitePrefix)
	below, tilde := strings.CutPrefix(path, "~/")
	data, home := getenv("XDG_DATA_HOME"), getenv("HOME")
	switch {
	case strings.ContainsRune(dsn, 0):
		return "", sdk.ConfigErrorf("/dsn", "the DSN contains a NUL")
	case file && !tilde && !filepath.IsAbs(path):
		// A plugin has a working directory of its own, which nobody means.
		return "", sdk.ConfigErrorf("/dsn", "the path of %q is neither absolute nor below ~/", dsn)
	case dsn != "" && (!file || !tilde):
		return dsn, nil
	case dsn == "" && filepath.IsAbs(data):
		return sqlitePrefix + filepath.Join(data, "grapnel", "plugins", "memory", "memory.db"), nil
	case !filepath.IsAbs(home):
		return "", sdk.ConfigErrorf("/dsn", "no place for memories is known: set dsn, or pass HOME on with env: {pass: [HOME, XDG_DATA_HOME]}")
	case dsn == "":
		below = filepath.Join(".local", "share", "grapnel", "plugins", "memory", "memory.db")
	}
	return sqlitePrefix + filepath.Join(home, below), nil
}

package memory

import (
	"context"
	_ "embed" // for the schema
	"os"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/secret"
	"github.com/grapnelhq/grapnel/plugins/memory/toolset"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/sdk"
)

// The words by which the hooks know of each other's contributions, and others of them.
const (
	domain    = "memory"
	policyKey = "turn_policy"
	// overrideKey is the host's metadata that decides instead of the user's words.
	overrideKey = "memory.policy_override"
	// modelService is the host service that asks a model, by modelMethod.
	modelService = "model"
	modelMethod  = "complete"
)

// priority is what the plugin proposes for its policy and its section: below the
// instructions of the tree (600), above skills (400).
const priority = 500

// The times that the hooks propose. A phase with less gives less.
const (
	quickTime  = 250 * time.Millisecond
	recallTime = 500 * time.Millisecond
	modelTime  = 3 * time.Second
	// openTime bounds the attempt to open a database while the plugin is configured:
	// what takes longer is left to the first calls.
	openTime = 2 * time.Second
)

// configSchema is the JSON Schema of [Config].
//
//go:embed schema.json
var configSchema []byte

// New returns the plugin. It reads the process's environment for the place of its data
// folder, and the clock.
func New() *sdk.Plugin { return newPlugin(os.Getenv, time.Now) }

// newPlugin is New with its powers given as values.
func newPlugin(getenv func(string) string, now func() time.Time) *sdk.Plugin {
	return plugin(&life{getenv: getenv, now: now, openTime: openTime})
}

// plugin is the literal of the plugin.
func plugin(l *life) *sdk.Plugin {
	return &sdk.Plugin{
		Name:         "memory",
		Version:      "0.1.0",
		Doc:          "Remembers durable facts across turns and brings back what matters.",
		ConfigSchema: configSchema,
		OnConfigure:  l.configure,
		OnClose:      l.close,
	}
}

// life is what outlives a configuration: the database, and what is the same under each.
type life struct {
	getenv func(string) string
	now    func() time.Time
	// openTime bounds the opening of a database while the plugin is configured.
	openTime time.Duration

	mu      sync.Mutex
	rules   *turnpolicy.Rules
	scanner *secret.Scanner
	db      *database
	dsn     string
}

// configure is OnConfigure. A database that a new configuration names as well stays
// open; another one is opened beside the old one, which is closed when its last call
// has ended.
func (l *life) configure(ctx context.Context, c *phases.Configuration) (sdk.Setup, error) {
	cfg, err := ParseConfig(c.Config)
	if err != nil {
		return sdk.Setup{}, err
	}
	settings, err := cfg.Settings(l.getenv)
	if err != nil {
		return sdk.Setup{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.load(); err != nil {
		return sdk.Setup{}, err
	}
	if err := l.place(ctx, settings.DSN); err != nil {
		return sdk.Setup{}, err
	}
	m := &memory{
		settings: settings, db: l.db, rules: l.rules, scanner: l.scanner, now: l.now,
		model: slices.Contains(c.Services, modelService),
	}
	return sdk.Setup{Hooks: m.hooks(), Tools: m.tools()}, nil
}

// load makes what is the same under each configuration.
func (l *life) load() error {
	if l.rules != nil {
		return nil
	}
	rules, err := turnpolicy.Builtin()
	if err != nil {
		return err
	}
	l.rules, l.scanner = rules, secret.New()
	// The rules of a language are compiled with the first text that needs them. English
	// is the largest, and the first turn has only its hook's time.
	_ = l.rules.Classify("Remember.")
	return nil
}

// place makes the database of a DSN the one in use.
func (l *life) place(ctx context.Context, dsn string) error {
	if l.db != nil && l.dsn == dsn {
		return nil
	}
	db := newDatabase(func(ctx context.Context) (*itemstore.Store, error) {
		s, err := itemstore.Open(ctx, dsn, itemstore.Options{Now: l.now})
		return s, tooLate(err, dsn)
	}, l.now)
	ctx, cancel := context.WithTimeout(ctx, l.openTime)
	defer cancel()
	if err := db.warm(ctx); err != nil {
		return &phases.ConfigError{Pointer: "/dsn", Message: err.Error()}
	}
	if l.db != nil {
		_ = l.db.retire() // its data is kept; what else could not be done helps nobody to know
	}
	l.db, l.dsn = db, dsn
	return nil
}

// close is OnClose.
func (l *life) close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.db == nil {
		return nil
	}
	db := l.db
	l.db = nil // a host that goes on configures anew
	return db.retire()
}

// memory is the plugin under one configuration. It is safe for concurrent use.
type memory struct {
	settings Settings
	db       *database
	rules    *turnpolicy.Rules
	scanner  *secret.Scanner
	now      func() time.Time
	// model says that the host lets the plugin ask one.
	model bool
}

// hooks are the subscriptions. A turn without memory is better than none, so none of
// them fails a phase.
func (m *memory) hooks() []sdk.Hook {
	hooks := []sdk.Hook{
		{
			Name: "policy", Doc: "says what memory may do in the turn",
			Kinds: []phases.Kind{phases.KindPolicy}, Priority: priority, Timeout: m.policyTime(), Needs: []string{"user_text"}, PrePolicy: m.policy,
		},
		{
			Name: "recall", Doc: "recalls what is remembered about what the user says",
			Kinds: []phases.Kind{phases.KindPromptContext, phases.KindAudit}, Timeout: recallTime, Needs: []string{"user_text", "policy"}, PrePromptContext: m.recall,
		},
		{
			Name: "active_recall", Doc: "recalls by the host's plan, or by several queries",
			Kinds: []phases.Kind{phases.KindPromptContext, phases.KindAudit}, Timeout: modelTime, Needs: []string{"user_text", "recall_plan", "policy"}, PostPreflight: m.activeRecall,
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

// policyTime is more where a model may be asked.
func (m *memory) policyTime() time.Duration {
	if m.model && m.settings.Classifier != ReaderRules {
		return modelTime
	}
	return quickTime
}

// tools are the five tools. Whether a turn has them is said by the hook "tools".
func (m *memory) tools() []sdk.Tool {
	handlers := map[string]func(context.Context, *toolCall) (*phases.ToolResult, error){
		toolset.Search: m.search, toolset.List: m.list, toolset.Get: m.get, toolset.Remember: m.remember, toolset.Forget: m.forget,
	}
	var all []sdk.Tool
	for _, definition := range toolset.Definitions(toolset.Everything()) {
		all = append(all, sdk.Tool{Tool: definition, Call: m.guarded(handlers[definition.Name])})
	}
	return all
}

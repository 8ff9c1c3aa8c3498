package agentsdoc

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/settings"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/thread"
	"github.com/grapnelhq/grapnel/sdk"
)

// MaxChars is the length of the section, frame included, that the plugin
// proposes to the operator, in Unicode scalar values.
const MaxChars = 16_000

// priority is that of all hooks.
const priority = 600

// New returns the plugin. It reads the machine's files and, when it is
// configured, the process's environment.
func New() *sdk.Plugin { return newPlugin(powers{view: chain.OS{}, getenv: os.Getenv}) }

// powers are what the plugin is given instead of taking it.
type powers struct {
	view   chain.FS
	getenv func(string) string
	// remote tells folders that cannot be watched; nil asks the system.
	remote func(folder string) bool
}

// newPlugin is New with its powers given as values.
func newPlugin(with powers) *sdk.Plugin {
	var current inForce
	return &sdk.Plugin{
		Name:         "agentsdoc",
		Version:      "0.2.0",
		Doc:          "Puts the AGENTS.md files of the working folder's source tree into the prompt, and tells of others when they come to matter.",
		ConfigSchema: configSchema(),
		OnConfigure: func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
			s, err := settingsOf(c.Config, with.getenv)
			if err != nil {
				return sdk.Setup{}, err
			}
			if !s.Enabled {
				current.replace(nil)
				return sdk.Setup{}, nil
			}
			if err := checkServices(s.Source, c.Services); err != nil {
				return sdk.Setup{}, err
			}
			return sdk.Setup{Hooks: current.replace(newDocs(with, s, c)).hooks()}, nil
		},
		OnClose: func(context.Context) error {
			current.end()
			return nil
		},
	}
}

// configSchema is the schema of the configuration. It is made of a type, and
// cannot fail but by a mistake in that, which any test would meet.
func configSchema() json.RawMessage {
	schema, err := settings.Schema()
	if err != nil {
		panic(err)
	}
	data, err := json.Marshal(schema)
	if err != nil {
		panic(err)
	}
	return data
}

// settingsOf makes settings of a configuration. The error is a
// [*phases.ConfigError].
func settingsOf(data json.RawMessage, getenv func(string) string) (settings.Settings, error) {
	c, err := settings.Parse(data)
	if err != nil {
		return settings.Settings{}, err
	}
	s, err := settings.New(c, getenv, settings.Config{})
	if err != nil {
		return settings.Settings{}, err
	}
	s.Options.Lazy = s.Options.Resolver.Delivery != option.DeliverOff
	return s, nil
}

// checkServices refuses a source that cannot be asked. A plugin is not told whether
// it lacks the grant or the host has no such service. To say so at once is better
// than in each turn: a reload with this mistake leaves the configuration before it
// in force. The error is a [*phases.ConfigError].
func checkServices(source settings.Source, services []string) error {
	if source == settings.SourceFiles || slices.Contains(services, thread.Service) {
		return nil
	}
	return &phases.ConfigError{
		Pointer: "/source", Message: fmt.Sprintf("%q takes documents of the thread tree from the host service %q, which the plugin does not have: "+
			"grant it with host: [%s], on a host that keeps a thread tree, as a gateway does", source, thread.Service, thread.Service),
	}
}

// inForce is the plugin under its latest configuration; nil while it is off.
type inForce struct {
	mu   sync.Mutex
	docs *docs
	// before says that there was a configuration: the next one is a reload.
	before bool
}

// replace puts a configuration in force, and ends the one before.
func (f *inForce) replace(next *docs) *docs {
	f.mu.Lock()
	old := f.docs
	f.docs = next
	if next != nil {
		next.reloaded = f.before
	}
	f.before = true
	f.mu.Unlock()
	if old != nil {
		old.close()
	}
	return next
}

// end takes the configuration out of force. The next one is a first one.
func (f *inForce) end() {
	f.replace(nil)
	f.mu.Lock()
	f.before = false
	f.mu.Unlock()
}

// hooks are the subscriptions under a configuration: those of the sources that are
// on.
func (d *docs) hooks() []sdk.Hook {
	var list []sdk.Hook
	if d.settings.Source != settings.SourceTree {
		list = d.fileHooks()
	}
	if d.settings.Source != settings.SourceFiles {
		list = append(list, d.threadHook())
	}
	for i := range list {
		list[i].Priority, list[i].Visibility = priority, phases.VisibilityUserAudit
		if list[i].Needs == nil {
			list[i].Needs = []string{phases.NeedsNothing} // the place is enough
		}
	}
	return list
}

// fileHooks are those of the files.
func (d *docs) fileHooks() []sdk.Hook {
	reminds, paths := []phases.Kind{phases.KindReminder}, []string{"touched_paths"}
	list := []sdk.Hook{
		d.promptHook(),
		{
			Name: "changed", Doc: "what changed of the files since they were put into the session's prompt", Kinds: reminds, When: `session.id != ""`,
			After: []string{d.instance + ".prompt?"}, Cache: &phases.Cache{Vary: vary(), Tags: []string{tagChanged}}, PrePromptCompile: d.changed,
		},
		{Name: "start", Doc: "a session begins: nothing was said in it yet", SessionStart: d.start},
		{Name: "resume", Doc: "what changed since the session was left", Kinds: reminds, Needs: []string{"state"}, SessionResume: d.resume},
		{Name: "compacted", Doc: "a new epoch: everything may be said again", PostCompaction: d.compacted},
		{Name: "end", Doc: "the session's folders need not be watched any more", Role: phases.RoleObserve, SessionEnd: d.end},
	}
	if d.options.Lazy {
		list = append(list,
			sdk.Hook{Name: "touching", Doc: "instruction files of folders that a tool is about to touch", Kinds: reminds, Needs: paths, ToolPreCall: d.touching},
			sdk.Hook{Name: "touched", Doc: "instruction files of folders that a tool has touched", Kinds: reminds, Needs: paths, ToolPostCall: d.touched},
		)
	}
	return list
}

// promptHook is the subscription agentsdoc.prompt. Failing closed is right: an
// agent that misses its instructions in silence does what they forbid.
func (d *docs) promptHook() sdk.Hook {
	return sdk.Hook{
		Name:             "prompt",
		Doc:              "the AGENTS.md files from the root of the source tree to the working folder",
		Kinds:            []phases.Kind{phases.KindPromptSection},
		OnFailure:        phases.OnFailure{Default: phases.FailClosed},
		Idempotent:       true,
		Budget:           phases.TextBudget{Chars: MaxChars},
		Cache:            &phases.Cache{Vary: vary(), Tags: []string{tagPrompt}},
		PrePromptCompile: d.prompt,
	}
}

// threadHook is the subscription agentsdoc.thread_prompt. It fails closed as
// promptHook does, and is never answered from memory: what was saved is in force.
func (d *docs) threadHook() sdk.Hook {
	return sdk.Hook{
		Name:             "thread_prompt",
		Doc:              "the AGENTS.md document in effect for the thread's place in the tree of threads",
		Kinds:            []phases.Kind{phases.KindPromptSection},
		OnFailure:        phases.OnFailure{Default: phases.FailClosed},
		Idempotent:       true,
		Budget:           phases.TextBudget{Chars: MaxChars},
		PrePromptCompile: d.threadPrompt,
	}
}

// Tags under which the host's memory of answers is dropped.
const (
	tagPrompt  = "agentsdoc.prompt"
	tagChanged = "agentsdoc.changed"
)

// vary names what the answers within a session depend on. A session has one
// parent; a sub-task that has no session of its own is told apart by the rest.
func vary() []string {
	return []string{"session_id", "epoch", "dir", "mode", "thread_id", "conversation_thread_id", "task_id"}
}

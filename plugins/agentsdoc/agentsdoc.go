// Package agentsdoc is the AGENTS.md plugin: it puts the instruction files of a source tree, from its root down to
// the working directory, into the prompt, brings those of other directories when a tool touches them, and reports
// changes. From a gateway it brings the document that is in effect for a thread. It uses nothing of Grapnel that
// another plugin cannot use.
//
// # The block
//
// The hook "prompt" answers turn.pre_prompt_compile with one section, agents_md: the block. In the default preset it
// is a section of the system prompt with a frame; in the presets codex and codelia it is a message, whole, with the
// bytes that the users of those tools get. Without a working directory in the context, or without a file, there is
// none. The plugin keeps to two limits at once, the bytes of its own configuration and the characters of the
// dispatch, so that the host never has to cut.
//
// # Sessions
//
// Within a session the block is the same bytes in every turn of an epoch, whatever happens on disk, so that the host
// may cache it; changes arrive beside it, by the hook "changed". One handler at a time works on a session ([sdk.Call]
// by call), its state goes to the host service "state", and a restarted process continues from there. Without a
// session each turn looks again, and the host is asked not to cache the answer.
//
// The hooks "touching" and "touched" bring nested files, "resume" compares a session with its state, "start" and
// "compacted" begin epochs, and "end" forgets a session.
//
// # The thread tree
//
// With the source "tree" or "both" the hook "thread_prompt" answers the same phase with the document of the turn's
// thread, in the same section, after the files. It asks the host service "documents" in each turn; see package
// thread. With "tree" it is the only hook.
//
// The plugin starts no goroutine. A [watch.Watcher] owns two as long as a session is watched; they end with the last
// session, with the next configuration, and with the plugin.
//
// Stability: experimental until 1.0.
package agentsdoc

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/settings"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/thread"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/internal/watch"
	"github.com/grapnelhq/grapnel/sdk"
)

const priority = 600

// New returns the plugin. It reads the machine's files and, when it is configured, the process's environment.
func New() *sdk.Plugin { return newPlugin(powers{view: chain.OS{}, getenv: os.Getenv}) }

// powers are injected for tests.
type powers struct {
	view   chain.FS
	getenv func(string) string
	remote func(directory string) bool // reports directories that cannot be watched; nil asks the system
}

func newPlugin(with powers) *sdk.Plugin {
	var current inForce
	return &sdk.Plugin{
		Name:         "agentsdoc",
		Version:      "0.2.0",
		Doc:          "Puts the AGENTS.md files of the working directory's source tree into the prompt, and tells of others when they come to matter.",
		ConfigSchema: settings.Schema(),
		OnConfigure: func(_ context.Context, c *phases.Configuration) (sdk.Setup, error) {
			s, err := settingsOf(c.Config, with.getenv)
			if err != nil {
				return sdk.Setup{}, err
			}
			if !s.Enabled {
				current.replace(nil, false)
				return sdk.Setup{}, nil
			}
			// Failing here rather than in each turn keeps the previous configuration in force after a reload.
			if s.Source != settings.SourceFiles && !slices.Contains(c.Services, thread.Service) {
				return sdk.Setup{}, sdk.ConfigErrorf("/source", "%q takes documents of the thread tree from the host service %q, which the plugin does not have: "+
					"grant it with host: [%s], on a host that keeps a thread tree, as a gateway does", s.Source, thread.Service, thread.Service)
			}
			return sdk.Setup{Hooks: current.replace(newDocs(with, s, c), false).hooks()}, nil
		},
		OnClose: func(context.Context) error {
			current.replace(nil, true)
			return nil
		},
	}
}

// settingsOf makes settings of a configuration. The error is a [*phases.ConfigError].
func settingsOf(data json.RawMessage, getenv func(string) string) (settings.Settings, error) {
	c, err := settings.Parse(data)
	if err != nil {
		return settings.Settings{}, err
	}
	s, err := settings.New(c, getenv, settings.Config{})
	if err != nil {
		return settings.Settings{}, err
	}
	s.Options.Lazy = s.Options.Resolver.Delivery != chain.DeliverOff
	return s, nil
}

// inForce is the plugin under its latest configuration; docs is nil while it is off.
type inForce struct {
	mu     sync.Mutex
	docs   *docs
	before bool // there was a configuration: the next one is a reload
}

// replace puts a configuration in force, and ends the one before. After nil by end, the next one is not a reload.
func (f *inForce) replace(next *docs, ended bool) *docs {
	f.mu.Lock()
	old := f.docs
	f.docs = next
	if next != nil {
		next.reloaded = f.before
	}
	f.before = !ended
	f.mu.Unlock()
	if old != nil {
		old.watcher.Close()
	}
	return next
}

func (d *docs) hooks() []sdk.Hook {
	var list []sdk.Hook
	if d.settings.Source != settings.SourceTree {
		list = d.fileHooks()
	}
	if d.settings.Source != settings.SourceFiles {
		// Never cached: what was saved is in force.
		list = append(list, sectionHook("thread_prompt", "the AGENTS.md document in effect for the thread's place in the tree of threads",
			thread.MaxChars, d.threadPrompt))
	}
	for i := range list {
		list[i].Priority, list[i].Visibility = priority, phases.VisibilityUserAudit
		if list[i].Needs == nil {
			list[i].Needs = []string{phases.NeedsNothing} // the place is enough
		}
	}
	return list
}

func (d *docs) fileHooks() []sdk.Hook {
	reminds, paths := []phases.Kind{phases.KindReminder}, []string{"touched_paths"}
	prompt := sectionHook("prompt", "the AGENTS.md files from the root of the source tree to the working directory", chain.FileChars(&d.options), d.prompt)
	prompt.Cache = &phases.Cache{Vary: vary(), Tags: []string{tagPrompt}}
	list := []sdk.Hook{
		prompt,
		{
			Name: "changed", Doc: "what changed of the files since they were put into the session's prompt", Kinds: reminds, When: `session.id != ""`,
			After: []string{d.instance + ".prompt?"}, Cache: &phases.Cache{Vary: vary(), Tags: []string{tagChanged}}, PrePromptCompile: d.changed,
		},
		{Name: "start", Doc: "a session begins: nothing was said in it yet", SessionStart: d.start},
		{Name: "resume", Doc: "what changed since the session was left", Kinds: reminds, Needs: []string{"state"}, SessionResume: d.resume},
		{Name: "compacted", Doc: "a new epoch: everything may be said again", PostCompaction: d.compacted},
		{Name: "end", Doc: "the session's directories need not be watched any more", Role: phases.RoleObserve, SessionEnd: d.end},
	}
	if d.options.Lazy {
		list = append(list,
			sdk.Hook{Name: "touching", Doc: "instruction files of directories that a tool is about to touch", Kinds: reminds, Needs: paths, ToolPreCall: d.touching},
			sdk.Hook{Name: "touched", Doc: "instruction files of directories that a tool has touched", Kinds: reminds, Needs: paths, ToolPostCall: d.touched},
		)
	}
	return list
}

// sectionHook is a subscription for a section. It fails closed: an agent that silently misses its instructions does
// what they forbid.
func sectionHook(
	name, doc string, chars int, handle func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error),
) sdk.Hook {
	return sdk.Hook{
		Name: name, Doc: doc, Kinds: []phases.Kind{phases.KindPromptSection}, OnFailure: phases.OnFailure{Default: phases.FailClosed},
		Idempotent: true, Budget: phases.TextBudget{Chars: chars}, PrePromptCompile: handle,
	}
}

// Tags of the host's cached answers.
const (
	tagPrompt  = "agentsdoc.prompt"
	tagChanged = "agentsdoc.changed"
)

// vary names what the answers within a session depend on. A sub-task without a session of its own is identified by
// the rest.
func vary() []string {
	return []string{"session_id", "epoch", "dir", "mode", "thread_id", "conversation_thread_id", "task_id", "flags"}
}

// invalidateTime bounds how long the watcher waits for the host.
const invalidateTime = time.Second

// docs is the plugin under one configuration, until its watcher is closed. It is safe for concurrent use.
type docs struct {
	view     chain.FS
	settings settings.Settings
	options  chain.Options
	sum      string // identifies the configuration: state made under another one is not used
	host     phases.Host
	instance string // the operator's name for the plugin
	keeps    bool   // the host keeps the plugin's state
	reloaded bool   // this process had another configuration before: sessions begin a new epoch

	sessions sessions
	watcher  *watch.Watcher
}

func newDocs(with powers, s settings.Settings, c *phases.Configuration) *docs {
	d := &docs{
		view: with.view, settings: s, options: s.Options, sum: sumOf(s), host: c.Host,
		instance: cmp.Or(c.Instance, "agentsdoc"),
		keeps:    c.Host != nil && slices.Contains(c.Services, stateService),
	}
	d.watcher = watch.New(watch.Options{Changed: d.noticed, Remote: with.remote})
	d.sessions.dropped = func(s *session) { d.watcher.Forget(s.key.text()) }
	return d
}

func sumOf(s settings.Settings) string {
	data, _ := json.Marshal(s) //nolint:musttag,errchkjson // plain data, for comparison within this process
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// noticed is called by the watcher with the sessions whose files may have changed.
func (d *docs) noticed(ids []string) {
	for _, id := range ids {
		if s := d.sessions.known(id); s != nil {
			s.dirty.Store(true)
		}
	}
	if d.host == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), invalidateTime)
	defer cancel()
	// A host that cannot be reached caches nothing either.
	_ = d.host.Invalidate(ctx, phases.Invalidation{Tags: []string{tagChanged}})
}

// passing keeps the host from caching the current answer.
func passing(ctx context.Context, call *sdk.Call) {
	if call.Host != nil {
		_ = call.Host.Invalidate(ctx, phases.Invalidation{Subscriptions: []string{call.Subscription}}) // as above
	}
}

// observe begins to watch what was looked at for a session, or to look at it again each turn if it cannot be watched.
// It notices what changed in between.
func (d *docs) observe(s *session, seen watch.Seen) {
	s.seen, s.polled = seen, false
	if s.key.session == "" || len(seen) == 0 {
		return // a turn is over before anything changes
	}
	s.polled = true
	if id := s.key.text(); d.settings.Watch && !s.follows && d.sessions.known(id) == s {
		err := d.watcher.Watch(id, seen)
		if s.polled = err != nil; s.polled {
			s.remark(codeWatchDegraded, phases.SeverityInfo, "files are looked at again in each turn: "+err.Error())
		}
		if d.sessions.known(id) == nil { // forgotten meanwhile: nobody else would end it
			d.watcher.Forget(id)
		}
	}
	if seen.Changed(d.view) {
		s.dirty.Store(true)
	}
}

// stale reports whether the files of a session may have changed since the last call.
func (d *docs) stale(s *session) bool {
	if s.dirty.Swap(false) {
		return true
	}
	return s.polled && s.seen.Changed(d.view)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/runtime"
)

// reloader reads the files of a gateway again. The gateway calls it one at a time.
type reloader struct {
	app    *app
	flags  *serveFlags
	ref    storeRef
	access access
	engine *runtime.Engine
	// now is the configuration in force.
	now *config.Config
}

// load reads and checks; what it returns puts it in force.
func (r *reloader) load(context.Context) (*gateway.Loaded, error) {
	next, from, err := r.app.serveConfig()
	loaded := &gateway.Loaded{Config: from.name()}
	if err != nil {
		return loaded, err
	}
	if err := r.restartNeeded(next, from); err != nil {
		return loaded, err
	}
	if r.access.file != "" {
		if loaded.Tokens, err = readTokens(r.access.file); err != nil {
			return loaded, err
		}
		if loaded.Tokens == nil {
			loaded.Tokens = []rpc.Token{} // nobody is let in, rather than everybody
		}
	}
	loaded.Roots, loaded.PromptChars, loaded.Changed = next.Serve.Roots, threadPromptChars(next), changedKeys(r.now, next)
	loaded.Apply = func(ctx context.Context) error {
		if err := r.engine.Reload(ctx, next); err != nil {
			return err
		}
		r.now = next
		return nil
	}
	return loaded, nil
}

// restartNeeded refuses a configuration with another value for what was settled
// when the gateway started.
func (r *reloader) restartNeeded(next *config.Config, from origin) error {
	var keys []string
	var mistakes []error
	refuse := func(key, place, why string) {
		keys = append(keys, key)
		mistakes = append(mistakes, next.Errorf(place, "%s", why))
	}
	const settled = "it has changed, and only a restart of the gateway puts that in force"
	for _, s := range []struct {
		key     string
		changed bool
	}{
		{"store", r.storeChanged(next, from)},
		{"manifest.chain_key", r.now.Manifest.ChainKey.Value != next.Manifest.ChainKey.Value},
		{"manifest.fingerprint_key", r.now.Manifest.FingerprintKey.Value != next.Manifest.FingerprintKey.Value},
		{"serve.hosts", !slices.Equal(r.now.Serve.Hosts, next.Serve.Hosts)},
		{"serve.origins", !slices.Equal(r.now.Serve.Origins, next.Serve.Origins)},
		{"serve.watch", r.now.Serve.Watch != next.Serve.Watch && !r.flags.watch},
	} {
		if s.changed {
			refuse(s.key, s.key, settled)
		}
	}
	if r.access.file == "" {
		for i := range next.Plugins {
			if p := &next.Plugins[i]; p.Builtin == "" {
				refuse("plugins."+p.Name, fmt.Sprintf("plugins.%d.name", i), "it is not built in, so callers need a token, and this gateway has none: restart it")
			}
		}
	}
	if keys == nil {
		return nil
	}
	return &gateway.RestartError{Keys: keys, Err: errors.Join(mistakes...)}
}

// storeChanged reports whether another store would be opened at a start.
func (r *reloader) storeChanged(next *config.Config, from origin) bool {
	ref := r.app.storeNamed(next, from)
	if ref.dsn == "" {
		dir, err := dataFolder()
		if err != nil {
			return true
		}
		ref = serveStore(dir)
	}
	return ref.dsn != r.ref.dsn
}

// changedKeys are the keys by which two configurations differ, plugins by their
// names.
func changedKeys(before, after *config.Config) []string {
	var keys []string
	add := func(key string, a, b any) {
		if !reflect.DeepEqual(a, b) {
			keys = append(keys, key)
		}
	}
	add("budgets", before.Budgets, after.Budgets)
	add("manifest", before.Manifest, after.Manifest)
	add("pin", before.Pin, after.Pin)
	plugins := map[string]bool{}
	was, is := byName(before, plugins), byName(after, plugins)
	for _, name := range slices.Sorted(maps.Keys(plugins)) {
		add("plugins."+name, was[name], is[name])
	}
	add("serve", before.Serve, after.Serve)
	return keys
}

// byName are the plugins of a configuration, and notes their names.
func byName(cfg *config.Config, names map[string]bool) map[string]*config.Plugin {
	all := map[string]*config.Plugin{}
	for i := range cfg.Plugins {
		all[cfg.Plugins[i].Name] = &cfg.Plugins[i]
		names[cfg.Plugins[i].Name] = true
	}
	return all
}

// tellReload says on standard error what became of a reload.
func (a *app) tellReload(r gateway.Reload) {
	if !r.OK {
		tellf(a.err, "grapnel: reload by %s: nothing was changed, what was in force stays: %s\n", reloadCause(&r), reloadError(&r))
		return
	}
	tellf(a.err, "grapnel: reload by %s: %s\n", reloadCause(&r), reloadedText(&r))
}

// reloadError is why a reload failed, and what may be done.
func reloadError(r *gateway.Reload) string {
	text := r.Error
	if len(r.NeedsRestart) > 0 {
		text += "\nneeds a restart: " + strings.Join(r.NeedsRestart, ", ")
	}
	return text
}

// reloadedText is what a reload that went well has brought.
func reloadedText(r *gateway.Reload) string {
	changed := "nothing in it has changed"
	if len(r.Changed) > 0 {
		changed = "changed: " + strings.Join(r.Changed, ", ")
	}
	text := r.Config + " is in force, " + changed
	if r.Tokens != nil {
		text += fmt.Sprintf(", tokens: %d", *r.Tokens)
	}
	return text
}

// reloadCause says what asked for a reload.
func reloadCause(r *gateway.Reload) string {
	switch r.Cause {
	case gateway.ReloadSignal:
		return "SIGHUP"
	case gateway.ReloadWatch:
		return "a changed file"
	case gateway.ReloadCall:
		return "config/reload of " + clean(r.Actor)
	}
	return string(r.Cause)
}

// watchedFiles are the files that a reload would read.
func (a *app) watchedFiles(tokenFile string) []string {
	var files []string
	if from, err := a.configOrigin(); err == nil && from.Path != "" {
		files = append(files, from.Path)
	}
	if tokenFile != "" {
		files = append(files, tokenFile)
	}
	return files
}

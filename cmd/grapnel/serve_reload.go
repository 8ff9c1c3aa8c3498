package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// The gateway calls a reloader one call at a time.
type reloader struct {
	app    *app
	flags  *serveFlags
	ref    storeRef
	access access
	engine *runtime.Engine
	now    *config.Config
}

func (r *reloader) load(ctx context.Context) (*gateway.Loaded, error) {
	next, from, err := r.app.serveConfig()
	loaded := &gateway.Loaded{Config: from.name()}
	if err != nil {
		return loaded, err
	}
	if err := r.restartNeeded(next, from); err != nil {
		return loaded, err
	}
	var mistakes []error // a plugin whose configuration is as it was is not asked again
	for name, mistake := range ruleMistakes(ctx, next) {
		mistakes = append(mistakes, next.ErrorAt(name, mistake))
	}
	if mistakes != nil {
		return loaded, errors.Join(mistakes...)
	}
	if r.access.file != "" {
		if loaded.Tokens, err = readTokens(r.access.file); err != nil {
			return loaded, err
		}
		if loaded.Tokens == nil {
			loaded.Tokens = []gateway.Token{} // nobody is let in, rather than everybody
		}
	}
	loaded.Roots, loaded.PromptChars, loaded.Changed = servedRoots(r.flags, &r.access, next), threadPromptChars(next), changedKeys(r.now, next)
	loaded.Apply = func(ctx context.Context) error {
		if err := r.engine.Reload(ctx, next); err != nil {
			return err
		}
		r.now = next
		return nil
	}
	return loaded, nil
}

// servedEngine has mistakes in rules among what is wrong with plugins.
type servedEngine struct{ *runtime.Engine }

// Overview implements [gateway.Engine].
func (e servedEngine) Overview() runtime.Overview {
	o, mistakes := e.Engine.Overview(), ruleMistakes(context.Background(), e.Config())
	for i := range o.Plugins {
		p := &o.Plugins[i]
		if mistake := mistakes[p.Plugin]; mistake != nil {
			p.Code, p.Message = "rules_not_reloaded", mistake.Message
			if p.State == phases.PluginReady {
				p.State, p.Since = phases.PluginDegraded, time.Now().UTC()
			}
		}
	}
	return o
}

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
		{"serve.conversations", !reflect.DeepEqual(r.now.Serve.Conversations, next.Serve.Conversations)},
		{"serve.watch", r.now.Serve.Watch != next.Serve.Watch && !r.flags.Watch},
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

func (r *reloader) storeChanged(next *config.Config, from origin) bool {
	ref := r.app.storeNamed(next, from)
	var err error
	if ref.dsn == "" {
		ref, err = serveStore()
	}
	return err != nil || ref.dsn != r.ref.dsn
}

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
	plugins := map[string][2]*config.Plugin{}
	for side, cfg := range []*config.Config{before, after} {
		for i := range cfg.Plugins {
			both := plugins[cfg.Plugins[i].Name]
			both[side] = &cfg.Plugins[i]
			plugins[cfg.Plugins[i].Name] = both
		}
	}
	for _, name := range slices.Sorted(maps.Keys(plugins)) {
		add("plugins."+name, plugins[name][0], plugins[name][1])
	}
	add("serve", before.Serve, after.Serve)
	return keys
}

func (a *app) reportReload(r gateway.Reload) {
	text := reloadedText(&r)
	if !r.OK {
		text = "nothing was changed, what was in force stays: " + reloadError(&r)
	}
	reportf(a.err, "grapnel: reload by %s: %s\n", reloadCause(&r), text)
}

func reloadError(r *gateway.Reload) string {
	text := r.Error
	if len(r.NeedsRestart) > 0 {
		text += "\nneeds a restart: " + strings.Join(r.NeedsRestart, ", ")
	}
	return text
}

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

// reloadOnChange reloads at each signal and, if files are watched, at each change. end waits for a reload in progress.
func (a *app) reloadOnChange(ctx context.Context, g *gateway.Gateway, s *serving, hangups <-chan os.Signal) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				g.Reload(ctx, gateway.ReloadSignal, "")
			}
		}
	})
	if s.flags.Watch || s.cfg.Serve.Watch {
		files := func() []string { return a.watchedFiles(s.access.file) }
		running.Go(func() {
			watchFiles(ctx, s.looked, files, func() { g.Reload(ctx, gateway.ReloadWatch, "") })
		})
	}
	return func() {
		stop()
		running.Wait()
	}
}

// watchEvery is how often watched files are looked at. They must be the same twice: editors write in several steps.
const watchEvery = time.Second

const maxWatched = 1<<20 + 1 // more than a configuration or a list of tokens may have

type fileLook map[string][sha256.Size]byte

// A file that is missing or unreadable has a fingerprint too.
func lookAt(files []string) fileLook {
	look := fileLook{}
	for _, path := range files {
		h := sha256.New()
		if err := hashFile(h, path, maxWatched); err != nil {
			why := "\x00unreadable"
			if errors.Is(err, fs.ErrNotExist) {
				why = "\x00absent"
			}
			_, _ = io.WriteString(h, why) // a hash takes everything
		}
		look[path] = [sha256.Size]byte(h.Sum(nil))
	}
	return look
}

// hashFile takes regular files alone: others may never end. Opening does not wait for the writer of a pipe.
func hashFile(h io.Writer, path string, most int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	_, err = io.Copy(h, io.LimitReader(f, most))
	return err
}

type steady struct{ known, seen fileLook }

// settled reports whether the files differ from those last acted on and are the same as at the last look.
func (s *steady) settled(now fileLook) bool {
	same := maps.Equal(now, s.seen)
	s.seen = now
	if !same || maps.Equal(now, s.known) {
		return false
	}
	s.known = now
	return true
}

// watchFiles calls changed when a file has changed and settled. known is how the files were when they were last read.
func watchFiles(ctx context.Context, known fileLook, files func() []string, changed func()) {
	s := &steady{known: known, seen: known}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.settled(lookAt(files())) {
				changed()
			}
		}
	}
}

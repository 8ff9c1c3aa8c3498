// Package watch reports when what was looked at in a file system may have changed.
//
// A [Trace] replaces a view of a file system and records each name that is looked up in each directory, found or not:
// this is a [Seen], which can be looked up again ([Seen.Changed]). A [Watcher] asks the system to report changes in
// the directories of a Seen, and calls back for those names alone. Links are followed: what lies on their way is
// watched too. If the system cannot report changes, because of a limit or because another machine owns the files,
// Watch says so, and the caller has to look again.
//
// A Watcher owns two goroutines while it watches anything: its own, which collects events and calls back, and the
// library's. Both have ended when Close returns, or when the last watched id is forgotten.
package watch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// delay is how long events are gathered before a call: short enough for a turn that starts 50 ms after an edit.
	delay          = 10 * time.Millisecond
	maxDirectories = 8192
)

// ErrDegraded is the error of things that cannot be watched; the text says why.
var ErrDegraded = errors.New("changes cannot be watched")

// Options are what a [Watcher] is made with.
type Options struct {
	// Changed receives the ids of what may have changed, each once a call. It is called from the watcher's goroutine, one
	// call at a time, and no more after Close has returned. It must not call the watcher.
	Changed func(ids []string)
	// Remote reports whether a directory belongs to another machine, whose changes the system does not see; nil asks the
	// system.
	Remote func(directory string) bool

	directories int                              // bounds the watched directories; 0 is maxDirectories
	open        func() (source, channels, error) // begins with the system's events; nil for system
	_           struct{}
}

// Watcher watches directories. Its methods are safe for concurrent use.
//
// 1. New starts nothing. 2. Watch begins with the first id; for a known id it replaces what was watched. 3. Forget
// ends it for an id; with the last one all goroutines end. 4. Close ends everything and waits. It is safe to call
// twice; after it nothing can be watched any more.
type Watcher struct {
	o Options

	mu          sync.Mutex
	ids         map[string]places              // what is watched, for each id
	directories map[string]map[string][]string // the ids that watch a name in a directory
	events      *events                        // nil while nothing is watched
	closed      bool
	ending      sync.WaitGroup // of goroutines
}

// New returns a watcher that watches nothing.
func New(o Options) *Watcher {
	o.directories = cmp.Or(o.directories, maxDirectories)
	if o.Remote == nil {
		o.Remote = remote
	}
	if o.open == nil {
		o.open = system
	}
	return &Watcher{o: o, ids: map[string]places{}, directories: map[string]map[string][]string{}}
}

// Watch begins to watch what was looked up. It reports changes from now on; for earlier ones the caller asks
// Seen.Changed. The error is an [ErrDegraded], and then nothing is watched for the id.
func (w *Watcher) Watch(id string, seen Seen) error {
	where := placesOf(seen)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(id)
	w.ids[id] = where
	for directory, names := range where {
		if w.directories[directory] == nil {
			w.directories[directory] = map[string][]string{}
		}
		for name := range names {
			w.directories[directory][name] = append(w.directories[directory][name], id)
		}
	}
	err := w.addDirectories(where)
	if err != nil {
		w.drop(id)
	}
	w.prune()
	return err
}

// Forget ends the watch for an id.
func (w *Watcher) Forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(id)
	w.prune()
}

// Close ends everything and waits for it.
func (w *Watcher) Close() {
	w.mu.Lock()
	w.closed = true
	clear(w.ids)
	clear(w.directories)
	w.prune()
	w.mu.Unlock()
	w.ending.Wait() // what another call has ended
}

// addDirectories asks the system for the events of all directories, also of those that are watched already: one that
// was deleted and created again is another one.
func (w *Watcher) addDirectories(where places) error {
	if w.closed {
		return fmt.Errorf("%w: the plugin is about to end", ErrDegraded)
	}
	if len(w.directories) > w.o.directories {
		return fmt.Errorf("%w: more than %d directories", ErrDegraded, w.o.directories)
	}
	if w.events == nil {
		source, from, err := w.o.open()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDegraded, err)
		}
		w.events = &events{source: source}
		w.events.done.Go(func() { w.gather(from) })
	}
	for directory := range where {
		if w.o.Remote(directory) {
			return fmt.Errorf("%w: %s is on another machine's file system", ErrDegraded, directory)
		}
		err := w.events.source.Add(directory)
		if errors.Is(err, fs.ErrNotExist) && len(w.directories[filepath.Dir(directory)][filepath.Base(directory)]) > 0 {
			continue // it would appear in the one above
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDegraded, directory, err)
		}
	}
	return nil
}

// drop forgets an id; the directories stay watched until prune.
func (w *Watcher) drop(id string) {
	for directory, names := range w.ids[id] {
		watched := w.directories[directory]
		for name := range names {
			watched[name] = slices.DeleteFunc(watched[name], func(other string) bool { return other == id })
			if len(watched[name]) == 0 {
				delete(watched, name)
			}
		}
		if len(watched) == 0 {
			delete(w.directories, directory)
		}
	}
	delete(w.ids, id)
}

// prune ends the watch of directories that no id needs, and everything with the last id.
func (w *Watcher) prune() {
	if w.events == nil {
		return
	}
	if len(w.ids) == 0 {
		events := w.events
		w.events = nil
		w.ending.Add(1)
		defer w.ending.Done()
		w.mu.Unlock() // its goroutine may be waiting for the lock
		_ = events.source.Close()
		events.done.Wait()
		w.mu.Lock()
		return
	}
	for _, directory := range w.events.source.WatchList() {
		if w.directories[directory] == nil {
			_ = w.events.source.Remove(directory) // gone by itself is as good
		}
	}
}

// concerned returns the ids of an event's path, a name in a directory or a directory itself. Without a path it is all.
func (w *Watcher) concerned(path string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if path == "" {
		return slices.Collect(maps.Keys(w.ids))
	}
	above := w.directories[filepath.Dir(path)]
	ids := slices.Concat(above[filepath.Base(path)], above[everyName])
	for _, of := range w.directories[path] {
		ids = append(ids, of...)
	}
	return ids
}

// source is where events come from: fsnotify, or a test.
type source interface {
	Add(directory string) error
	Remove(directory string) error
	WatchList() []string
	Close() error
}

// channels are what a source writes to, and closes at its end.
type channels struct {
	events <-chan fsnotify.Event
	errors <-chan error
}

func system() (source, channels, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, channels{}, err
	}
	return w, channels{w.Events, w.Errors}, nil
}

// events are the system's, and the goroutine that gathers them.
type events struct {
	source source
	done   sync.WaitGroup
}

// gather collects concerned ids until the source is closed. Later events do not prolong the delay of the first: a file
// that is written for ever is reported repeatedly, not never.
func (w *Watcher) gather(from channels) {
	waiting := map[string]bool{}
	var due <-chan time.Time
	for {
		path := ""
		select {
		case <-due:
			ids := slices.Sorted(maps.Keys(waiting))
			clear(waiting)
			due = nil
			w.o.Changed(ids)
			continue
		case event, open := <-from.events:
			if !open {
				return
			}
			path = event.Name
		case _, open := <-from.errors:
			if !open {
				return
			}
			// The queue was too short: some events were lost.
		}
		for _, id := range w.concerned(path) {
			waiting[id] = true
		}
		if due == nil && len(waiting) > 0 {
			due = time.After(delay)
		}
	}
}

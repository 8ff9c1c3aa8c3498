package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"
)

// Defaults of [Options].
const (
	// DefaultDelay is short enough for a turn that starts 50 ms after an edit.
	DefaultDelay   = 10 * time.Millisecond
	DefaultFolders = 8192
)

// ErrDegraded is the error of things that cannot be watched; the text says why.
var ErrDegraded = errors.New("changes cannot be watched")

// Options are what a [Watcher] is made with.
type Options struct {
	// Changed is told the ids of what may have changed, each once a call. It is
	// called from the watcher's goroutine, one call at a time, and not any more
	// when Close has returned. It must not call the watcher.
	Changed func(ids []string)
	// Delay is how long events are gathered before a call; 0 is DefaultDelay.
	Delay time.Duration
	// Folders bounds the folders that are watched at once; 0 is DefaultFolders.
	Folders int
	// Remote reports whether a folder belongs to another machine, whose changes
	// the system does not see; nil asks the system.
	Remote func(folder string) bool

	// open begins with the system's events; nil for system.
	open func() (source, channels, error)
	_    struct{}
}

// Watcher watches folders. Its methods are safe for concurrent use.
//
//  1. New starts nothing.
//  2. Watch begins with the first thing that is watched; again for an id it takes
//     the place of what was watched for it.
//  3. Forget ends it for an id; with the last one all goroutines end.
//  4. Close ends everything and waits. It is safe to call twice; after it nothing
//     can be watched any more.
type Watcher struct {
	o Options

	mu sync.Mutex
	// ids are what is watched, for each id.
	ids map[string]places
	// folders say who wants to know of a name in a folder.
	folders map[string]map[string][]string
	events  *events // nil while nothing is watched
	closed  bool
	// ending counts the goroutines that are about to end.
	ending sync.WaitGroup
}

// New returns a watcher that watches nothing.
func New(o Options) *Watcher {
	if o.Delay <= 0 {
		o.Delay = DefaultDelay
	}
	if o.Folders <= 0 {
		o.Folders = DefaultFolders
	}
	if o.Remote == nil {
		o.Remote = remote
	}
	if o.open == nil {
		o.open = system
	}
	return &Watcher{o: o, ids: map[string]places{}, folders: map[string]map[string][]string{}}
}

// Watch begins to watch what was looked up. Changes from now on are told; what
// changed before is for the caller to find out, by Seen.Changed. The error is an
// [ErrDegraded], and then nothing is watched for the id.
func (w *Watcher) Watch(id string, seen Seen) error {
	where := placesOf(seen)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(id)
	w.ids[id] = where
	for folder, names := range where {
		if w.folders[folder] == nil {
			w.folders[folder] = map[string][]string{}
		}
		for name := range names {
			w.folders[folder][name] = append(w.folders[folder][name], id)
		}
	}
	err := w.addFolders(where)
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
	clear(w.folders)
	w.prune()
	w.mu.Unlock()
	w.ending.Wait() // what another call has ended
}

// addFolders asks the system for the events of all folders. Those that are
// watched already are asked for again: one that was deleted and made anew is
// another one.
func (w *Watcher) addFolders(where places) error {
	if w.closed {
		return fmt.Errorf("%w: the plugin is about to end", ErrDegraded)
	}
	if len(w.folders) > w.o.Folders {
		return fmt.Errorf("%w: more than %d folders", ErrDegraded, w.o.Folders)
	}
	if w.events == nil {
		events, err := startEvents(w.o, w.concerned)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDegraded, err)
		}
		w.events = events
	}
	for folder := range where {
		if w.o.Remote(folder) {
			return fmt.Errorf("%w: %s is on another machine's file system", ErrDegraded, folder)
		}
		err := w.events.source.Add(folder)
		if errors.Is(err, fs.ErrNotExist) && w.tells(filepath.Dir(folder), filepath.Base(folder)) {
			continue // it would appear in the one above
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDegraded, folder, err)
		}
	}
	return nil
}

// tells reports whether a name in a folder is watched for anybody.
func (w *Watcher) tells(folder, name string) bool { return len(w.folders[folder][name]) > 0 }

// drop forgets an id; the folders stay watched until prune.
func (w *Watcher) drop(id string) {
	for folder, names := range w.ids[id] {
		for name := range names {
			w.folders[folder][name] = without(w.folders[folder][name], id)
			if len(w.folders[folder][name]) == 0 {
				delete(w.folders[folder], name)
			}
		}
		if len(w.folders[folder]) == 0 {
			delete(w.folders, folder)
		}
	}
	delete(w.ids, id)
}

// prune ends the watch of folders that nobody wants any more, and everything
// with the last one.
func (w *Watcher) prune() {
	if w.events == nil {
		return
	}
	if len(w.ids) == 0 {
		events := w.events
		w.events = nil
		w.ending.Add(1)
		defer w.ending.Done()
		// Its goroutine may be waiting for the lock, to ask who is concerned.
		w.mu.Unlock()
		events.close()
		w.mu.Lock()
		return
	}
	for _, folder := range w.events.source.WatchList() {
		if w.folders[folder] == nil {
			_ = w.events.source.Remove(folder) // gone by itself is as good
		}
	}
}

// concerned returns who wants to know of an event: of a name in a folder, or of
// a folder itself. Without a path it is everybody.
func (w *Watcher) concerned(path string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []string
	if path == "" {
		for id := range w.ids {
			ids = append(ids, id)
		}
		return ids
	}
	ids = append(ids, w.folders[filepath.Dir(path)][filepath.Base(path)]...)
	for _, of := range w.folders[path] {
		ids = append(ids, of...)
	}
	return ids
}

// without returns a list without one entry. The list is not changed.
func without(list []string, id string) []string {
	kept := make([]string, 0, len(list))
	for _, one := range list {
		if one != id {
			kept = append(kept, one)
		}
	}
	return kept
}

package watch

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// source is where events come from: the library's watcher, or a test's.
type source interface {
	Add(folder string) error
	Remove(folder string) error
	WatchList() []string
	Close() error
}

// channels are what a source writes to, and closes at its end.
type channels struct {
	events <-chan fsnotify.Event
	errors <-chan error
}

// system is the source that the system has.
func system() (source, channels, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, channels{}, err
	}
	return w, channels{w.Events, w.Errors}, nil
}

// events gathers the system's events and tells of them. It owns a goroutine.
type events struct {
	source    source
	from      channels
	concerned func(path string) []string
	changed   func(ids []string)
	delay     time.Duration
	done      sync.WaitGroup
}

// startEvents starts gathering. The caller ends it by close.
func startEvents(o Options, concerned func(path string) []string) (*events, error) {
	source, from, err := o.open()
	if err != nil {
		return nil, err
	}
	e := &events{source: source, from: from, concerned: concerned, changed: o.Changed, delay: o.Delay}
	e.done.Go(e.gather)
	return e, nil
}

// close ends the goroutines and waits for them.
func (e *events) close() {
	_ = e.source.Close() // there is nothing that it could not write
	e.done.Wait()
}

// gather collects who is concerned until the source is closed. The first event
// starts the delay and those that follow do not prolong it: a file that is
// written for ever is told of again and again, and not never.
func (e *events) gather() {
	waiting := map[string]bool{}
	var due <-chan time.Time
	for {
		path := ""
		select {
		case <-due:
			ids := slices.Sorted(maps.Keys(waiting))
			clear(waiting)
			due = nil
			e.changed(ids)
			continue
		case event, open := <-e.from.events:
			if !open {
				return
			}
			path = event.Name
		case _, open := <-e.from.errors:
			if !open {
				return
			}
			// Events were lost, the queue was too short, and nobody knows whose.
		}
		for _, id := range e.concerned(path) {
			waiting[id] = true
		}
		if due == nil && len(waiting) > 0 {
			due = time.After(e.delay)
		}
	}
}

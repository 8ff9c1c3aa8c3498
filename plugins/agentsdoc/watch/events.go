package watch

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// events gathers the system's events and tells of them. It owns a goroutine.
type events struct {
	source    *fsnotify.Watcher
	concerned func(path string) []string
	changed   func(ids []string)
	delay     time.Duration
	done      sync.WaitGroup
}

// startEvents starts gathering. The caller ends it by close.
func startEvents(o Options, concerned func(path string) []string) (*events, error) {
	source, err := newSource()
	if err != nil {
		return nil, err
	}
	e := &events{source: source, concerned: concerned, changed: o.Changed, delay: o.Delay}
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
		case event, open := <-e.source.Events:
			if !open {
				return
			}
			path = event.Name
		case _, open := <-e.source.Errors:
			if !open {
				return
			}
			// Events were lost, and nobody knows whose.
		}
		for _, id := range e.concerned(path) {
			waiting[id] = true
		}
		if due == nil && len(waiting) > 0 {
			due = time.After(e.delay)
		}
	}
}

package memory_test

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/memory"
	"github.com/grapnelhq/grapnel/runtime"
)

// placed is the declaration with a database at a path.
func placed(path string) string { return declaration + "      dsn: sqlite:" + path + "\n" }

// told keeps what an engine tells.
type told struct {
	mu     sync.Mutex
	events []runtime.Event
}

func (l *told) add(e runtime.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// says reports whether an event of a subscription has a text in its detail.
func (l *told) says(subscription, text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.events, func(e runtime.Event) bool {
		return e.Subscription == subscription && strings.Contains(e.Detail, text)
	})
}

// TestTurnGoesOn: a database that is locked takes nothing of a turn but its memories,
// and what is wrong stands in the diagnostics, with what to do.
func TestTurnGoesOn(t *testing.T) {
	place(t)
	path := filepath.Join(t.TempDir(), "memory.db")
	before := engine(t, placed(path), runtime.Options{})
	turn(t, before, "1", "Remember that my dog is called Rex.", nil)
	stop(t, before)

	unlock := memory.Locked(t, "sqlite:"+path)
	defer unlock()
	var log told
	eng := engine(t, placed(path), runtime.Options{OnEvent: log.add})
	d := turn(t, eng, "2", "I prefer tabs. What does my dog eat?", nil)
	if d.section != nil || len(d.Tools) != 5 {
		t.Errorf("section %+v, %d tools", d.section, len(d.Tools))
	}
	for _, want := range []string{"locked", "which other program"} {
		if !slices.ContainsFunc(d.Diagnostics, func(x phases.Diagnostic) bool {
			return x.Subscription == "memory.recall" && strings.Contains(x.Detail, want)
		}) {
			t.Errorf("no %q in %+v", want, d.Diagnostics)
		}
	}
	if !log.says("memory.extract", "locked") {
		t.Errorf("events %+v", log.events)
	}
}

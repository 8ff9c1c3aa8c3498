package treetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/tree"
)

func TestRunOnModel(t *testing.T) {
	t.Parallel()

	for seed := range uint64(2) {
		Run(t, RunOptions{Seed: seed, Clients: Clients(NewModel(nil), 3), Steps: 1000})
		Run(t, RunOptions{Seed: seed, Clients: Clients(NewModel(nil), 1), Remote: true})
	}
}

func TestRunConcurrentOnModel(t *testing.T) {
	t.Parallel()

	for seed := range uint64(3) {
		RunConcurrent(t, RunOptions{Seed: seed, Clients: Clients(NewModel(nil), 8)})
	}
}

// TestRunsShareStore: runs leave each other's workspaces alone.
func TestRunsShareStore(t *testing.T) {
	t.Parallel()

	m := NewModel(nil)
	t.Run("at once", func(t *testing.T) {
		t.Parallel()

		for seed := range uint64(3) {
			t.Run("run", func(t *testing.T) {
				t.Parallel()

				Run(t, RunOptions{Seed: seed, Clients: Clients(m, 2)})
				RunConcurrent(t, RunOptions{Seed: seed, Clients: Clients(m, 4), Prefix: fmt.Sprintf("c%d-", seed)})
			})
		}
	})
}

// TestRunReaches: the sequences have what they are for: each call with success, and
// with each of its refusals.
func TestRunReaches(t *testing.T) {
	t.Parallel()

	reached := map[string]int{}
	for seed := range uint64(3) {
		clock := NewClock(time.Date(2026, 3, 1, 12, 0, 0, 123_456_000, time.UTC))
		r := newRun(RunOptions{Seed: seed, Steps: 1500, Clients: Clients(NewModel(clock.Now), 2), Clock: clock}, nil)
		if err := r.play(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, line := range r.trace {
			_, line, _ = strings.Cut(line, ": ")
			name, _, _ := strings.Cut(line, " {")
			result := line[strings.LastIndex(line, "-> ")+3:]
			name = strings.TrimSuffix(name, " -> "+result)
			if version, ok := strings.CutPrefix(result, "version "); ok {
				_, result, _ = strings.Cut(version, ", ")
				result = "ok " + result
			}
			reached[strings.TrimSpace(name+" "+result)]++
		}
	}
	for _, want := range []string{
		"save ok unchanged: false", "save ok unchanged: true", "save version_conflict", "save invalid_params", "save too_large", "save not_found",
		"archive archived: true", "archive archived: false", "archive version_conflict", "archive not_found",
		"restore ok", "restore version_conflict", "restore not_found", "restore invalid_params",
		"create folder ok", "create folder invalid_params", "create folder not_found", "rename folder ok", "rename folder not_found",
		"move folder ok", "move folder cycle", "move folder not_found", "delete folder ok", "delete folder invalid_params", "delete folder not_found",
		"create thread ok", "create thread invalid_params", "create thread not_found", "rename thread ok", "move thread ok", "delete thread ok",
		"create workspace ok", "rename workspace ok", "delete workspace ok", "delete workspace invalid_params",
		"doc ok", "doc not_found", "resolve ok", "thin ok", "tree ok", "revisions ok", "revisions not_found", "archived ok", "affected ok",
	} {
		if reached[want] < 2 {
			t.Errorf("reached %d times: %s", reached[want], want)
		}
	}
	if t.Failed() {
		t.Log(reached)
	}
}

// flaky is a system that crashes: afterwards some calls are not answered, of which
// some have happened.
type flaky struct {
	tree.Store

	mu   sync.Mutex
	rng  *rand.Rand
	lost int // how many answers will be lost
}

var errLost = errors.New("connection lost")

func (f *flaky) crash(*testing.T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = 1 + f.rng.IntN(2)
}

// losing makes a call, and may lose it or its answer.
func losing[P, R any](ctx context.Context, f *flaky, method func(tree.Store, context.Context, P) (R, error), p P) (got R, err error) {
	f.mu.Lock()
	lost, before := f.lost > 0, f.rng.IntN(2) == 0
	f.lost--
	f.mu.Unlock()
	if lost && before {
		return got, errLost
	}
	got, err = method(f.Store, ctx, p)
	if lost {
		var none R
		return none, tree.Errorf(tree.CodeUnavailable, "the answer is lost")
	}
	return got, err
}

func (f *flaky) Save(ctx context.Context, p tree.Save) (tree.Saved, error) {
	return losing(ctx, f, tree.Store.Save, p)
}

func (f *flaky) Archive(ctx context.Context, p tree.ArchiveDoc) (tree.ArchivedNow, error) {
	return losing(ctx, f, tree.Store.Archive, p)
}

func (f *flaky) Restore(ctx context.Context, p tree.RestoreDoc) (tree.Doc, error) {
	return losing(ctx, f, tree.Store.Restore, p)
}

func (f *flaky) CreateFolder(ctx context.Context, p tree.CreateFolder) (tree.Folder, error) {
	return losing(ctx, f, tree.Store.CreateFolder, p)
}

func (f *flaky) MoveFolder(ctx context.Context, p tree.MoveFolder) (tree.Folder, error) {
	return losing(ctx, f, tree.Store.MoveFolder, p)
}

func (f *flaky) DeleteFolder(ctx context.Context, p tree.DeleteFolder) (tree.Folder, error) {
	return losing(ctx, f, tree.Store.DeleteFolder, p)
}

func (f *flaky) CreateThread(ctx context.Context, p tree.CreateThread) (tree.Thread, error) {
	return losing(ctx, f, tree.Store.CreateThread, p)
}

func (f *flaky) DeleteThread(ctx context.Context, p tree.DeleteThread) (tree.Thread, error) {
	return losing(ctx, f, tree.Store.DeleteThread, p)
}

func (f *flaky) Doc(ctx context.Context, s tree.Scope) (tree.View, error) {
	return losing(ctx, f, tree.Store.Doc, s)
}

func (f *flaky) Tree(ctx context.Context, q tree.Query) (tree.Page, error) {
	return losing(ctx, f, tree.Store.Tree, q)
}

func newFlaky(seed uint64) *flaky {
	return &flaky{Store: NewModel(nil), rng: rand.New(rand.NewPCG(seed, 9))}
}

// TestRunWithCrashes: calls that are not answered are no failure, whether they have
// happened or not.
func TestRunWithCrashes(t *testing.T) {
	t.Parallel()

	for seed := range uint64(2) {
		f := newFlaky(seed)
		Run(t, RunOptions{Seed: seed, Clients: Clients(f, 3), Crash: f.crash, CrashEvery: 10})
		f = newFlaky(seed)
		RunConcurrent(t, RunOptions{Seed: seed, Clients: Clients(f, 6), Steps: 200, Crash: f.crash, CrashEvery: 20})
	}
}

// TestUnansweredFails: without a crash, every call has to be answered; and after
// one, soon.
func TestUnansweredFails(t *testing.T) {
	t.Parallel()

	for name, play := range map[string]func(context.Context, RunOptions, func()) error{"in turns": play, "at once": playTogether} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := newFlaky(1)
			f.lost = 1_000
			if err := play(t.Context(), RunOptions{Clients: Clients(f, 2)}, nil); err == nil {
				t.Error("lost answers without a crash are accepted")
			}
			f = newFlaky(1)
			crash := func(*testing.T) { f.lost = 100_000 }
			o := RunOptions{Clients: Clients(f, 2), Crash: crash}
			if err := play(t.Context(), o, func() { f.mu.Lock(); defer f.mu.Unlock(); crash(nil) }); err == nil {
				t.Error("a system that never comes back is accepted")
			}
		})
	}
}

// liar is a store that does something wrong now and then, when its crash hook says
// so, or by itself.
type liar struct {
	*Model

	mu  sync.Mutex
	rng *rand.Rand
	// save is called instead of the model's now and then.
	save func(m *Model, p tree.Save) (tree.Saved, error)
}

func (l *liar) Save(ctx context.Context, p tree.Save) (tree.Saved, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.save != nil && l.rng.IntN(10) == 0 {
		return l.save(l.Model, p)
	}
	return l.Model.Save(ctx, p)
}

// lastWins saves on whatever exists.
func lastWins(ctx context.Context, m *Model, p tree.Save) (tree.Saved, error) {
	view, err := m.Doc(ctx, p.Scope)
	if err != nil {
		return tree.Saved{}, err
	}
	if d := view.Explicit; d != nil && p.ExpectedVersion != nil {
		p.ExpectedVersion = &d.Version
	}
	return m.Save(ctx, p)
}

// last calls f with the live document of a scope, if there is one.
func (m *Model) last(scope tree.Scope, f func(d *document)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sp := m.spaces[scope.WorkspaceID]; sp != nil && sp.live(scope.FolderID) != nil {
		f(sp.live(scope.FolderID))
	}
}

// TestRunFindsLiars: what a store does wrong now and then, a run finds.
func TestRunFindsLiars(t *testing.T) {
	t.Parallel()

	ctx := context.Background()
	after := func(f func(m *Model, d *document)) func(m *Model, p tree.Save) (tree.Saved, error) {
		return func(m *Model, p tree.Save) (tree.Saved, error) {
			got, err := m.Save(ctx, p)
			if err == nil {
				m.last(p.Scope, func(d *document) { f(m, d) })
			}
			return got, err
		}
	}
	for name, save := range map[string]func(m *Model, p tree.Save) (tree.Saved, error){
		"forgets a save": func(m *Model, p tree.Save) (tree.Saved, error) {
			return m.clone().Save(ctx, p)
		},
		"last save wins": func(m *Model, p tree.Save) (tree.Saved, error) { return lastWins(ctx, m, p) },
		"forgets a revision": after(func(_ *Model, d *document) {
			d.revisions = d.revisions[:len(d.revisions)-1]
		}),
		"mixes up texts": after(func(_ *Model, d *document) {
			last := &d.revisions[len(d.revisions)-1]
			last.content = "something else"
		}),
		"skips a version": after(func(_ *Model, d *document) {
			d.Version++
			d.revisions[len(d.revisions)-1].Version++
		}),
		"keeps what it refuses": func(m *Model, p tree.Save) (tree.Saved, error) {
			if _, err := lastWins(ctx, m, p); err != nil {
				return tree.Saved{}, err
			}
			return tree.Saved{}, tree.ConflictWith(p.ExpectedVersion, nil)
		},
		"makes two documents": after(func(m *Model, d *document) {
			twin := *d
			twin.ID = m.newID()
			m.spaces[d.WorkspaceID].docs[twin.ID] = &twin
		}),
		"tells no change": after(func(m *Model, _ *document) {
			m.log = m.log[:len(m.log)-1]
		}),
		"tells changes in disorder": after(func(m *Model, _ *document) {
			if n := len(m.log); n > 1 {
				m.log[n-1], m.log[n-2] = m.log[n-2], m.log[n-1]
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			found := func(play func(context.Context, RunOptions, func()) error) bool {
				for seed := range uint64(100) { // most are found by the first; how calls at once meet is up to the machine
					l := &liar{Model: NewModel(nil), rng: rand.New(rand.NewPCG(seed, 5)), save: save}
					err := play(ctx, RunOptions{Seed: seed, Clients: Clients(l, 4)}, nil)
					if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("seed %d", seed)) {
						t.Errorf("the failure does not tell the seed %d: %v", seed, err)
					}
					if err != nil {
						return true
					}
				}
				return false
			}
			if !found(play) {
				t.Error("not found by calls in turns")
			}
			if !found(playTogether) {
				t.Error("not found by calls at once")
			}
		})
	}
}

// TestRunFindsLossAfterCrash: a store that loses by a crash what it has
// acknowledged.
func TestRunFindsLossAfterCrash(t *testing.T) {
	t.Parallel()

	for name, play := range map[string]func(context.Context, RunOptions, func()) error{"in turns": play, "at once": playTogether} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var mu sync.Mutex
			present := NewModel(nil)
			var before *Model
			store := func() tree.Store {
				mu.Lock()
				defer mu.Unlock()
				return present
			}
			o := RunOptions{Clients: []Client{{store, "a"}, {store, "b"}}, Crash: func(*testing.T) {}, Remote: true}
			err := play(t.Context(), o, func() {
				mu.Lock()
				defer mu.Unlock()
				if before == nil {
					before = present.clone()
					return
				}
				present = before
				before = nil
			})
			if err == nil {
				t.Error("the loss is not found")
			}
		})
	}
}

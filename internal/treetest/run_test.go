package treetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/storetest"
	"github.com/grapnelhq/grapnel/tree"
)

// Client is one way to the store under test.
type Client struct {
	// Store returns the store to call, which may be another one after a crash.
	Store func() tree.Store
	// Actor is sent with every change; the store must record it.
	Actor string
}

// Clients returns n clients of one store, with actors of their own.
func Clients(s tree.Store, n int) []Client {
	list := make([]Client, n)
	for i := range list {
		list[i] = Client{Store: func() tree.Store { return s }, Actor: fmt.Sprintf("client-%d", i)}
	}
	return list
}

// RunOptions configure [Run] and [RunConcurrent]. Only Clients is required.
type RunOptions struct {
	// Seed determines the calls, as long as the answers are the same.
	Seed uint64
	// Steps is how many calls are made (by each client in RunConcurrent); 400 if zero.
	Steps int
	// Clients take turns, or work at the same time. Several may share a store.
	Clients []Client
	// Remote says that the stores have only what the wire offers. Changes, Affected, Listen,
	// Thin, and Resolve for unknown threads are not called then.
	Remote bool
	// Clock, if set, is the store's clock, used by nobody else. Run moves it, compares all
	// times, and thins the store.
	Clock *storetest.Clock
	// Prefix begins the ids of the run's workspaces, so that runs can share a database. The
	// default is made of the seed.
	Prefix string

	// Crash, if set, is called at times, half of the time during calls: it kills the store and
	// restarts it. When it returns, nothing of the killed store may be at work. Calls that then
	// get no answer (no *tree.Error, or CodeUnavailable) may or may not have happened;
	// otherwise they fail the test. RunConcurrent calls it on the test's goroutine.
	Crash func(t *testing.T)
	// CrashEvery is about how many calls there are between crashes; 40 if zero.
	CrashEvery int
	// Patience is how long a call may take before it counts as unanswered; 30 s if zero.
	Patience time.Duration
}

const (
	// afterCrash is how many calls of a client may go unanswered after a crash: noticing a lost
	// connection may take several.
	afterCrash = 4
	traced     = 25
)

func (o RunOptions) withDefaults() RunOptions {
	o.Steps = cmp.Or(o.Steps, 400)
	o.Prefix = cmp.Or(o.Prefix, fmt.Sprintf("run-%d-", o.Seed))
	o.CrashEvery = cmp.Or(o.CrashEvery, 40)
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	return o
}

// Run plays a random sequence of calls by all clients in turns and compares every answer with a
// [Model]'s: valid and invalid calls of every method, saves on right, stale and absent
// versions, calls with an ended context. At times, after every crash and at the end it compares
// all that can be read, and the log of changes. Times are compared if there is a Clock.
//
// A failure shows the seed and the last steps.
func Run(t *testing.T, o RunOptions) {
	t.Helper()
	if err := play(t.Context(), o, func() { o.Crash(t) }); err != nil {
		t.Fatal(err)
	}
}

type run struct {
	RunOptions

	rng   *rand.Rand
	crash func()
	// worlds are what the store may hold: several after an unanswered call that has left no
	// trace yet.
	worlds []*Model
	trace  []string
	// excused is how many more calls of each client may go unanswered.
	excused []int
	log     logReader // of the store
	// compared is how much of the model's log has been compared with the store's.
	compared tree.Seq
}

// play is Run with an error, for tests of it.
func play(ctx context.Context, o RunOptions, crash func()) error {
	r := newRun(o, crash)
	if err := r.play(ctx); err != nil {
		last := r.trace[max(0, len(r.trace)-traced):]
		return fmt.Errorf("seed %d, step %d: %w\nthe last steps:\n%s", r.Seed, len(r.trace), err, strings.Join(last, "\n"))
	}
	return nil
}

func newRun(o RunOptions, crash func()) *run {
	r := &run{RunOptions: o.withDefaults(), crash: crash, rng: rand.New(rand.NewPCG(o.Seed, 0)), excused: make([]int, len(o.Clients))}
	var now func() time.Time
	if o.Clock != nil {
		now = o.Clock.Now
	}
	r.worlds = []*Model{NewModel(now)}
	return r
}

func (r *run) play(ctx context.Context) (err error) {
	if r.local() {
		if r.log, err = newLogReader(ctx, r.Clients[0].Store(), r.Prefix); err != nil {
			return err
		}
	}
	for n := range r.Steps {
		g := generator{RunOptions: &r.RunOptions, rng: r.rng, model: r.worlds[0], number: n}
		if r.Clock != nil && r.rng.IntN(3) == 0 {
			r.Clock.Add(g.pause())
		}
		client := r.rng.IntN(len(r.Clients))
		c := g.next(r.Clients[client].Actor)
		if c.thins {
			if err := r.compareLogs(ctx); err != nil { // while the log is complete
				return err
			}
		}
		if err := r.take(ctx, client, c, n > 0 && r.Crash != nil && r.rng.IntN(r.CrashEvery) == 0); err != nil {
			return err
		}
		if n%100 == 99 || n == r.Steps-1 {
			if err := r.survey(ctx, "at a survey"); err != nil {
				return err
			}
		}
	}
	return nil
}

// take makes one call, with a crash before or during it, and judges the answer.
func (r *run) take(ctx context.Context, client int, c step, crash bool) error {
	if crash && r.rng.IntN(2) == 0 {
		r.crashed()
		if err := r.survey(ctx, "after a crash"); err != nil {
			return err
		}
		crash = false
	}
	limited, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	if r.local() && r.rng.IntN(100) == 0 {
		c.text += " (with a context that has ended)"
		cancel()
	}
	var answer any
	var err error
	var call sync.WaitGroup
	call.Go(func() { answer, err = c.do(limited, r.Clients[client].Store()) })
	if crash {
		r.crashed()
	}
	call.Wait()
	r.trace = append(r.trace, fmt.Sprintf("%4d %s: %s -> %s", len(r.trace), r.Clients[client].Actor, c.text, outcome(answer, err)))
	switch {
	case answered(err), errors.Is(limited.Err(), context.Canceled):
		return r.keep("the answer is wrong", func(m *Model) string { return r.compareWith(limited, m, c, answer, err) })
	case !r.excuse(client):
		return fmt.Errorf("not answered, and nothing has crashed: %w", err)
	default:
		return r.maybe(ctx, c)
	}
}

func (r *run) crashed() {
	r.crash()
	for n := range r.excused {
		r.excused[n] = afterCrash
	}
	r.trace = append(r.trace, fmt.Sprintf("%4d -- crash --", len(r.trace)))
}

func (r *run) excuse(client int) bool {
	r.excused[client]--
	return r.excused[client] >= 0
}

// keep drops the worlds that differ from the store.
func (r *run) keep(wrong string, diff func(m *Model) string) error {
	first := ""
	r.worlds = slices.DeleteFunc(r.worlds, func(m *Model) bool {
		d := diff(m)
		first = cmp.Or(first, d)
		return d != ""
	})
	if len(r.worlds) == 0 {
		return fmt.Errorf("%s (-want +got):\n%s", wrong, first)
	}
	return nil
}

// compareWith makes the call on a model, with the id that the store made, and returns how the
// answer differs.
func (r *run) compareWith(ctx context.Context, m *Model, c step, answer any, err error) string {
	id := ""
	switch a := answer.(type) {
	case tree.Saved:
		id = a.Doc.ID
	case tree.Workspace:
		id = a.ID
	case tree.Folder:
		id = a.ID
	case tree.Thread:
		id = a.ID
	}
	wrong := ""
	m.newID = func() string {
		if m.knowsDoc(id) || tree.CheckID("id", id) != nil {
			wrong = fmt.Sprintf("the new id %q is malformed, or that of an older document", id)
		}
		return id
	}
	want, wantErr := c.do(ctx, m)
	return cmp.Or(wrong, diffAnswers(want, wantErr, answer, err, r.Clock != nil))
}

// maybe follows up an unanswered call, which may have happened.
func (r *run) maybe(ctx context.Context, c step) error {
	id, err := r.docOf(ctx, c.scope)
	if err != nil {
		return err
	}
	for _, m := range slices.Clone(r.worlds) {
		after := m.clone()
		before := after.seq
		after.newID = func() string { return id }
		if _, err := c.do(ctx, after); err == nil && after.seq != before && (id != "" || !after.knowsDoc("")) {
			r.worlds = append(r.worlds, after)
		}
	}
	return r.survey(ctx, "after an unanswered call")
}

func (r *run) docOf(ctx context.Context, scope tree.Scope) (id string, err error) {
	if scope.WorkspaceID == "" {
		return "", nil
	}
	err = r.patiently(ctx, func(ctx context.Context, s tree.Store) error {
		view, err := s.Doc(ctx, scope)
		if err == nil && view.Explicit != nil {
			id = view.Explicit.ID
		}
		if answered(err) {
			return nil // also if the scope is gone
		}
		return err
	})
	return id, err
}

// patiently reads from the store, by another client if one gets no answer.
func (r *run) patiently(ctx context.Context, read func(ctx context.Context, s tree.Store) error) error {
	for {
		client := r.rng.IntN(len(r.Clients))
		limited, cancel := context.WithTimeout(ctx, r.Patience)
		err := read(limited, r.Clients[client].Store())
		cancel()
		if answered(err) || !r.excuse(client) {
			return err
		}
	}
}

func (r *run) survey(ctx context.Context, when string) error {
	var got survey
	err := r.patiently(ctx, func(ctx context.Context, s tree.Store) (err error) {
		got, err = readAll(ctx, s, r.Prefix)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading everything %s: %w", when, err)
	}
	err = r.keep("what the store holds "+when+" is wrong", func(m *Model) string {
		want, err := readAll(ctx, m, r.Prefix)
		return diffAnswers(want, err, got, nil, r.Clock != nil)
	})
	if err != nil || !r.local() {
		return err
	}
	return r.compareLogs(ctx)
}

func (r *run) local() bool { return !r.Remote && r.Crash == nil }

func (r *run) compareLogs(ctx context.Context) error {
	m := r.worlds[0]
	want := logReader{prefix: r.Prefix, after: r.compared}
	if err := want.read(ctx, m, 1_000); err != nil {
		return err
	}
	r.compared = want.after
	return r.patiently(ctx, func(ctx context.Context, s tree.Store) error {
		for try := 0; ; try++ { // PostgreSQL shows changes late while older transactions run
			if err := r.log.read(ctx, s, 1+r.rng.IntN(8)); err != nil {
				return err
			}
			diff := diffAnswers(want.transactions(), nil, r.log.transactions(), nil, r.Clock != nil)
			if diff != "" && (try == 5 || len(r.log.list) >= len(want.list)) {
				return broken("the log of changes is wrong (-want +got):\n%s", diff)
			}
			if diff == "" {
				r.log.list = nil
				return r.compareGaps(ctx, s, m)
			}
		}
	})
}

// compareGaps looks where the run began: a thinned log has a gap there.
func (r *run) compareGaps(ctx context.Context, s tree.Store, m *Model) error {
	for place, of := range map[tree.Seq]tree.Seq{r.log.began: 0, -1: -1, r.log.after + 1<<40: m.seq + 1} {
		want, err := m.Changes(ctx, of, 1)
		if err != nil {
			return err
		}
		got, err := s.Changes(ctx, place, 1)
		if err != nil {
			return err
		}
		if got.Gap != want.Gap || got.Gap && (len(got.List) > 0 || got.More || got.Next < r.log.after) {
			return broken("changes behind %d: %+v, want a gap: %t", place, got, want.Gap)
		}
	}
	return nil
}

package treetest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/tree"
)

// Client is one way to the system under test.
type Client struct {
	// Store is what to call now. After a crash it may be another: a client that does
	// not find its way back by itself is made anew there.
	Store func() tree.Store
	// Actor is sent with every change, and is what the system records for it. A system
	// that knows better who calls has to be told by that name.
	Actor string
}

// Clients are n clients of one store, with actors of their own.
func Clients(s tree.Store, n int) []Client {
	list := make([]Client, n)
	for i := range list {
		list[i] = Client{Store: func() tree.Store { return s }, Actor: fmt.Sprintf("client-%d", i)}
	}
	return list
}

// RunOptions say what [Run] and [RunConcurrent] play. Only Clients is needed.
type RunOptions struct {
	// Seed makes the sequence: the same seed, the same calls, as long as the answers
	// are the same.
	Seed uint64
	// Steps is how many calls are made (by each client, of RunConcurrent); 400 if zero.
	Steps int
	// Clients take turns, or work at once. There may be several for one store.
	Clients []Client
	// Remote says that the clients' stores have only what is asked over a wire. Not
	// called then are Changes, Affected, Listen, and Resolve for unknown threads.
	Remote bool
	// Prefix begins the ids of workspaces that the run makes; those of others are left
	// alone, so that several runs may use one database. It is made of the seed if empty.
	Prefix string

	// Crash, if set, is called now and then, on the test's goroutine, half of the time
	// while calls are under way: it kills the system and brings it up again. When it
	// returns nothing of the killed system may be at work any more. Calls that are not
	// answered (no *tree.Error, or one with CodeUnavailable) may or may not have
	// happened; without Crash, or often after one, they fail the test.
	Crash func(t *testing.T)
	// CrashEvery is how many calls there are between crashes, about; 40 if zero.
	CrashEvery int
	// Patience is how long a call may take before it counts as not answered; 30 s if
	// zero.
	Patience time.Duration
}

// afterCrash is how many calls of a client may go unanswered after a crash: who has
// lost a connection may find out by several calls.
const afterCrash = 4

// traced is how many steps a failure shows.
const traced = 25

// withDefaults fills in what was left out.
func (o RunOptions) withDefaults() RunOptions {
	o.Steps = cmp.Or(o.Steps, 400)
	o.Prefix = cmp.Or(o.Prefix, fmt.Sprintf("run-%d-", o.Seed))
	o.CrashEvery = cmp.Or(o.CrashEvery, 40)
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	return o
}

// Run plays a random sequence of calls, one after the other, by all clients in
// turns, and compares every answer with that of a [Model]: creating, renaming,
// moving and deleting, saves with right, stale and absent versions, archiving,
// restoring, reading. Now and then, after every crash and at the end it compares
// all that can be read. Only times, and the ids of documents, are the system's.
//
// A failure tells the seed and the last steps.
func Run(t *testing.T, o RunOptions) {
	t.Helper()
	if err := play(t.Context(), o, func() { o.Crash(t) }); err != nil {
		t.Fatal(err)
	}
}

// run is one sequence under way.
type run struct {
	RunOptions

	rng   *rand.Rand
	crash func()
	// worlds are what the system may hold: several after a call that was not answered
	// and has left no trace yet.
	worlds []*Model
	trace  []string
	// excused is how many more unanswered calls of a client are no failure.
	excused []int
}

// play is Run with an error, so that tests can see it find what is wrong.
func play(ctx context.Context, o RunOptions, crash func()) error {
	r := &run{
		RunOptions: o.withDefaults(), crash: crash,
		rng:    rand.New(rand.NewPCG(o.Seed, 0)),
		worlds: []*Model{NewModel(nil)}, excused: make([]int, len(o.Clients)),
	}
	err := r.play(ctx)
	if err != nil {
		last := r.trace[max(0, len(r.trace)-traced):]
		return fmt.Errorf("seed %d, step %d: %w\nthe last steps:\n%s", r.Seed, len(r.trace), err, strings.Join(last, "\n"))
	}
	return nil
}

// play makes the calls. The trace tells of them afterwards.
func (r *run) play(ctx context.Context) error {
	var mirror *mirror
	if !r.Remote {
		var err error
		if mirror, err = newMirror(ctx, r.Clients[0].Store(), r.Prefix); err != nil {
			return err
		}
	}
	for n := range r.Steps {
		g := generator{rng: r.rng, model: r.worlds[0], prefix: r.Prefix, remote: r.Remote, number: n}
		client := r.rng.IntN(len(r.Clients))
		c := g.next(r.Clients[client].Actor)
		if err := r.take(ctx, client, c, n > 0 && r.crashNow()); err != nil {
			return err
		}
		if n%100 == 99 || n == r.Steps-1 {
			if err := r.survey(ctx, "at a survey"); err != nil {
				return err
			}
		}
	}
	if mirror == nil {
		return nil
	}
	return r.patiently(ctx, mirror.compare)
}

// crashNow decides before the call is made, so that the same seed crashes at the
// same places.
func (r *run) crashNow() bool { return r.Crash != nil && r.rng.IntN(r.CrashEvery) == 0 }

// take makes one call and judges the answer, if there is one. With a crash it is
// before the call or while it is under way.
func (r *run) take(ctx context.Context, client int, c step, crash bool) error {
	if crash && r.rng.IntN(2) == 0 {
		r.crashed()
		if err := r.survey(ctx, "after a crash"); err != nil {
			return err
		}
		crash = false
	}
	var answer any
	var err error
	var under sync.WaitGroup
	under.Go(func() { answer, err = r.call(ctx, client, c) })
	if crash {
		r.crashed()
	}
	under.Wait()
	r.trace = append(r.trace, fmt.Sprintf("%4d %s: %s -> %s", len(r.trace), r.Clients[client].Actor, c.text, outcome(answer, err)))
	switch {
	case answered(err):
		return r.judge(ctx, c, answer, err)
	case !r.excuse(client):
		return fmt.Errorf("not answered, and nothing has crashed: %w", err)
	default:
		return r.maybe(ctx, c)
	}
}

// crashed lets the system crash, and excuses what comes of it.
func (r *run) crashed() {
	r.crash()
	for n := range r.excused {
		r.excused[n] = afterCrash
	}
	r.trace = append(r.trace, fmt.Sprintf("%4d -- crash --", len(r.trace)))
}

// excuse takes note of a call that was not answered, and says whether that is no
// failure.
func (r *run) excuse(client int) bool {
	r.excused[client]--
	return r.excused[client] >= 0
}

// call makes a call of the system. One that takes too long counts as not answered.
func (r *run) call(ctx context.Context, client int, c step) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	return c.do(ctx, r.Clients[client].Store())
}

// judge keeps the worlds in which the answer is right.
func (r *run) judge(ctx context.Context, c step, answer any, err error) error {
	// Where a save made a document, the model gives it the id that the system gave.
	id := ""
	if saved, ok := answer.(tree.Saved); ok {
		id = saved.Doc.ID
	}
	var wrong string
	r.worlds = slices.DeleteFunc(r.worlds, func(m *Model) bool {
		diff := compareWith(ctx, m, id, c, answer, err)
		wrong = cmp.Or(wrong, diff)
		return diff != ""
	})
	if len(r.worlds) == 0 {
		return fmt.Errorf("the answer is wrong (-want +got):\n%s", wrong)
	}
	return nil
}

// compareWith makes the call on a model, which gives a new document that id, and
// returns how the answer differs.
func compareWith(ctx context.Context, m *Model, id string, c step, answer any, err error) string {
	twice := ""
	m.newID = func() string {
		if m.knowsDoc(id) {
			twice = fmt.Sprintf("a new document has the id of an older one: %s", id)
		}
		return id
	}
	want, wantErr := c.do(ctx, m)
	return cmp.Or(twice, diffAnswers(want, wantErr, answer, err))
}

// maybe follows up a call that was not answered: it may have happened or not.
func (r *run) maybe(ctx context.Context, c step) error {
	id, err := r.seen(ctx, c.scope)
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
	return r.survey(ctx, "after a call that was not answered")
}

// seen is the id of the live document of a scope, as the system has it now.
func (r *run) seen(ctx context.Context, scope tree.Scope) (id string, err error) {
	if scope.WorkspaceID == "" {
		return "", nil
	}
	err = r.patiently(ctx, func(ctx context.Context, s tree.Store) error {
		view, err := s.Doc(ctx, scope)
		if err == nil && view.Explicit != nil {
			id = view.Explicit.ID
		}
		if answered(err) {
			return nil // also where the scope is gone
		}
		return err
	})
	return id, err
}

// patiently reads from the system, by another client if one gets no answer.
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

// survey reads all there is, and keeps the worlds that look the same.
func (r *run) survey(ctx context.Context, when string) error {
	var got survey
	err := r.patiently(ctx, func(ctx context.Context, s tree.Store) (err error) {
		got, err = readAll(ctx, s, r.Prefix)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading everything %s: %w", when, err)
	}
	var wrong string
	r.worlds = slices.DeleteFunc(r.worlds, func(m *Model) bool {
		want, err := readAll(ctx, m, r.Prefix)
		diff := diffAnswers(want, err, got, nil)
		wrong = cmp.Or(wrong, diff)
		return diff != ""
	})
	if len(r.worlds) == 0 {
		return fmt.Errorf("what there is %s is wrong (-want +got):\n%s", when, wrong)
	}
	return nil
}

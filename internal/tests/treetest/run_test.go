package treetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/tree"
)

// Client is one way to the store under test.
type Client struct {
	// Store returns the store to call, which may be another one after a crash.
	Store func() tree.Store
	// Actor is sent with every change; the store must record it.
	Actor string
}

// RunOptions configure [Run] and [RunConcurrent], on a store that has nothing yet.
type RunOptions struct {
	// Seed determines the calls, as long as the answers are the same.
	Seed uint64
	// Steps is how many calls are made (by each client in RunConcurrent).
	Steps int
	// Clients take turns, or work at the same time. Several may share a store.
	Clients []Client
	// Remote says that the stores have only what the wire offers: no Changes.
	Remote bool
	// Clock is the store's clock, used by nobody else: Run needs it, and moves it.
	Clock *storetest.Clock

	// Crash, if set, is called by RunConcurrent at times: it kills the store and restarts it. When
	// it returns, nothing of the killed store may be at work. Calls that then get no answer (no
	// *tree.Error, or CodeUnavailable) may or may not have happened; otherwise they fail the test.
	Crash func(t *testing.T)
}

const (
	// crashEvery is about how many calls there are between crashes.
	crashEvery = 40
	// afterCrash is how many calls of a client may go unanswered after a crash: noticing a lost
	// connection may take several.
	afterCrash = 4
	// patience is how long a call may take before it counts as unanswered.
	patience = 30 * time.Second
	traced   = 25
)

// Run plays a random sequence of calls by all clients in turns and compares every answer with a
// [Model]'s: valid and invalid calls of every method, saves on right, stale and absent
// versions, calls with an ended context. At times and at the end it compares all that can be read,
// and the log of changes.
//
// A failure shows the seed and the last steps.
func Run(t *testing.T, o RunOptions) {
	t.Helper()
	r := newRun(o)
	if err := r.play(t.Context()); err != nil {
		last := r.trace[max(0, len(r.trace)-traced):]
		t.Fatalf("seed %d, step %d: %v\nthe last steps:\n%s", r.Seed, len(r.trace), err, strings.Join(last, "\n"))
	}
}

type run struct {
	RunOptions

	rng   *rand.Rand
	model *Model
	trace []string
	log   logReader // of the store
	// compared is how much of the model's log has been compared with the store's.
	compared tree.Seq
}

func newRun(o RunOptions) *run {
	return &run{RunOptions: o, rng: rand.New(rand.NewPCG(o.Seed, 0)), model: NewModel(o.Clock.Now)}
}

func (r *run) play(ctx context.Context) error {
	for n := range r.Steps {
		g := generator{RunOptions: &r.RunOptions, rng: r.rng, model: r.model, number: n}
		if r.rng.IntN(3) == 0 {
			r.Clock.Add(g.pause())
		}
		client := r.rng.IntN(len(r.Clients))
		c := g.next(r.Clients[client].Actor)
		if c.thins {
			if err := r.compareLogs(ctx); err != nil { // while the log is complete
				return err
			}
		}
		if err := r.take(ctx, client, c); err != nil {
			return err
		}
		if n%100 == 99 || n == r.Steps-1 {
			if err := r.survey(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// take makes one call, and judges the answer.
func (r *run) take(ctx context.Context, client int, c step) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if r.rng.IntN(100) == 0 {
		c.text += " (with a context that has ended)"
		cancel()
	}
	answer, err := c.do(limited, r.Clients[client].Store())
	r.trace = append(r.trace, fmt.Sprintf("%4d %s: %s -> %s", len(r.trace), r.Clients[client].Actor, c.text, outcome(answer, err)))
	if !answered(err) && !errors.Is(limited.Err(), context.Canceled) {
		return fmt.Errorf("not answered: %w", err)
	}
	if diff := r.compareWith(limited, r.model, c, answer, err); diff != "" {
		return fmt.Errorf("the answer is wrong (-want +got):\n%s", diff)
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
	return cmp.Or(wrong, diffAnswers(want, wantErr, answer, err))
}

func (r *run) survey(ctx context.Context) error {
	got, err := readAll(ctx, r.anyStore())
	if err != nil {
		return fmt.Errorf("reading everything: %w", err)
	}
	want, err := readAll(ctx, r.model)
	if diff := diffAnswers(want, err, got, nil); diff != "" {
		return fmt.Errorf("what the store holds is wrong (-want +got):\n%s", diff)
	}
	return r.compareLogs(ctx)
}

func (r *run) anyStore() tree.Store { return r.Clients[r.rng.IntN(len(r.Clients))].Store() }

func (r *run) compareLogs(ctx context.Context) error {
	m := r.model
	want := logReader{after: r.compared}
	if err := want.read(ctx, m, 1_000); err != nil {
		return err
	}
	r.compared = want.after
	s := r.anyStore()
	for try := 0; ; try++ { // PostgreSQL shows changes late while older transactions run
		if err := r.log.read(ctx, s, 1+r.rng.IntN(8)); err != nil {
			return err
		}
		diff := diffAnswers(want.transactions(), nil, r.log.transactions(), nil)
		if diff != "" && (try == 5 || len(r.log.list) >= len(want.list)) {
			return broken("the log of changes is wrong (-want +got):\n%s", diff)
		}
		if diff == "" {
			r.log.list = nil
			return r.compareGaps(ctx, s, m)
		}
	}
}

// compareGaps looks at the beginning, where a thinned log has a gap, and outside of the log.
func (r *run) compareGaps(ctx context.Context, s tree.Store, m *Model) error {
	for place, of := range map[tree.Seq]tree.Seq{0: 0, -1: -1, r.log.after + 1<<40: m.seq + 1} {
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

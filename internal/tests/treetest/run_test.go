package treetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// client is one way to the store under test.
type client struct {
	// store returns the store to call, which may be another one after a crash.
	store func() tree.Store
	// actor is sent with every change; the store must record it.
	actor string
}

const (
	patience = 30 * time.Second // how long a call may take before it counts as unanswered
	traced   = 25               // how many of the last calls a failure shows
)

// runOptions say what [play] does with an empty store.
type runOptions struct {
	seed    uint64 // of the calls, as long as the answers are the same
	steps   int
	clients []client         // take turns; several may share a store
	clock   *storetest.Clock // the store's, used by nobody else
}

// play makes a random sequence of calls by all clients in turns and compares every answer with a
// [model]'s: valid and invalid calls of every method, saves on right, stale and absent
// versions, calls with an ended context. At times and at the end it compares all that can be read,
// and the log of changes.
//
// A failure shows the seed and the last steps.
func play(t *testing.T, o runOptions) {
	t.Helper()
	r := &run{runOptions: o, rng: rand.New(rand.NewPCG(o.seed, 0)), model: newModel(o.clock.Now)}
	if err := r.play(t.Context()); err != nil {
		last := r.trace[max(0, len(r.trace)-traced):]
		t.Fatalf("seed %d, step %d: %v\nthe last steps:\n%s", r.seed, len(r.trace), err, strings.Join(last, "\n"))
	}
}

type run struct {
	runOptions

	rng   *rand.Rand
	model *model
	trace []string
	log   logReader // of the store
	// compared is how much of the model's log has been compared with the store's.
	compared tree.Seq
}

func (r *run) play(ctx context.Context) error {
	for n := range r.steps {
		g := generator{clock: r.clock, rng: r.rng, model: r.model, number: n}
		if r.rng.IntN(3) == 0 {
			r.clock.Add(g.pause())
		}
		client := r.clients[r.rng.IntN(len(r.clients))]
		c := g.next(client.actor)
		if c.thins {
			if err := r.compareLogs(ctx); err != nil { // while the log is complete
				return err
			}
		}
		if err := r.take(ctx, client, c); err != nil {
			return err
		}
		if n%100 == 99 || n == r.steps-1 {
			if err := r.survey(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// take makes one call, and judges the answer.
func (r *run) take(ctx context.Context, client client, c step) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if r.rng.IntN(100) == 0 {
		c.text += " (with a context that has ended)"
		cancel()
	}
	answer, err := c.do(limited, client.store())
	r.trace = append(r.trace, fmt.Sprintf("%4d %s: %s -> %s", len(r.trace), client.actor, c.text, outcome(answer, err)))
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
func (r *run) compareWith(ctx context.Context, m *model, c step, answer any, err error) string {
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

func (r *run) anyStore() tree.Store { return r.clients[r.rng.IntN(len(r.clients))].store() }

func (r *run) compareLogs(ctx context.Context) error {
	m := r.model
	want := logReader{after: r.compared}
	if err := want.read(ctx, m, math.MaxInt); err != nil {
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

// compareGaps looks where the log began: a thinned log has a gap there.
func (r *run) compareGaps(ctx context.Context, s tree.Store, m *model) error {
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

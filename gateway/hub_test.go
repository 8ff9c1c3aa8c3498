package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
)

// fakeConn keeps what it is told.
type fakeConn struct {
	ctx   context.Context
	end   context.CancelFunc
	fresh chan struct{} // of capacity 1

	mu  sync.Mutex
	got []told
	// trees are those of documents for trees.
	trees []told
}

// told is a notification: either kind's fields.
type told struct {
	Method      string          `json:"-"`
	Key         string          `json:"-"`
	Seq         tree.Seq        `json:"seq"`
	WorkspaceID string          `json:"workspace_id"`
	FolderID    tree.FolderID   `json:"folder_id"`
	Action      tree.Action     `json:"action"`
	Summary     *tree.Summary   `json:"summary"`
	Affects     *int            `json:"affects_count"`
	Workspace   *tree.Workspace `json:"workspace"`
	Folder      *tree.Folder    `json:"folder"`
	Thread      *tree.Thread    `json:"thread"`
	AgentsDoc   *tree.Summary   `json:"agents_doc"`
	Gap         bool            `json:"gap"`
}

func newConn() *fakeConn {
	ctx, end := context.WithCancel(context.Background())
	return &fakeConn{ctx: ctx, end: end, fresh: make(chan struct{}, 1)}
}

func (c *fakeConn) Context() context.Context { return c.ctx }

func (c *fakeConn) Caller() *rpc.Caller { return &rpc.Caller{Open: true} }

func (c *fakeConn) Notify(key, method string, params any) {
	raw, _ := params.(json.RawMessage)
	n := told{Method: method, Key: key}
	if err := json.Unmarshal(raw, &n); err != nil {
		panic(err) // the hub gives JSON
	}
	c.mu.Lock()
	if n.AgentsDoc == nil { // a document's note for trees comes with its other one
		c.got = append(c.got, n)
	} else {
		c.trees = append(c.trees, n)
	}
	c.mu.Unlock()
	select {
	case c.fresh <- struct{}{}:
	default:
	}
}

// all is what came so far.
func (c *fakeConn) all() []told {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]told(nil), c.got...)
}

// faulty is a store that can be made to fail.
type faulty struct {
	tree.Store

	listens atomic.Int32
	deaf    atomic.Bool          // Listen ends at once
	down    atomic.Bool          // nothing can be read
	reading func(after tree.Seq) // is told of each Changes, if set
}

var errDown = &tree.Error{Code: tree.CodeUnavailable, Message: "gone"}

func (f *faulty) Listen(ctx context.Context, wake func()) error {
	f.listens.Add(1)
	if f.deaf.Load() {
		return errDown
	}
	return f.Store.Listen(ctx, wake)
}

func (f *faulty) Changes(ctx context.Context, after tree.Seq, limit int) (tree.Changes, error) {
	if f.reading != nil {
		f.reading(after)
	}
	if f.down.Load() {
		return tree.Changes{}, errDown
	}
	return f.Store.Changes(ctx, after, limit)
}

func (f *faulty) Affected(ctx context.Context, s tree.Scope) (int, error) {
	if f.down.Load() {
		return 0, errDown
	}
	return f.Store.Affected(ctx, s)
}

// runHub runs a hub over a store until the end of the test, and waits until it
// knows its place.
func runHub(tb testing.TB, t tree.Store) *hub {
	tb.Helper()
	h := quietHub(t)
	if h.step(tb.Context()) {
		tb.Fatal("the first step is not the only one")
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { h.listen(ctx) })
	running.Go(func() { h.read(ctx) })
	tb.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return h
}

// quietHub is a hub that does nothing by itself.
func quietHub(t tree.Store) *hub {
	return newHub(t, slog.New(slog.DiscardHandler), newMetrics(&Gateway{}))
}

// save saves a document, whatever was there.
func save(tb testing.TB, t tree.Store, workspace, folder, content string) {
	tb.Helper()
	scope := tree.Scope{WorkspaceID: workspace, FolderID: tree.FolderID(folder)}
	var based *int64
	if v := must(t.Doc(tb.Context(), scope))(tb); v.Explicit != nil {
		based = &v.Explicit.Version
	}
	must(t.Save(tb.Context(), tree.Save{Scope: scope, Content: content, ExpectedVersion: based, Actor: "ada"}))(tb)
}

// folder makes a folder of the workspace w.
func folder(tb testing.TB, t tree.Store, id string) {
	tb.Helper()
	must(t.CreateFolder(tb.Context(), tree.CreateFolder{WorkspaceID: "w", ID: id, Name: id}))(tb)
}

// TestListenEnds: listening that ends begins again; what changed meanwhile, and
// while the database could not be read, is told all the same.
func TestListenEnds(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		model := &faulty{Store: storetest.Tree(t, nil)}
		workspace(t, model, "w")
		model.deaf.Store(true)
		h := runHub(t, model)
		c := newConn()
		defer c.end()
		must(h.join(c, "w", false))(t)
		model.down.Store(true)
		time.Sleep(time.Minute) // the waits grow to some seconds
		if n := model.listens.Load(); n < 10 || n > 25 {
			t.Errorf("it tried to listen %d times in a minute", n)
		}
		save(t, model, "w", "", "while it was down")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := c.all(); len(got) != 0 {
			t.Errorf("told %+v by a database that is out of reach", got)
		}
		model.down.Store(false)
		time.Sleep(2 * readEvery)
		synctest.Wait()
		if got := c.all(); len(got) != 1 || got[0].Summary == nil {
			t.Errorf("told %+v, want what was saved while it was down", got)
		}
		model.deaf.Store(false)
		time.Sleep(2 * backoffMost)
		save(t, model, "w", "", "again")
		synctest.Wait() // no time passes: it listens
		if got := c.all(); len(got) != 2 {
			t.Errorf("told %+v, want what was saved last", got)
		}
	})
}

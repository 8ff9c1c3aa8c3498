package treetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/tree"
)

// RunConcurrent plays random calls by all clients at once, in one workspace, with
// few scopes so that they meet. Nobody can say what each answer should have been;
// what must hold whatever the order was is checked in the end:
//
//   - nothing that was acknowledged is lost: each saved, archived or restored version
//     is among its document's revisions, with its text; threads and folders that
//     nobody deleted are there, and those that were deleted are not;
//   - nothing comes from nowhere: each revision that was saved is that of a call
//     that was acknowledged with this version, or not answered at all;
//   - a save that was acknowledged made the version behind the expected one;
//   - versions are without gaps, and no two calls made the same;
//   - a scope has one live document at most, and the tree is well-formed;
//   - the log of changes tells what there is (unless Remote).
func RunConcurrent(t *testing.T, o RunOptions) {
	t.Helper()
	if err := playTogether(t.Context(), o, func() { o.Crash(t) }); err != nil {
		t.Fatal(err)
	}
}

// looseFolders are moved and deleted; steadyFolders only moved, and never into a
// loose one.
const (
	steadyFolders = 4
	looseFolders  = 3
)

// crowd is a concurrent run under way.
type crowd struct {
	RunOptions

	w string
	ledger
	outage
}

// playTogether is RunConcurrent with an error, so that tests can see it find what is
// wrong.
func playTogether(ctx context.Context, o RunOptions, crash func()) error {
	o = o.withDefaults()
	c := &crowd{RunOptions: o, w: o.Prefix + "w", ledger: newLedger(), outage: outage{every: o.CrashEvery}}
	var watch *mirror
	var err error
	if !o.Remote {
		if watch, err = newMirror(ctx, o.Clients[0].Store(), o.Prefix); err != nil {
			return err
		}
	}
	if err := c.setUp(ctx); err != nil {
		return fmt.Errorf("seed %d: %w", o.Seed, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.due, c.over = make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for n := range o.Clients {
		all.Go(func() {
			if err := c.work(ctx, n); err != nil {
				cancel(err)
			}
		})
	}
	go func() {
		all.Wait()
		close(c.over)
	}()
	c.crashes(o.Crash != nil, crash)
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("seed %d: %w", o.Seed, err)
	}
	if err := c.check(ctx, watch); err != nil {
		return fmt.Errorf("seed %d: %w", o.Seed, err)
	}
	return nil
}

// outage lets the system crash while workers work.
type outage struct {
	every int
	due   chan struct{} // it is time for a crash
	over  chan struct{} // all workers have ended

	mu      sync.Mutex
	calls   int
	crashed int           // how often
	up      chan struct{} // closed when the system is up again; nil while it is up
}

// crashes lets the system crash whenever it is due, until all is over.
func (u *outage) crashes(wanted bool, crash func()) {
	for {
		select {
		case <-u.over:
			return
		case <-u.due:
		}
		if wanted {
			u.crash(crash)
		}
	}
}

// crash holds workers back who get no answer, until the system is up again.
func (u *outage) crash(crash func()) {
	u.mu.Lock()
	u.crashed++
	u.up = make(chan struct{})
	u.mu.Unlock()
	defer func() { // also where crash ends the test
		u.mu.Lock()
		defer u.mu.Unlock()
		close(u.up)
		u.up = nil
	}()
	crash()
}

// count counts a call, and asks for a crash when it is time for one. While there is
// one already, that waits.
func (u *outage) count(ctx context.Context) {
	u.mu.Lock()
	u.calls++
	due := u.calls%u.every == 0
	u.mu.Unlock()
	if !due {
		return
	}
	select {
	case u.due <- struct{}{}:
	case <-ctx.Done():
	}
}

// wait waits until the system is up, and returns how often it has crashed.
func (u *outage) wait() int {
	u.mu.Lock()
	up, crashed := u.up, u.crashed
	u.mu.Unlock()
	if up != nil {
		<-up
	}
	return crashed
}

// worker is one client of a crowd.
type worker struct {
	*crowd
	Client

	rng     *rand.Rand
	number  int
	crashes int // that it knows of
	excused int
}

// worker has random numbers of its own: what it does depends on its own answers only.
func (c *crowd) worker(number int) *worker {
	return &worker{crowd: c, Client: c.Clients[number], number: number, rng: rand.New(rand.NewPCG(c.Seed, uint64(number)+1))} //nolint:gosec // an index is not negative
}

// work makes one worker's calls, until something is wrong somewhere.
func (c *crowd) work(ctx context.Context, number int) error {
	w := c.worker(number)
	for n := range c.Steps {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		c.count(ctx)
		ctx, cancel := context.WithTimeout(ctx, c.Patience)
		err := w.act(ctx, n)
		cancel()
		if err := w.excuse(err); err != nil {
			return fmt.Errorf("%s, step %d: %w\n%s", w.Actor, n, err, c.recent())
		}
	}
	return nil
}

// excuse returns nil for a call that was answered, and for one that was not because
// of a crash.
func (w *worker) excuse(err error) error {
	switch {
	case isBroken(err):
		return err
	case answered(err):
		return nil
	}
	if crashed := w.wait(); crashed > w.crashes {
		w.crashes, w.excused = crashed, afterCrash
	}
	if w.excused--; w.excused < 0 {
		return fmt.Errorf("not answered: %w", err)
	}
	return nil
}

func steady(n int) string { return fmt.Sprintf("steady%d", n) }
func loose(n int) string  { return fmt.Sprintf("loose%d", n) }

// setUp makes the workspace and the steady folders.
func (c *crowd) setUp(ctx context.Context) error {
	s, actor := c.Clients[0].Store(), c.Clients[0].Actor
	if _, err := s.CreateWorkspace(ctx, tree.CreateWorkspace{ID: c.w, Name: "Crowd", Actor: actor}); err != nil {
		return err
	}
	for n := range steadyFolders {
		if _, err := s.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: c.w, ID: steady(n), Name: steady(n), Actor: actor}); err != nil {
			return err
		}
	}
	return nil
}

// place is a scope in which workers meet: mostly the root or the first folders.
func (w *worker) place() tree.FolderID {
	switch n := w.rng.IntN(10); n {
	case 0, 1, 2:
		return ""
	case 3, 4, 5:
		return tree.FolderID(steady(0))
	case 6:
		return tree.FolderID(loose(w.rng.IntN(looseFolders)) + "-" + strconv.Itoa(w.rng.IntN(4)))
	default:
		return tree.FolderID(steady(w.rng.IntN(steadyFolders)))
	}
}

func (w *worker) scope() tree.Scope { return tree.Scope{WorkspaceID: w.w, FolderID: w.place()} }

// act makes one call. Refusals are answers; what they may be is not judged here.
func (w *worker) act(ctx context.Context, n int) error {
	s := w.Store()
	switch choice := w.rng.IntN(20); {
	case choice < 11:
		return w.saveSome(ctx, s, n)
	case choice < 12:
		return w.archiveSome(ctx, s)
	case choice < 14:
		return w.restoreSome(ctx, s)
	case choice < 15:
		p := tree.MoveFolder{WorkspaceID: w.w, FolderID: steady(w.rng.IntN(steadyFolders)), Actor: w.Actor}
		if w.rng.IntN(3) > 0 {
			p.ParentID = tree.FolderID(steady(w.rng.IntN(steadyFolders)))
		}
		_, err := s.MoveFolder(ctx, p)
		return err
	case choice < 17:
		return w.looseFolder(ctx, s)
	default:
		return w.someThread(ctx, s, n)
	}
}

// saveSome saves on what is there, or on what was there before.
func (w *worker) saveSome(ctx context.Context, s tree.Store, n int) error {
	p := tree.Save{
		Scope: w.scope(), Actor: w.Actor, SaveReason: tree.Autosave, ExpectedVersion: new(int64(0)),
		// Each text is of one call, so that a revision tells whose it is.
		Content: fmt.Sprintf("step %d of %d", n, w.number),
	}
	view, err := s.Doc(ctx, p.Scope)
	if err != nil {
		return err
	}
	if d := view.Explicit; d != nil {
		p.ExpectedVersion, p.ExpectedDocID = new(d.Version-int64(w.rng.IntN(6)/5)), d.ID
	}
	got, err := s.Save(ctx, p)
	return w.saved(p, got, err)
}

// archiveSome expects nothing: whatever is there goes.
func (w *worker) archiveSome(ctx context.Context, s tree.Store) error {
	got, err := s.Archive(ctx, tree.ArchiveDoc{Scope: w.scope(), Actor: w.Actor})
	if err != nil || got.Doc == nil {
		return err
	}
	return w.made("archive", *got.Doc)
}

// restoreSome brings one of the first versions back, of what is live or archived.
func (w *worker) restoreSome(ctx context.Context, s tree.Store) error {
	got, err := s.Restore(ctx, tree.RestoreDoc{Scope: w.scope(), Version: 1 + w.rng.Int64N(3), Actor: w.Actor})
	if err != nil {
		return err
	}
	return w.made("restore", got)
}

// looseFolder makes, moves or deletes a folder that nothing steady is in. Its name
// is a loose one's and a number: a deleted folder's id is not used again.
func (w *worker) looseFolder(ctx context.Context, s tree.Store) error {
	id := loose(w.rng.IntN(looseFolders)) + "-" + strconv.Itoa(w.rng.IntN(4))
	var err error
	switch w.rng.IntN(5) {
	case 0:
		_, err = s.DeleteFolder(ctx, tree.DeleteFolder{WorkspaceID: w.w, FolderID: id, Recursive: true, Actor: w.Actor})
		if err == nil {
			w.deleted("folder", id)
		}
	case 1:
		_, err = s.MoveFolder(ctx, tree.MoveFolder{WorkspaceID: w.w, FolderID: id, ParentID: w.place(), Actor: w.Actor})
	default:
		_, err = s.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: w.w, ParentID: w.place(), ID: id, Name: id, Actor: w.Actor})
	}
	return err
}

// someThread makes a thread of its own, or moves or deletes one that it made.
func (w *worker) someThread(ctx context.Context, s tree.Store, n int) error {
	mine := func(n int) string { return fmt.Sprintf("t%d-%d", w.number, n) }
	old := mine(w.rng.IntN(n + 1))
	switch w.rng.IntN(6) {
	case 0:
		w.doomed(old)
		_, err := s.DeleteThread(ctx, tree.DeleteThread{WorkspaceID: w.w, ThreadID: old, Actor: w.Actor})
		if err == nil {
			w.deleted("thread", old)
		}
		return err
	case 1, 2:
		_, err := s.MoveThread(ctx, tree.MoveThread{WorkspaceID: w.w, ThreadID: old, FolderID: w.place(), Actor: w.Actor})
		return err
	default:
		p := tree.CreateThread{WorkspaceID: w.w, FolderID: w.place(), ID: mine(n), Title: "Thread", Actor: w.Actor}
		_, err := s.CreateThread(ctx, p)
		if err == nil {
			w.created(p.ID)
		}
		return err
	}
}

// recent are the last calls that the ledger knows, for a failure.
func (l *ledger) recent() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return "the last calls:\n" + strings.Join(l.log[max(0, len(l.log)-traced):], "\n")
}

package treetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tree"
)

// crowdOptions say what [playAtOnce] does with an empty store.
type crowdOptions struct {
	seed    uint64
	steps   int // of each client
	clients []client

	// crash, if set, kills the store and restarts it, after about as many calls as every says. When it returns, nothing of
	// the killed store may be at work. Calls that then get no answer may or may not have happened; otherwise they fail the test.
	crash func(t *testing.T)
	every int
}

// afterCrash is how many calls of a client may go unanswered after a crash: noticing a lost connection may take several.
const afterCrash = 4

// playAtOnce makes random calls by all clients at the same time, in one workspace with few
// scopes so that they meet. It does not judge single answers, but checks at the end that no
// acknowledged version, thread or folder is lost, no revision comes from nowhere, versions have
// no gaps or duplicates, the tree is well-formed, and the log of changes, which a gateway does not
// show, leads to what exists.
func playAtOnce(t *testing.T, o crowdOptions) {
	t.Helper()
	c := &crowd{crowdOptions: o, ledger: ledger{
		versions: map[string]map[int64]string{}, texts: map[string]attempt{}, threads: map[string]bool{}, gone: map[string]bool{},
	}}
	if err := c.play(t.Context(), func() { o.crash(t) }); err != nil {
		t.Fatalf("seed %d: %v\nthe last calls:\n%s", c.seed, err, c.recent(""))
	}
}

// crowdSpace is the workspace of all calls.
const crowdSpace = "w"

// Loose folders are moved, deleted and created again; steady folders are only moved, and never
// into a loose one.
const (
	steadyFolders = 4
	looseFolders  = 12
)

func steady(n int) string { return fmt.Sprintf("steady%d", n) }
func loose(n int) string  { return fmt.Sprintf("loose%d", n) }

type crowd struct {
	crowdOptions
	ledger
}

// play makes the calls in rounds, each with a crash in its middle.
func (c *crowd) play(ctx context.Context, crash func()) error {
	s, actor := c.clients[0].store(), c.clients[0].actor
	if _, err := s.CreateWorkspace(ctx, tree.CreateWorkspace{ID: crowdSpace, Name: "Crowd", Actor: actor}); err != nil {
		return err
	}
	for n := range steadyFolders {
		if _, err := s.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: crowdSpace, ID: steady(n), Name: steady(n), Actor: actor}); err != nil {
			return err
		}
	}
	var workers []*worker
	for n := range c.clients {
		rng := rand.New(rand.NewPCG(c.seed, uint64(n)+1))
		workers = append(workers, &worker{crowd: c, client: c.clients[n], number: n, rng: rng})
	}
	round := c.steps
	if c.crash != nil {
		round = max(1, c.every/len(workers))
	}
	for from := 0; from < c.steps; from += round {
		var all sync.WaitGroup
		errs := make([]error, len(workers))
		mid := make(chan struct{})
		for n, w := range workers {
			all.Go(func() {
				reached := func() {}
				if n == 0 {
					reached = sync.OnceFunc(func() { close(mid) })
				}
				defer reached()
				errs[n] = w.work(ctx, from, min(from+round, c.steps), reached)
			})
		}
		<-mid
		if c.crash != nil {
			crash()
		}
		all.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
	}
	return c.check(ctx, workers[0])
}

type worker struct {
	*crowd
	client

	number  int
	rng     *rand.Rand
	excused int // how many more calls may go unanswered
}

// work makes a worker's calls of a round. It waits for the next round when too many calls have
// got no answer.
func (w *worker) work(ctx context.Context, from, to int, reached func()) error {
	if w.crash != nil {
		w.excused = afterCrash
	}
	for n := from; n < to; n++ {
		if n >= (from+to)/2 {
			reached()
		}
		err := w.act(ctx, n)
		if answered(err) {
			if isBroken(err) {
				return fmt.Errorf("%s, step %d: %w", w.actor, n, err)
			}
			continue
		}
		if w.excused--; w.excused < 0 {
			return fmt.Errorf("%s, step %d: not answered: %w", w.actor, n, err)
		}
		if w.excused == 0 {
			break
		}
	}
	return nil
}

func (w *worker) place() tree.FolderID {
	switch n := w.rng.IntN(10); {
	case n < 3:
		return ""
	case n < 6:
		return tree.FolderID(steady(0))
	case n < 7:
		return tree.FolderID(loose(w.rng.IntN(looseFolders)))
	default:
		return tree.FolderID(steady(w.rng.IntN(steadyFolders)))
	}
}

func (w *worker) act(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := w.store()
	scope := tree.Scope{WorkspaceID: crowdSpace, FolderID: w.place()}
	switch choice := w.rng.IntN(20); {
	case choice < 11:
		return w.save(ctx, s, scope, n)
	case choice < 12: // whatever exists
		got, err := s.Archive(ctx, tree.ArchiveDoc{Scope: scope, Actor: w.actor})
		if err != nil || got.Doc == nil {
			return err
		}
		return w.made("archive", *got.Doc)
	case choice < 14: // one of the first versions
		got, err := s.Restore(ctx, tree.RestoreDoc{Scope: scope, Version: 1 + w.rng.Int64N(3), Actor: w.actor})
		if err != nil {
			return err
		}
		return w.made("restore", got)
	case choice < 15:
		p := tree.MoveFolder{WorkspaceID: crowdSpace, FolderID: steady(w.rng.IntN(steadyFolders)), Actor: w.actor}
		if w.rng.IntN(3) > 0 {
			p.ParentID = tree.FolderID(steady(w.rng.IntN(steadyFolders)))
		}
		_, err := s.MoveFolder(ctx, p)
		return err
	case choice < 17:
		return w.looseFolder(ctx, s, scope.FolderID)
	default:
		return w.thread(ctx, s, scope.FolderID, n)
	}
}

func (w *worker) save(ctx context.Context, s tree.Store, scope tree.Scope, n int) error {
	p := tree.Save{
		Scope: scope, Actor: w.actor, SaveReason: tree.Autosave, ExpectedVersion: new(int64(0)),
		Content: fmt.Sprintf("step %d of %d", n, w.number), // each text is of one call
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

func (w *worker) looseFolder(ctx context.Context, s tree.Store, place tree.FolderID) (err error) {
	id := loose(w.rng.IntN(looseFolders))
	switch w.rng.IntN(5) {
	case 0:
		if _, err = s.DeleteFolder(ctx, tree.DeleteFolder{WorkspaceID: crowdSpace, FolderID: id, Recursive: true, Actor: w.actor}); err == nil {
			w.note(func(l *ledger) { l.gone["folder "+id] = true })
		}
	case 1:
		_, err = s.MoveFolder(ctx, tree.MoveFolder{WorkspaceID: crowdSpace, FolderID: id, ParentID: place, Actor: w.actor})
	default:
		_, err = s.CreateFolder(ctx, tree.CreateFolder{WorkspaceID: crowdSpace, ParentID: place, ID: id, Name: id, Actor: w.actor})
	}
	return err
}

func (w *worker) thread(ctx context.Context, s tree.Store, place tree.FolderID, n int) (err error) {
	mine := func(n int) string { return fmt.Sprintf("t%d-%d", w.number, n) }
	id := mine(w.rng.IntN(n + 1))
	switch w.rng.IntN(6) {
	case 0:
		w.note(func(l *ledger) { delete(l.threads, id) })
		if _, err = s.DeleteThread(ctx, tree.DeleteThread{WorkspaceID: crowdSpace, ThreadID: id, Actor: w.actor}); err == nil {
			w.note(func(l *ledger) { l.gone["thread "+id] = true })
		}
	case 1, 2:
		_, err = s.MoveThread(ctx, tree.MoveThread{WorkspaceID: crowdSpace, ThreadID: id, FolderID: place, Actor: w.actor})
	default:
		id = mine(n)
		if _, err = s.CreateThread(ctx, tree.CreateThread{WorkspaceID: crowdSpace, FolderID: place, ID: id, Title: "Thread", Actor: w.actor}); err == nil {
			w.note(func(l *ledger) { l.threads[id] = true })
		}
	}
	return err
}

// ledger is what was acknowledged.
type ledger struct {
	mu       sync.Mutex
	versions map[string]map[int64]string
	texts    map[string]attempt
	// threads are those that nobody tried to delete; gone is what was deleted, as "thread id"
	// and "folder id".
	threads, gone map[string]bool
	calls         []string
}

type attempt struct {
	answered bool
	version  int64 // 0 if it was refused
}

func (l *ledger) note(change func(l *ledger)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *ledger) saved(p tree.Save, got tree.Saved, err error) error {
	l.note(func(l *ledger) {
		l.texts[p.Content] = attempt{answered: answered(err), version: got.Doc.Version}
		l.calls = append(l.calls, fmt.Sprintf("%s: save %q on version %d of %q -> %s", p.Actor, p.Content, *p.ExpectedVersion, p.FolderID, outcome(got, err)))
	})
	if err != nil {
		return err
	}
	if got.Unchanged || got.Doc.Version != *p.ExpectedVersion+1 || got.Doc.ContentSHA256 != tree.Sum(p.Content) {
		return broken("a save on version %d made version %d with %s, want %s (unchanged: %t)",
			*p.ExpectedVersion, got.Doc.Version, got.Doc.ContentSHA256, tree.Sum(p.Content), got.Unchanged)
	}
	return l.made(fmt.Sprintf("save %q", p.Content), got.Doc)
}

func (l *ledger) made(how string, d tree.Doc) (err error) {
	l.note(func(l *ledger) {
		l.calls = append(l.calls, fmt.Sprintf("%s made version %d of %s", how, d.Version, d.ID))
		if l.versions[d.ID] == nil {
			l.versions[d.ID] = map[int64]string{}
		}
		if _, twice := l.versions[d.ID][d.Version]; twice {
			err = broken("version %d of %s was made twice, last by %s", d.Version, d.ID, how)
		}
		l.versions[d.ID][d.Version] = d.ContentSHA256
	})
	return err
}

func (l *ledger) recent(what string) string {
	var list []string
	for _, line := range l.calls {
		if strings.Contains(line, what) {
			list = append(list, line)
		}
	}
	return strings.Join(list[max(0, len(list)-traced):], "\n")
}

func (c *crowd) check(ctx context.Context, w *worker) error {
	all, err := readAll(ctx, w.store())
	for n := 0; n < afterCrash && !answered(err); n++ {
		all, err = readAll(ctx, w.store())
	}
	if err != nil {
		return fmt.Errorf("reading everything in the end: %w", err)
	}
	page := all.Trees[crowdSpace]
	if err := c.checkTree(page); err != nil {
		return err
	}
	for doc := range c.versions {
		if _, ok := all.Revisions[doc]; !ok {
			return fmt.Errorf("document %s is lost:\n%s", doc, c.recent(doc))
		}
	}
	for doc, list := range all.Revisions {
		if err := c.checkRevisions(doc, list); err != nil {
			return fmt.Errorf("document %s: %w\n%s", doc, err, c.recent(doc))
		}
	}
	if c.crash != nil { // the store is behind a gateway
		return nil
	}
	return c.checkLog(ctx, w.store(), page)
}

func (c *crowd) checkTree(page tree.Page) error {
	there := map[string]bool{}
	for _, f := range page.Folders {
		there["folder "+f.ID] = true
	}
	for _, t := range page.Threads {
		there["thread "+t.ID] = true
	}
	for n := range steadyFolders {
		if !there["folder "+steady(n)] {
			return fmt.Errorf("folder %q is lost", steady(n))
		}
	}
	for id := range c.threads {
		if !there["thread "+id] {
			return fmt.Errorf("thread %q was acknowledged and is lost", id)
		}
	}
	for what := range c.gone {
		if there[what] {
			return fmt.Errorf("%s was deleted and exists", what)
		}
	}
	return nil
}

func (c *crowd) checkRevisions(doc string, list []tree.Revision) error {
	for n, r := range list {
		sum, acknowledged := c.versions[doc][r.Version]
		a, known := c.texts[*r.Content]
		switch {
		case r.Version != int64(len(list)-n):
			return fmt.Errorf("one of %d revisions is version %d: there is a gap", len(list), r.Version)
		case tree.Sum(*r.Content) != r.ContentSHA256 || acknowledged && sum != r.ContentSHA256:
			return fmt.Errorf("version %d has another text than its hash says, or than was acknowledged: %q", r.Version, *r.Content)
		case r.SaveReason != tree.Autosave:
		case !known:
			return fmt.Errorf("version %d has the text %q, which nobody saved", r.Version, *r.Content)
		case a.answered && (a.version != r.Version || !acknowledged):
			return fmt.Errorf("version %d has the text %q, whose save was refused or made version %d", r.Version, *r.Content, a.version)
		}
	}
	for v := range c.versions[doc] {
		if v > int64(len(list)) {
			return fmt.Errorf("version %d is lost", v)
		}
	}
	return nil
}

func (c *crowd) checkLog(ctx context.Context, s tree.Store, page tree.Page) error {
	var log logReader
	if err := log.read(ctx, s, 100); err != nil {
		return err
	}
	items := map[string]any{}
	for _, change := range log.list {
		var item any
		switch {
		case change.Folder != nil:
			item = *change.Folder
		case change.Thread != nil:
			item = *change.Thread
		case change.Doc != nil:
			item = *change.Doc
		default:
			item = crowdSpace
		}
		id := itemOf(change)
		if _, exists := items[id]; exists && change.Action == tree.Created {
			return broken("the log creates %s twice", id)
		}
		items[id] = item
		if change.Action == tree.Deleted || change.Action == tree.DocArchived {
			delete(items, id)
		}
	}
	want := map[string]any{"workspace": crowdSpace}
	for _, f := range page.Folders {
		want["folder "+f.ID] = f
	}
	for _, t := range page.Threads {
		want["thread "+t.ID] = t
	}
	for _, d := range page.AgentsDocs {
		want["doc "+d.ID] = d
	}
	if diff := gocmp.Diff(want, items); diff != "" {
		return broken("the log of changes leads elsewhere (-exists +log):\n%s", diff)
	}
	return nil
}

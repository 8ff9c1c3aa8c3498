package treetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/tree"
)

// ledger is what a concurrent run was told.
type ledger struct {
	mu sync.Mutex
	// versions are the hashes that were acknowledged, by document and version, and
	// how each was made.
	versions map[string]map[int64]acknowledged
	// texts are the saves by their text: each text is of one call.
	texts map[string]attempt
	// threads that were created and that nobody tried to delete; and what was deleted,
	// as "thread id" and "folder id".
	threads map[string]bool
	gone    map[string]bool
	log     []string
}

type acknowledged struct{ sum, how string }

// attempt is what became of a save.
type attempt struct {
	answered bool
	refused  bool
	version  int64 // that it made, where it was acknowledged
}

func newLedger() ledger {
	return ledger{
		versions: map[string]map[int64]acknowledged{}, texts: map[string]attempt{},
		threads: map[string]bool{}, gone: map[string]bool{},
	}
}

// saved takes note of a save and its answer.
func (l *ledger) saved(p tree.Save, got tree.Saved, err error) error {
	a := attempt{answered: answered(err), refused: err != nil}
	if err == nil {
		a.version = got.Doc.Version
	}
	l.mu.Lock()
	l.texts[p.Content] = a
	l.log = append(l.log, fmt.Sprintf("%s: save %q on version %d of %q -> %s", p.Actor, p.Content, *p.ExpectedVersion, p.FolderID, outcome(got, err)))
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if got.Unchanged || got.Doc.Version != *p.ExpectedVersion+1 || got.Doc.ContentSHA256 != tree.Sum(p.Content) {
		return broken("a save on version %d made version %d with %s, want %s (unchanged: %t)",
			*p.ExpectedVersion, got.Doc.Version, got.Doc.ContentSHA256, tree.Sum(p.Content), got.Unchanged)
	}
	return l.made(fmt.Sprintf("save %q", p.Content), got.Doc)
}

// made takes note of a version that was acknowledged.
func (l *ledger) made(how string, d tree.Doc) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, fmt.Sprintf("%s made version %d of %s", how, d.Version, d.ID))
	if l.versions[d.ID] == nil {
		l.versions[d.ID] = map[int64]acknowledged{}
	}
	if had, twice := l.versions[d.ID][d.Version]; twice {
		return broken("version %d of %s was made by %s and by %s", d.Version, d.ID, had.how, how)
	}
	l.versions[d.ID][d.Version] = acknowledged{d.ContentSHA256, how}
	return nil
}

// created takes note of a thread that was acknowledged.
func (l *ledger) created(thread string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.threads[thread] = true
}

// doomed takes note that a thread may be deleted from now on.
func (l *ledger) doomed(thread string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.threads, thread)
}

// deleted takes note of what must not come back.
func (l *ledger) deleted(what, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone[what+" "+id] = true
}

// check reads what there is when all is over, and compares it with the ledger.
func (c *crowd) check(ctx context.Context, watch *mirror) error {
	w := c.worker(0)
	w.excused = afterCrash // who reads now may have slept through a crash
	read := func(f func(s tree.Store) error) error {
		for {
			err := f(w.Store())
			if answered(err) || w.excuse(err) != nil {
				return err
			}
		}
	}
	var all survey
	err := read(func(s tree.Store) (err error) {
		all, err = readAll(ctx, s, c.Prefix)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading everything in the end: %w", err)
	}
	if err := c.checkTree(all.Trees[c.w]); err != nil {
		return err
	}
	for doc := range c.versions {
		if _, ok := all.Revisions[doc]; !ok {
			return fmt.Errorf("document %s is lost:\n%s", doc, c.about(doc))
		}
	}
	for doc, list := range all.Revisions {
		if err := c.checkRevisions(doc, list); err != nil {
			return fmt.Errorf("document %s: %w\n%s", doc, err, c.about(doc))
		}
	}
	if watch != nil {
		return read(func(s tree.Store) error { return watch.compare(ctx, s) })
	}
	return nil
}

// about are the calls that were told to be about a document.
func (l *ledger) about(doc string) string {
	list := slices.DeleteFunc(slices.Clone(l.log), func(line string) bool { return !strings.Contains(line, doc) })
	return "the last calls about it:\n" + strings.Join(list[max(0, len(list)-traced):], "\n")
}

// checkTree looks for what has to be in the tree, and what must not.
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
			return fmt.Errorf("%s was deleted and is there", what)
		}
	}
	return nil
}

// checkRevisions compares a document's revisions, newest first, with what was told.
func (c *crowd) checkRevisions(doc string, list []tree.Revision) error {
	told := c.versions[doc]
	for n, r := range list {
		if r.Version != int64(len(list)-n) {
			return fmt.Errorf("of %d revisions one is version %d: there is a gap", len(list), r.Version)
		}
		if r.Content == nil || tree.Sum(*r.Content) != r.ContentSHA256 {
			return fmt.Errorf("version %d has another hash than its text", r.Version)
		}
		ack, ok := told[r.Version]
		if ok && ack.sum != r.ContentSHA256 {
			return fmt.Errorf("version %d, made by %s, has another text: %q", r.Version, ack.how, *r.Content)
		}
		if r.SaveReason != tree.Autosave {
			continue
		}
		a, known := c.texts[*r.Content]
		switch {
		case !known:
			return fmt.Errorf("version %d has the text %q, which nobody saved", r.Version, *r.Content)
		case a.answered && a.refused:
			return fmt.Errorf("version %d has the text %q, whose save was refused", r.Version, *r.Content)
		case a.answered && a.version != r.Version || a.answered && !ok:
			return fmt.Errorf("version %d has the text %q, which was told to be version %d", r.Version, *r.Content, a.version)
		}
	}
	for v, ack := range told {
		if v > int64(len(list)) {
			return fmt.Errorf("version %d, made by %s, is lost", v, ack.how)
		}
	}
	return nil
}

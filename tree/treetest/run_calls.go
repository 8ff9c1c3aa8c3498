package treetest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/tree"
)

// step is one call of a run.
type step struct {
	text string
	do   func(ctx context.Context, s tree.Store) (any, error)
	// scope is where the call may make a document; zero for nowhere.
	scope tree.Scope
}

// calling makes a step of a method and its parameters, which the trace shows as
// their JSON.
func calling[P, R any](name string, method func(tree.Store, context.Context, P) (R, error), p P) step {
	text, err := json.Marshal(p)
	if err != nil {
		text = fmt.Append(nil, err)
	}
	if len(text) > 400 {
		text = append(text[:400], "…"...)
	}
	return step{text: name + " " + string(text), do: func(ctx context.Context, s tree.Store) (any, error) {
		return method(s, ctx, p)
	}}
}

// generator makes calls that suit what a model holds, and some that do not.
type generator struct {
	rng    *rand.Rand
	model  *Model
	prefix string
	remote bool
	number int // of the call; makes ids and texts
	actor  string
}

// next makes a call. The choice and all in it come from the random numbers and the
// model alone.
func (g *generator) next(actor string) step {
	g.actor = actor
	live := 0
	for _, sp := range g.model.spaces {
		if !sp.deleted {
			live++
		}
	}
	if live < 2 {
		id := fmt.Sprintf("%s%d", g.prefix, g.number)
		return calling("create workspace", tree.Store.CreateWorkspace, tree.CreateWorkspace{ID: id, Name: g.name(), Actor: g.actor})
	}
	choices := []struct {
		weight int
		make   func(sp *space) step
	}{
		{240, g.save},
		{60, g.archive},
		{70, g.restore},
		{90, g.createFolder},
		{30, g.renameFolder},
		{80, g.moveFolder},
		{30, g.deleteFolder},
		{60, g.createThread},
		{20, g.renameThread},
		{50, g.moveThread},
		{15, g.deleteThread},
		{10, g.renameWorkspace},
		{3, g.deleteWorkspace},
		{70, g.doc},
		{60, g.resolve},
		{40, g.tree},
		{40, g.revisions},
		{30, g.archived},
		{10, g.workspaces},
		{30, g.affected},
	}
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	at := g.rng.IntN(total)
	for _, c := range choices {
		if at -= c.weight; at < 0 {
			return c.make(g.space())
		}
	}
	return step{} // not reached: at is less than the total
}

// chance says yes so many times of a hundred.
func (g *generator) chance(percent int) bool { return g.rng.IntN(100) < percent }

// pick picks one of a map's keys, or of a default where there is none.
func pick[V any](g *generator, m map[string]V, keep func(V) bool, other string) string {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(k string) bool { return !keep(m[k]) })
	if len(keys) == 0 {
		return other
	}
	return keys[g.rng.IntN(len(keys))]
}

// space is a workspace; at times a deleted one.
func (g *generator) space() *space {
	gone := g.chance(2)
	return g.model.spaces[pick(g, g.model.spaces, func(sp *space) bool { return gone || !sp.deleted }, "")]
}

// folder is one of a workspace's folders; at times a deleted one, or none.
func (g *generator) folder(sp *space) string {
	gone := g.chance(5)
	return pick(g, sp.folders, func(f *folder) bool { return f.deleted == gone }, "unknown")
}

// place is the root or a folder.
func (g *generator) place(sp *space) tree.FolderID {
	if g.chance(20) {
		return ""
	}
	return tree.FolderID(g.folder(sp))
}

func (g *generator) scope(sp *space) tree.Scope {
	return tree.Scope{WorkspaceID: sp.ID, FolderID: g.place(sp)}
}

// thread is one of a workspace's threads; at times a deleted one, or none.
func (g *generator) thread(sp *space) string {
	gone := g.chance(5)
	return pick(g, sp.threads, func(t *thread) bool { return t.deleted == gone }, "unknown")
}

// anyDoc is a document of a workspace, live or archived, of one scope or of all.
func (g *generator) anyDoc(sp *space, of func(d *document) bool) string {
	return pick(g, sp.docs, of, "unknown")
}

// name is one of a few, so that names recur; at times it is no name.
func (g *generator) name() string {
	if g.chance(1) {
		return " "
	}
	names := []string{"Notes", "Notes", "Entwürfe", "工作", "a/b", "x <y> & z"}
	return names[g.rng.IntN(len(names))]
}

// content is a text; a few recur, so that some saves change nothing.
func (g *generator) content() string {
	switch g.rng.IntN(40) {
	case 0:
		return "a\x00b"
	case 1:
		return strings.Repeat("x", tree.MaxChars+1)
	case 2, 3, 4:
		return ""
	case 5, 6:
		return " \r\n\t"
	case 7, 8, 9, 10:
		return "\ufeffsame\r\ntext ✓\r"
	case 11:
		return strings.Repeat("ü\r\n", tree.MaxChars/2)
	default:
		return fmt.Sprintf("# Text %d\n\nof %s", g.number, g.actor)
	}
}

// expected is a version to expect of a document, which is nil for none: mostly the
// right one.
func (g *generator) expected(d *document) *int64 {
	right := int64(0)
	if d != nil {
		right = d.Version
	}
	switch g.rng.IntN(12) {
	case 0, 1:
		return nil
	case 2:
		return new(right - 1)
	case 3:
		return new(right + 1)
	case 4:
		return new(int64(0))
	case 5:
		return new(g.rng.Int64N(right + 1))
	default:
		return new(right)
	}
}

// guard is a document to expect: mostly the right one or none.
func (g *generator) guard(sp *space, d *document) string {
	switch {
	case g.chance(50):
		return ""
	case d == nil || g.chance(15):
		if g.chance(50) {
			return ""
		}
		return g.anyDoc(sp, func(*document) bool { return true })
	default:
		return d.ID
	}
}

// save is right more often than not: what is refused leaves less to compare.
func (g *generator) save(sp *space) step {
	p := tree.Save{Scope: g.scope(sp), Content: g.content(), Actor: g.actor}
	d := sp.live(p.FolderID)
	p.ExpectedVersion, p.ExpectedDocID = g.expected(d), g.guard(sp, d)
	reasons := []tree.SaveReason{"", tree.Manual, tree.Autosave, tree.Autosave}
	p.SaveReason = reasons[g.rng.IntN(len(reasons))]
	c := calling("save", tree.Store.Save, p)
	c.scope = p.Scope
	return c
}

func (g *generator) archive(sp *space) step {
	p := tree.ArchiveDoc{Scope: g.scope(sp), Actor: g.actor}
	d := sp.live(p.FolderID)
	p.ExpectedVersion, p.ExpectedDocID = g.expected(d), g.guard(sp, d)
	return calling("archive", tree.Store.Archive, p)
}

// restore takes a revision of the live document, of another of the scope, or of any.
func (g *generator) restore(sp *space) step {
	p := tree.RestoreDoc{Scope: g.scope(sp), Actor: g.actor}
	to := sp.live(p.FolderID)
	switch g.rng.IntN(5) {
	case 0, 1:
	case 2:
		p.DocID = g.anyDoc(sp, func(*document) bool { return true })
	default:
		p.DocID = g.anyDoc(sp, func(d *document) bool { return d.FolderID == p.FolderID })
	}
	from := cmp.Or(sp.docs[p.DocID], to)
	p.Version = 1
	if from != nil {
		p.Version = 1 + g.rng.Int64N(from.Version+1) // one too many at times
	}
	if g.chance(50) {
		p.ExpectedVersion = g.expected(cmp.Or(to, from))
	}
	return calling("restore", tree.Store.Restore, p)
}

// createFolder makes a new one, or one that is or was there again.
func (g *generator) createFolder(sp *space) step {
	p := tree.CreateFolder{WorkspaceID: sp.ID, ParentID: g.place(sp), ID: fmt.Sprintf("f%d", g.number), Name: g.name(), Actor: g.actor}
	if had := sp.folders[g.folder(sp)]; had != nil && g.chance(10) {
		p.ID = had.ID
		if g.chance(70) {
			p.ParentID, p.Name = had.ParentID, had.Name
		}
	}
	return calling("create folder", tree.Store.CreateFolder, p)
}

func (g *generator) renameFolder(sp *space) step {
	return calling("rename folder", tree.Store.RenameFolder, tree.RenameFolder{WorkspaceID: sp.ID, FolderID: g.folder(sp), Name: g.name(), Actor: g.actor})
}

func (g *generator) moveFolder(sp *space) step {
	return calling("move folder", tree.Store.MoveFolder, tree.MoveFolder{WorkspaceID: sp.ID, FolderID: g.folder(sp), ParentID: g.place(sp), Actor: g.actor})
}

func (g *generator) deleteFolder(sp *space) step {
	return calling("delete folder", tree.Store.DeleteFolder, tree.DeleteFolder{WorkspaceID: sp.ID, FolderID: g.folder(sp), Recursive: g.chance(60), Actor: g.actor})
}

// createThread makes a new one, or one that is or was there again.
func (g *generator) createThread(sp *space) step {
	p := tree.CreateThread{WorkspaceID: sp.ID, FolderID: g.place(sp), ID: fmt.Sprintf("t%d", g.number), Title: g.name(), Actor: g.actor}
	if had := sp.threads[g.thread(sp)]; had != nil && g.chance(10) {
		p.ID = had.ID
		if g.chance(70) {
			p.FolderID, p.Title = had.FolderID, had.Title
		}
	}
	return calling("create thread", tree.Store.CreateThread, p)
}

func (g *generator) renameThread(sp *space) step {
	return calling("rename thread", tree.Store.RenameThread, tree.RenameThread{WorkspaceID: sp.ID, ThreadID: g.thread(sp), Title: g.name(), Actor: g.actor})
}

func (g *generator) moveThread(sp *space) step {
	return calling("move thread", tree.Store.MoveThread, tree.MoveThread{WorkspaceID: sp.ID, ThreadID: g.thread(sp), FolderID: g.place(sp), Actor: g.actor})
}

func (g *generator) deleteThread(sp *space) step {
	return calling("delete thread", tree.Store.DeleteThread, tree.DeleteThread{WorkspaceID: sp.ID, ThreadID: g.thread(sp), Actor: g.actor})
}

func (g *generator) renameWorkspace(sp *space) step {
	return calling("rename workspace", tree.Store.RenameWorkspace, tree.RenameWorkspace{WorkspaceID: sp.ID, Name: g.name(), Actor: g.actor})
}

func (g *generator) deleteWorkspace(sp *space) step {
	return calling("delete workspace", tree.Store.DeleteWorkspace, tree.DeleteWorkspace{WorkspaceID: sp.ID, Recursive: g.chance(30), Actor: g.actor})
}

func (g *generator) doc(sp *space) step { return calling("doc", tree.Store.Doc, g.scope(sp)) }

// affected is asked of stores only: the wire tells it with a change.
func (g *generator) affected(sp *space) step {
	if g.remote {
		return g.doc(sp)
	}
	return calling("affected", tree.Store.Affected, g.scope(sp))
}

// resolve: for a thread that is not known, the wire has another answer than stores.
func (g *generator) resolve(sp *space) step {
	ref := tree.ThreadRef{WorkspaceID: sp.ID, ThreadID: g.thread(sp)}
	if _, err := sp.thread(ref.ThreadID); err != nil && g.remote {
		return g.doc(sp)
	}
	return calling("resolve", tree.Store.Resolve, ref)
}

func (g *generator) tree(sp *space) step {
	threads := []tree.Threads{"", tree.AllThreads, tree.NoThreads}
	return calling("tree", tree.Store.Tree, tree.Query{Scope: g.scope(sp), Depth: g.rng.IntN(4), Threads: threads[g.rng.IntN(len(threads))]})
}

// revisions asks for small pages, so that limits matter.
func (g *generator) revisions(sp *space) step {
	q := tree.RevisionQuery{Scope: g.scope(sp), Limit: g.rng.IntN(5), BeforeVersion: g.rng.Int64N(6), IncludeContent: g.chance(50)}
	if g.chance(60) {
		q.DocID = g.anyDoc(sp, func(*document) bool { return true })
	}
	return calling("revisions", tree.Store.Revisions, q)
}

func (g *generator) archived(sp *space) step {
	q := tree.ArchivedQuery{Scope: g.scope(sp), All: g.chance(40), Limit: g.rng.IntN(4), IncludeContent: g.chance(50)}
	return calling("archived", tree.Store.ArchivedDocs, q)
}

// workspaces looks at the run's own only: the store may have others.
func (g *generator) workspaces(*space) step {
	return step{text: "workspaces", do: func(ctx context.Context, s tree.Store) (any, error) {
		return workspacesOf(ctx, s, g.prefix)
	}}
}

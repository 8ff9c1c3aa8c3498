package treetest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
)

type step struct {
	text  string
	do    func(ctx context.Context, s tree.Store) (any, error)
	thins bool
}

// generator makes mostly valid calls, depending on the random numbers and the model alone.
type generator struct {
	clock  *storetest.Clock
	rng    *rand.Rand
	model  *model
	number int // of the call; makes ids and texts
	actor  string
}

func call[P, R any](g *generator, name string, method func(tree.Store, context.Context, P) (R, error), p P) step {
	if g.chance(8) {
		g.spoil(&p)
	}
	text, err := json.Marshal(p)
	if err != nil {
		text = fmt.Append(nil, err)
	}
	if len(text) > 400 {
		text = append(text[:400], "…"...)
	}
	return step{text: name + " " + string(text), do: func(ctx context.Context, s tree.Store) (any, error) { return method(s, ctx, p) }}
}

func (g *generator) spoil(p any) {
	v := reflect.ValueOf(p).Elem()
	fields := reflect.VisibleFields(v.Type())
	field := fields[g.rng.IntN(len(fields))]
	texts := []string{" ", "a b", "a\nb", "\u2028", "ü", strings.Repeat("a", 65), strings.Repeat("ü", tree.MaxName+1), "", "a\x00", "\xff", "\xed\xa0\x80"}
	switch f := v.FieldByIndex(field.Index); f.Kind() { //nolint:exhaustive // the kinds that parameters have
	case reflect.String:
		f.SetString(texts[g.rng.IntN(len(texts))])
	case reflect.Int, reflect.Int64:
		f.SetInt([]int64{-1, 0, tree.MaxLimit + 1}[g.rng.IntN(3)])
	}
}

type choice struct {
	weight int
	make   func(sp *space) step
}

func (g *generator) next(actor string) step {
	g.actor = actor
	live := 0
	for _, sp := range g.model.spaces {
		if !sp.deleted {
			live++
		}
	}
	if live < 2 {
		id := fmt.Sprintf("w%d", g.number)
		return step{text: "create workspace " + id, do: func(ctx context.Context, s tree.Store) (any, error) {
			return s.CreateWorkspace(ctx, tree.CreateWorkspace{ID: id, Name: "Work", Actor: actor})
		}}
	}
	choices := g.choices()
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	at := g.rng.IntN(total)
	n := slices.IndexFunc(choices, func(c choice) bool {
		at -= c.weight
		return at < 0
	})
	return choices[n].make(g.space())
}

func (g *generator) choices() []choice {
	return []choice{
		{240, g.save},
		{90, g.archive},
		{100, g.restore},
		{90, g.createFolder},
		{30, func(sp *space) step {
			return call(g, "rename folder", tree.Store.RenameFolder, tree.RenameFolder{WorkspaceID: sp.ID, FolderID: g.folder(sp), Name: g.name(), Actor: g.actor})
		}},
		{80, func(sp *space) step {
			return call(g, "move folder", tree.Store.MoveFolder, tree.MoveFolder{WorkspaceID: sp.ID, FolderID: g.folder(sp), ParentID: g.place(sp), Actor: g.actor})
		}},
		{30, g.deleteFolder},
		{60, g.createThread},
		{20, func(sp *space) step {
			return call(g, "rename thread", tree.Store.RenameThread, tree.RenameThread{WorkspaceID: sp.ID, ThreadID: g.thread(sp), Title: g.name(), Actor: g.actor})
		}},
		{50, func(sp *space) step {
			return call(g, "move thread", tree.Store.MoveThread, tree.MoveThread{WorkspaceID: sp.ID, ThreadID: g.thread(sp), FolderID: g.place(sp), Actor: g.actor})
		}},
		{15, func(sp *space) step {
			return call(g, "delete thread", tree.Store.DeleteThread, tree.DeleteThread{WorkspaceID: sp.ID, ThreadID: g.thread(sp), Actor: g.actor})
		}},
		{10, g.createWorkspace},
		{10, func(sp *space) step {
			return call(g, "rename workspace", tree.Store.RenameWorkspace, tree.RenameWorkspace{WorkspaceID: sp.ID, Name: g.name(), Actor: g.actor})
		}},
		{8, func(sp *space) step {
			return call(g, "delete workspace", tree.Store.DeleteWorkspace, tree.DeleteWorkspace{WorkspaceID: sp.ID, Recursive: g.chance(30), Actor: g.actor})
		}},
		{70, g.doc},
		{60, g.resolve},
		{40, g.tree},
		{40, g.revisions},
		{30, func(sp *space) step {
			q := tree.ArchivedQuery{Scope: g.scope(sp), All: g.chance(40), Limit: g.rng.IntN(4), IncludeContent: g.chance(50)}
			return call(g, "archived", tree.Store.ArchivedDocs, q)
		}},
		{10, func(*space) step {
			return step{text: "workspaces", do: func(ctx context.Context, s tree.Store) (any, error) { return s.Workspaces(ctx) }}
		}},
		{30, g.affected},
		{10, g.thin},
	}
}

func (g *generator) pause() time.Duration {
	pauses := []time.Duration{time.Microsecond, time.Second, time.Second, 10 * time.Second, time.Minute, -time.Second}
	if g.chance(2) {
		pauses = []time.Duration{tree.ThinStep, tree.ChangesAge - time.Hour, tree.ThinAge - tree.ThinStep/2, tree.ThinAge}
	}
	return pauses[g.rng.IntN(len(pauses))]
}

func (g *generator) chance(percent int) bool { return g.rng.IntN(100) < percent }

func pick[V any](g *generator, m map[string]V, keep func(V) bool, other string) string {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(k string) bool { return !keep(m[k]) })
	if len(keys) == 0 {
		return other
	}
	return keys[g.rng.IntN(len(keys))]
}

func (g *generator) space() *space {
	gone := g.chance(2)
	return g.model.spaces[pick(g, g.model.spaces, func(sp *space) bool { return gone || !sp.deleted }, "")]
}

// other is at times another workspace, whose ids must not be found.
func (g *generator) other(sp *space) *space {
	if g.chance(8) {
		return g.model.spaces[pick(g, g.model.spaces, func(other *space) bool { return other != sp }, sp.ID)]
	}
	return sp
}

func (g *generator) folder(sp *space) string {
	gone := g.chance(5)
	return pick(g, g.other(sp).folders, func(f *folder) bool { return f.deleted == gone }, "unknown")
}

func (g *generator) place(sp *space) tree.FolderID {
	switch n := g.rng.IntN(100); {
	case n < 30:
		return ""
	case n < 50: // where much happens
		return tree.FolderID(slices.Min(append(slices.Collect(maps.Keys(sp.folders)), "unknown")))
	default:
		return tree.FolderID(g.folder(sp))
	}
}

func (g *generator) scope(sp *space) tree.Scope {
	return tree.Scope{WorkspaceID: sp.ID, FolderID: g.place(sp)}
}

func (g *generator) thread(sp *space) string {
	gone := g.chance(5)
	return pick(g, g.other(sp).threads, func(t *thread) bool { return t.deleted == gone }, "unknown")
}

func (g *generator) anyDoc(sp *space, of func(d *document) bool) string {
	return pick(g, g.other(sp).docs, of, "unknown")
}

func every(*document) bool { return true }

// id is a new id, in byte order unlike any language's; empty if the store is to make one.
func (g *generator) id(kind string) string {
	if g.chance(15) {
		return ""
	}
	prefixes := []string{kind, strings.ToUpper(kind), "_" + kind, "-" + kind, kind + "."}
	return fmt.Sprintf("%s%d", prefixes[g.rng.IntN(len(prefixes))], g.number)
}

func (g *generator) name() string {
	if g.chance(1) {
		return " "
	}
	names := []string{"Notes", "Notes", "Entwürfe", "工作", "a/b", "x <y> & z", strings.Repeat("ü", tree.MaxName)}
	return names[g.rng.IntN(len(names))]
}

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

func (g *generator) guard(sp *space, d *document) string {
	switch n := g.rng.IntN(100); {
	case n < 50:
		return ""
	case n < 90 && d != nil:
		return d.ID
	case n < 75:
		return ""
	default:
		return g.anyDoc(sp, every)
	}
}

func (g *generator) save(sp *space) step {
	p := tree.Save{Scope: g.scope(sp), Content: g.content(), Actor: g.actor}
	d := sp.live(p.FolderID)
	p.ExpectedVersion, p.ExpectedDocID = g.expected(d), g.guard(sp, d)
	if d != nil && g.chance(10) {
		p.Content = d.Content
	}
	reasons := []tree.SaveReason{"", tree.Manual, tree.Autosave, tree.Autosave}
	p.SaveReason = reasons[g.rng.IntN(len(reasons))]
	return call(g, "save", tree.Store.Save, p)
}

func (g *generator) archive(sp *space) step {
	p := tree.ArchiveDoc{Scope: g.scope(sp), Actor: g.actor}
	d := sp.live(p.FolderID)
	p.ExpectedVersion, p.ExpectedDocID = g.expected(d), g.guard(sp, d)
	return call(g, "archive", tree.Store.Archive, p)
}

func (g *generator) restore(sp *space) step {
	p := tree.RestoreDoc{Scope: g.scope(sp), Actor: g.actor}
	if gone := pick(g, sp.docs, func(d *document) bool { return sp.live(d.FolderID) == nil }, ""); gone != "" && g.chance(30) {
		p.FolderID = sp.docs[gone].FolderID
	}
	to := sp.live(p.FolderID)
	switch g.rng.IntN(5) {
	case 0, 1:
	case 2:
		p.DocID = g.anyDoc(sp, every)
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
	return call(g, "restore", tree.Store.Restore, p)
}

func (g *generator) createFolder(sp *space) step {
	p := tree.CreateFolder{WorkspaceID: sp.ID, ParentID: g.place(sp), ID: g.id("f"), Name: g.name(), Actor: g.actor}
	if had := sp.folders[pick(g, sp.folders, func(*folder) bool { return true }, "")]; had != nil && g.chance(20) {
		p.ID = had.ID
		if g.chance(70) {
			p.ParentID, p.Name = had.ParentID, had.Name
		}
	}
	return call(g, "create folder", tree.Store.CreateFolder, p)
}

func (g *generator) deleteFolder(sp *space) step {
	p := tree.DeleteFolder{WorkspaceID: sp.ID, FolderID: g.folder(sp), Recursive: g.chance(50), Actor: g.actor}
	lone := pick(g, sp.docs, func(d *document) bool {
		folders, _ := sp.below(d.FolderID)
		return d.Status == tree.Draft && d.FolderID != "" && len(folders) == 0
	}, "")
	if lone != "" && g.chance(40) {
		p.FolderID, p.Recursive = string(sp.docs[lone].FolderID), false
	}
	return call(g, "delete folder", tree.Store.DeleteFolder, p)
}

func (g *generator) createThread(sp *space) step {
	p := tree.CreateThread{WorkspaceID: sp.ID, FolderID: g.place(sp), ID: g.id("t"), Title: g.name(), Actor: g.actor}
	if had := sp.threads[pick(g, sp.threads, func(*thread) bool { return true }, "")]; had != nil && g.chance(20) {
		p.ID = had.ID
		if g.chance(70) {
			p.FolderID, p.Title = had.FolderID, had.Title
		}
	}
	return call(g, "create thread", tree.Store.CreateThread, p)
}

func (g *generator) createWorkspace(sp *space) step {
	p := tree.CreateWorkspace{ID: sp.ID, Name: sp.Name, Actor: g.actor}
	if g.chance(40) {
		p.Name = g.name()
	}
	return call(g, "create workspace", tree.Store.CreateWorkspace, p)
}

func (g *generator) doc(sp *space) step { return call(g, "doc", tree.Store.Doc, g.scope(sp)) }

func (g *generator) affected(sp *space) step {
	return call(g, "affected", tree.Store.Affected, g.scope(sp))
}

func (g *generator) resolve(sp *space) step {
	return call(g, "resolve", tree.Store.Resolve, tree.ThreadRef{WorkspaceID: sp.ID, ThreadID: g.thread(sp)})
}

// tree at times begins within the order of ids, as a second page.
func (g *generator) tree(sp *space) step {
	threads := []tree.Threads{"", tree.AllThreads, tree.NoThreads}
	q := tree.Query{Scope: g.scope(sp), Depth: g.rng.IntN(4), Threads: threads[g.rng.IntN(len(threads))]}
	if g.chance(30) {
		q.Cursor = []string{"f" + g.folder(sp), "t" + g.thread(sp)}[g.rng.IntN(2)]
	}
	return call(g, "tree", tree.Store.Tree, q)
}

func (g *generator) revisions(sp *space) step {
	q := tree.RevisionQuery{Scope: g.scope(sp), Limit: g.rng.IntN(5), BeforeVersion: g.rng.Int64N(6), IncludeContent: g.chance(50)}
	if g.chance(60) {
		q.DocID = g.anyDoc(sp, every)
	}
	return call(g, "revisions", tree.Store.Revisions, q)
}

func (g *generator) thin(*space) step {
	return step{text: "thin", thins: true, do: func(ctx context.Context, s tree.Store) (any, error) { return s.Thin(ctx, g.clock.Now()) }}
}

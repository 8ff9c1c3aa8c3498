package treetest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/tree"
)

// mutant is a store that does one thing wrong, and the subtests of the suite that
// have to notice.
type mutant struct {
	name  string
	fails []string
	open  func(m *Model) tree.Store
}

// The types of mutants: a model but for one method each.
type (
	saves struct {
		*Model

		save func(ctx context.Context, m *Model, p tree.Save) (tree.Saved, error)
	}
	views struct {
		*Model

		change func(v *tree.View)
	}
	histories struct {
		*Model

		change func(list []tree.Revision) []tree.Revision
	}
	logs struct {
		*Model

		change func(got *tree.Changes, after tree.Seq, limit int)
	}
	trees struct {
		*Model

		change func(q *tree.Query)
	}
	deletes       struct{ *Model }
	moves         struct{ *Model }
	restores      struct{ *Model }
	archives      struct{ *Model }
	resolves      struct{ *Model }
	affects       struct{ *Model }
	deaf          struct{ *Model }
	thins         struct{ *Model }
	reuses        struct{ *Model }
	everywhere    struct{ *Model }
	archivedLists struct{ *Model }
)

func (s saves) Save(ctx context.Context, p tree.Save) (tree.Saved, error) {
	return s.save(ctx, s.Model, p)
}

func (s views) Doc(ctx context.Context, scope tree.Scope) (tree.View, error) {
	v, err := s.Model.Doc(ctx, scope)
	s.change(&v)
	return v, err
}

func (s histories) Revisions(ctx context.Context, q tree.RevisionQuery) ([]tree.Revision, error) {
	list, err := s.Model.Revisions(ctx, q)
	return s.change(list), err
}

func (s logs) Changes(ctx context.Context, after tree.Seq, limit int) (tree.Changes, error) {
	got, err := s.Model.Changes(ctx, after, limit)
	s.change(&got, after, limit)
	return got, err
}

func (s trees) Tree(ctx context.Context, q tree.Query) (tree.Page, error) {
	s.change(&q)
	return s.Model.Tree(ctx, q)
}

// DeleteFolder leaves threads at the root instead of the parent.
func (s deletes) DeleteFolder(ctx context.Context, p tree.DeleteFolder) (tree.Folder, error) {
	before := s.log
	f, err := s.Model.DeleteFolder(ctx, p)
	for _, c := range s.log[len(before):] {
		if c.Thread != nil {
			s.spaces[p.WorkspaceID].threads[c.Thread.ID].FolderID = ""
		}
	}
	return f, err
}

// MoveFolder takes every move for done.
func (s moves) MoveFolder(ctx context.Context, p tree.MoveFolder) (tree.Folder, error) {
	f, err := s.Model.MoveFolder(ctx, p)
	if tree.HasCode(err, tree.CodeCycle) || tree.HasCode(err, tree.CodeInvalid) {
		return tree.Folder{ID: p.FolderID, ParentID: p.ParentID}, nil
	}
	return f, err
}

// Restore does not care which document is asked for.
func (s restores) Restore(ctx context.Context, p tree.RestoreDoc) (tree.Doc, error) {
	p.DocID = ""
	return s.Model.Restore(ctx, p)
}

// Archive does not care what is expected.
func (s archives) Archive(ctx context.Context, p tree.ArchiveDoc) (tree.ArchivedNow, error) {
	p.ExpectedVersion = nil
	return s.Model.Archive(ctx, p)
}

// Resolve refuses threads that it does not know.
func (s resolves) Resolve(ctx context.Context, ref tree.ThreadRef) (tree.Resolution, error) {
	got, err := s.Model.Resolve(ctx, ref)
	if err == nil && !got.Known {
		return got, notFound("thread", ref.ThreadID)
	}
	return got, err
}

// Affected counts the scope's subfolders, whatever they have themselves.
func (s affects) Affected(ctx context.Context, scope tree.Scope) (int, error) {
	page, err := s.Tree(ctx, tree.Query{Scope: scope})
	return len(page.Folders), err
}

// Listen tells of nothing but its beginning.
func (s deaf) Listen(ctx context.Context, wake func()) error {
	wake()
	for range 3 {
		runtime.Gosched()
	}
	return cmpOr(ctx.Err(), errors.New("enough"))
}

func cmpOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// Thin takes what is young.
func (s thins) Thin(ctx context.Context, now time.Time) (int, error) {
	return s.Model.Thin(ctx, now.Add(tree.ThinAge))
}

// CreateThread gives ids of deleted threads again.
func (s reuses) CreateThread(ctx context.Context, p tree.CreateThread) (tree.Thread, error) {
	if sp := s.spaces[p.WorkspaceID]; sp != nil && sp.threads[p.ID] != nil && sp.threads[p.ID].deleted {
		delete(sp.threads, p.ID)
	}
	return s.Model.CreateThread(ctx, p)
}

// Revisions looks for documents in all workspaces.
func (s everywhere) Revisions(ctx context.Context, q tree.RevisionQuery) ([]tree.Revision, error) {
	list, err := s.Model.Revisions(ctx, q)
	for id := range s.spaces {
		if q.DocID != "" && tree.HasCode(err, tree.CodeNotFound) {
			q.WorkspaceID = id
			list, err = s.Model.Revisions(ctx, q)
		}
	}
	return list, err
}

// ArchivedDocs begins with the one that was archived first.
func (s archivedLists) ArchivedDocs(ctx context.Context, q tree.ArchivedQuery) ([]tree.ArchivedDoc, error) {
	list, err := s.Model.ArchivedDocs(ctx, q)
	slices.Reverse(list)
	return list, err
}

// saving is a mutant of Save.
func saving(save func(ctx context.Context, m *Model, p tree.Save) (tree.Saved, error)) func(m *Model) tree.Store {
	return func(m *Model) tree.Store { return saves{m, save} }
}

// lastWins saves on whatever there is.
func lastWins(ctx context.Context, m *Model, p tree.Save) (tree.Saved, error) {
	view, err := m.Doc(ctx, p.Scope)
	if err != nil {
		return tree.Saved{}, err
	}
	if d := view.Explicit; d != nil && p.ExpectedVersion != nil {
		p.ExpectedVersion = &d.Version
	}
	return m.Save(ctx, p)
}

// looksFirst compares what is expected, and saves later.
func looksFirst(ctx context.Context, m *Model, p tree.Save) (tree.Saved, error) {
	view, err := m.Doc(ctx, p.Scope)
	if err != nil || view.Explicit == nil || p.ExpectedVersion == nil || *p.ExpectedVersion != view.Explicit.Version {
		return m.Save(ctx, p)
	}
	for range 10 {
		runtime.Gosched()
	}
	return lastWins(ctx, m, p)
}

// editing changes what Save returns.
func editing(edit func(p tree.Save, got *tree.Saved, err error)) func(m *Model) tree.Store {
	return saving(func(ctx context.Context, m *Model, p tree.Save) (tree.Saved, error) {
		got, err := m.Save(ctx, p)
		edit(p, &got, err)
		return got, err
	})
}

func mutants() []mutant {
	return []mutant{
		{"last save wins", []string{"conflicts", "many on one document", "unchanged"}, saving(lastWins)},
		{"looks before it saves", []string{"many on one document"}, saving(looksFirst)},
		{"no guard", []string{"conflicts", "save again after archiving"}, saving(func(ctx context.Context, m *Model, p tree.Save) (tree.Saved, error) {
			p.ExpectedDocID = ""
			return m.Save(ctx, p)
		})},
		{"bytes for characters", []string{"limits"}, saving(func(ctx context.Context, m *Model, p tree.Save) (tree.Saved, error) {
			if len(p.Content) > tree.MaxChars {
				return tree.Saved{}, tree.Errorf(tree.CodeTooLarge, "too long")
			}
			return m.Save(ctx, p)
		})},
		{"autosave is manual", []string{"save", "autosave", "thin"}, saving(func(ctx context.Context, m *Model, p tree.Save) (tree.Saved, error) {
			p.SaveReason = ""
			return m.Save(ctx, p)
		})},
		{"deaf to contexts", []string{"context"}, saving(func(ctx context.Context, m *Model, p tree.Save) (tree.Saved, error) {
			return m.Save(context.WithoutCancel(ctx), p)
		})},
		{"conflict without a name", []string{"conflicts"}, editing(func(_ tree.Save, _ *tree.Saved, err error) {
			if c := conflictOf(err); c != nil {
				c.UpdatedBy = nil
			}
		})},
		{"unchanged goes unsaid", []string{"unchanged", "normalised"}, editing(func(_ tree.Save, got *tree.Saved, _ error) { got.Unchanged = false })},
		{"returns what it was given", []string{"normalised", "limits"}, editing(func(p tree.Save, got *tree.Saved, _ error) { got.Doc.Content = p.Content })},
		{"local times", []string{"save"}, editing(func(_ tree.Save, got *tree.Saved, _ error) {
			got.Doc.UpdatedAt = got.Doc.UpdatedAt.In(time.FixedZone("here", 3600))
		})},
		{"drafts hide", []string{"drafts"}, func(m *Model) tree.Store {
			return views{m, func(v *tree.View) {
				if v.Explicit != nil && v.Explicit.Status == tree.Draft {
					v.Effective = nil
				}
			}}
		}},
		{"always inherited", []string{"inheritance"}, func(m *Model) tree.Store {
			return views{m, func(v *tree.View) {
				if v.Effective != nil {
					v.Effective.Inherited = true
				}
			}}
		}},
		{"archives without a trace", []string{"archive", "delete recursively", "many saves and archives"}, func(m *Model) tree.Store {
			return histories{m, func(list []tree.Revision) []tree.Revision {
				return slices.DeleteFunc(list, func(r tree.Revision) bool { return r.SaveReason == tree.Archive })
			}}
		}},
		{"oldest first", []string{"revisions", "save"}, func(m *Model) tree.Store {
			return histories{m, func(list []tree.Revision) []tree.Revision {
				slices.Reverse(list)
				return list
			}}
		}},
		{"cuts transactions", []string{"changes in parts"}, func(m *Model) tree.Store {
			return logs{m, func(got *tree.Changes, _ tree.Seq, limit int) {
				if limit > 0 && len(got.List) > limit {
					got.List, got.More = got.List[:limit], true
				}
			}}
		}},
		{"more than enough", []string{"changes in parts"}, func(m *Model) tree.Store {
			return logs{m, func(got *tree.Changes, _ tree.Seq, _ int) { got.More = false }}
		}},
		{"sees no gap", []string{"gap"}, func(m *Model) tree.Store {
			return logs{m, func(got *tree.Changes, after tree.Seq, _ int) {
				if got.Gap {
					got.Gap, got.Next = false, after
				}
			}}
		}},
		{"one deeper", []string{"tree depth"}, func(m *Model) tree.Store {
			return trees{m, func(q *tree.Query) {
				if q.Depth > 0 {
					q.Depth++
				}
			}}
		}},
		{"takes any cursor", []string{"invalid"}, func(m *Model) tree.Store {
			return trees{m, func(q *tree.Query) { q.Cursor = "" }}
		}},
		{"threads go to the root", []string{"delete recursively"}, func(m *Model) tree.Store { return deletes{m} }},
		{"any move", []string{"cycles", "depth", "many moves"}, func(m *Model) tree.Store { return moves{m} }},
		{"restores what it likes", []string{"restore a live document", "restore an archived document"}, func(m *Model) tree.Store { return restores{m} }},
		{"archives whatever there is", []string{"archive conflicts"}, func(m *Model) tree.Store { return archives{m} }},
		{"unknown threads", []string{"resolve"}, func(m *Model) tree.Store { return resolves{m} }},
		{"counts all below", []string{"affected"}, func(m *Model) tree.Store { return affects{m} }},
		{"tells nothing", []string{"listen"}, func(m *Model) tree.Store { return deaf{m} }},
		{"thins too early", []string{"thin"}, func(m *Model) tree.Store { return thins{m} }},
		{"gives ids again", []string{"same again"}, func(m *Model) tree.Store { return reuses{m} }},
		{"knows no walls", []string{"another workspace's"}, func(m *Model) tree.Store { return everywhere{m} }},
		{"first archived first", []string{"archived documents"}, func(m *Model) tree.Store { return archivedLists{m} }},
	}
}

// mutantsVariable tells the test program to run the suite on all mutants.
const mutantsVariable = "GRAPNEL_TREETEST_MUTANTS"

// TestMutantsChild is the other half of TestMutants.
func TestMutantsChild(t *testing.T) {
	t.Parallel()

	if os.Getenv(mutantsVariable) == "" {
		t.Skip("started by TestMutants only")
	}
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()

			Suite(t, func(*testing.T) tree.Store { return m.open(NewModel(nil)) })
		})
	}
}

// TestMutants runs the suite on stores that do one thing wrong, in a program of its
// own, and expects it to fail where it should.
func TestMutants(t *testing.T) {
	t.Parallel()

	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMutantsChild$", "-test.short", "-test.v")
	cmd.Env = append(os.Environ(), mutantsVariable+"=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || strings.Contains(string(out), "panic:") {
		t.Fatalf("the suite on mutants: %v\n%s", err, out)
	}
	for _, m := range mutants() {
		for _, sub := range m.fails {
			path := strings.ReplaceAll("TestMutantsChild/"+m.name+"/"+sub, " ", "_")
			if !strings.Contains(string(out), "--- FAIL: "+path+" (") {
				t.Errorf("%q passes %q", m.name, sub)
			}
		}
	}
}

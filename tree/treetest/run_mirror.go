package treetest

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/tree"
)

// mirror is what a watcher knows who begins with nothing and reads only the log of
// changes. In the end that has to be what there is.
type mirror struct {
	prefix string
	after  tree.Seq
	spaces map[string]tree.Workspace
	// By "workspace/id"; documents that are archived are left out.
	folders map[string]tree.Folder
	threads map[string]tree.Thread
	docs    map[string]tree.Summary
}

// newMirror begins to watch from here on.
func newMirror(ctx context.Context, s tree.Store, prefix string) (*mirror, error) {
	m := &mirror{
		prefix: prefix, spaces: map[string]tree.Workspace{},
		folders: map[string]tree.Folder{}, threads: map[string]tree.Thread{}, docs: map[string]tree.Summary{},
	}
	got, err := s.Changes(ctx, math.MaxInt64, 1)
	m.after = got.Next // a gap: that place was never one of the log's
	return m, err
}

// read goes on to the end of the log. It may be called again after an error.
func (m *mirror) read(ctx context.Context, s tree.Store) error {
	for {
		got, err := s.Changes(ctx, m.after, 100)
		if err != nil {
			return fmt.Errorf("changes behind %d: %w", m.after, err)
		}
		if got.Gap || got.Next < m.after || len(got.List) > 0 && got.Next == m.after {
			return broken("changes behind %d: gap %t, next %d", m.after, got.Gap, got.Next)
		}
		for n, c := range got.List {
			if c.Seq <= m.after || c.Seq > got.Next || n > 0 && c.Seq < got.List[n-1].Seq {
				return broken("changes behind %d up to %d: one is number %d, out of order", m.after, got.Next, c.Seq)
			}
			if strings.HasPrefix(c.WorkspaceID, m.prefix) {
				m.take(c)
			}
		}
		m.after = got.Next
		if !got.More {
			return nil
		}
	}
}

// take lets one change happen. What it tells is all that is known of the thing by
// then, so that no earlier change is needed.
func (m *mirror) take(c tree.Change) {
	gone := c.Action == tree.Deleted || c.Action == tree.DocArchived
	switch {
	case c.Workspace != nil:
		keep(m.spaces, c.Workspace.ID, *c.Workspace, gone)
	case c.Folder != nil:
		keep(m.folders, c.WorkspaceID+"/"+c.Folder.ID, *c.Folder, gone)
	case c.Thread != nil:
		keep(m.threads, c.WorkspaceID+"/"+c.Thread.ID, *c.Thread, gone)
	case c.Doc != nil:
		keep(m.docs, c.WorkspaceID+"/"+c.Doc.ID, *c.Doc, gone)
	}
}

// keep puts a thing into its map, or takes it out.
func keep[V any](m map[string]V, key string, v V, gone bool) {
	if gone {
		delete(m, key)
		return
	}
	m[key] = v
}

// compare reads the rest of the log and compares what it tells with what there is.
// Nobody may change anything meanwhile.
func (m *mirror) compare(ctx context.Context, s tree.Store) error {
	if err := m.read(ctx, s); err != nil {
		return err
	}
	there := &mirror{
		prefix: m.prefix, after: m.after, spaces: map[string]tree.Workspace{},
		folders: map[string]tree.Folder{}, threads: map[string]tree.Thread{}, docs: map[string]tree.Summary{},
	}
	list, err := workspacesOf(ctx, s, m.prefix)
	if err != nil {
		return err
	}
	for _, w := range list {
		there.spaces[w.ID] = w
		page, err := readTree(ctx, s, w.ID)
		if err != nil {
			return err
		}
		for _, f := range page.Folders {
			there.folders[w.ID+"/"+f.ID] = f
		}
		for _, t := range page.Threads {
			there.threads[w.ID+"/"+t.ID] = t
		}
		for _, d := range page.AgentsDocs {
			there.docs[w.ID+"/"+d.ID] = d
		}
	}
	m.forget(there.spaces)
	if diff := cmp.Diff(there, m, cmp.AllowUnexported(mirror{})); diff != "" {
		return broken("the log of changes tells something else than there is (-there +told):\n%s", diff)
	}
	return nil
}

// forget drops what is in workspaces that are gone, which no change tells of.
func (m *mirror) forget(spaces map[string]tree.Workspace) {
	gone := func(key string) bool {
		w, _, _ := strings.Cut(key, "/")
		_, ok := spaces[w]
		return !ok
	}
	for key := range m.folders {
		if gone(key) {
			delete(m.folders, key)
		}
	}
	for key := range m.threads {
		if gone(key) {
			delete(m.threads, key)
		}
	}
	for key := range m.docs {
		if gone(key) {
			delete(m.docs, key)
		}
	}
}

package treestore_test

import (
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/store/internal/treestore"
)

// TestResolving: a thread 32 folders deep finds what the root has, and then what is
// nearer. Both databases look for it by the partial indexes, and never read a whole
// table. A prepared statement is planned without its parameters.
func TestResolving(t *testing.T) {
	t.Parallel()

	const rootIndex, folderIndex = "uq_thread_agents_doc_root_active", "uq_thread_agents_doc_folder_active"
	storetest.Both(t, shared.NewStore, func(t *testing.T, dsn string) {
		deepResolving(t, fill(t, dsn, 10*bareFolders, 60*bareFolders))
		for name, query := range map[string]string{"thread": treestore.ForThread, "folder": treestore.ForFolder} {
			plan := planOf(t, dsn, query)
			for _, index := range []string{rootIndex, folderIndex} {
				if !strings.Contains(plan, index) {
					t.Errorf("%s: the index %s is not used:\n%s", name, index, plan)
				}
			}
			for line := range strings.Lines(plan) {
				// SQLite says SCAN, PostgreSQL Seq Scan. The walk is scanned, and workspaces are
				// few here.
				if strings.Contains(line, "Seq Scan") && !strings.Contains(line, "tree_workspaces") || strings.Contains(line, "SCAN ") && !strings.Contains(line, "SCAN up") {
					t.Errorf("%s: a whole table is read:\n%s", name, plan)
				}
			}
		}
	})
}

// planOf is how the database answers a query: the last column of all rows, a line each.
func planOf(t *testing.T, dsn, query string) string {
	t.Helper()
	conn, err := storetest.Raw(t, dsn).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	columns, explain := 4, "EXPLAIN QUERY PLAN "+strings.NewReplacer("$1", "'w'", "$2", "'f1'").Replace(query)
	if strings.HasPrefix(dsn, "postgres:") {
		columns, explain = 1, "EXPLAIN EXECUTE look('w', 'f1')"
		for _, statement := range []string{"SET plan_cache_mode = force_generic_plan", "PREPARE look(text, text) AS " + query} {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	rows, err := conn.QueryContext(t.Context(), explain)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var plan strings.Builder
	var detail string
	for rows.Next() {
		if err := rows.Scan([]any{new(any), new(any), new(any), &detail}[4-columns:]...); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(detail + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

func deepResolving(t *testing.T, s *treestore.Store) {
	t.Helper()
	for _, tt := range []struct {
		thread string
		source tree.FolderID
		path   []string
	}{
		{"t31", "", []string{}},
		{"t320", "f320", []string{"Folder 320"}},
		{"t322", "f322", []string{"Folder 320", "Folder 321", "Folder 322"}},
	} {
		got, err := s.Resolve(t.Context(), tree.ThreadRef{WorkspaceID: "w", ThreadID: tt.thread})
		if err != nil || got.Effective == nil {
			t.Fatalf("%+v, %v", got, err)
		}
		e := got.Effective
		if e.SourceFolderID != tt.source || strings.Join(e.SourcePath, "/") != strings.Join(tt.path, "/") || e.Doc.Content != benchText {
			t.Errorf("%s: from %q, %q", tt.thread, e.SourceFolderID, e.SourcePath)
		}
	}
}

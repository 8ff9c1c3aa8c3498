package treestore_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/store/internal/treestore"
	"github.com/grapnelhq/grapnel/tree"
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
			explain := explainSQLite
			if strings.HasPrefix(dsn, "postgres:") {
				explain = explainPostgres
			}
			plan := explain(t, dsn, query)
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

func explainSQLite(t *testing.T, dsn, query string) string {
	t.Helper()
	db := storetest.Raw(t, dsn)
	return planOf(t, func(ctx context.Context) (*sql.Rows, error) {
		return db.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query, "w", "f1")
	})
}

func explainPostgres(t *testing.T, dsn, query string) string {
	t.Helper()
	conn, err := storetest.Raw(t, dsn).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, statement := range []string{"SET plan_cache_mode = force_generic_plan", "PREPARE look(text, text) AS " + query} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return planOf(t, func(ctx context.Context) (*sql.Rows, error) {
		return conn.QueryContext(ctx, "EXPLAIN EXECUTE look('w', 'f1')")
	})
}

// planOf returns the last column of all rows, a line each.
func planOf(t *testing.T, explain func(ctx context.Context) (*sql.Rows, error)) string {
	t.Helper()
	rows, err := explain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	into := make([]any, len(columns))
	var detail string
	for n := range into {
		into[n] = new(any)
	}
	into[len(into)-1] = &detail
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
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

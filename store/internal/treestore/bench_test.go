package treestore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/internal/sqldb"
	"github.com/grapnelhq/grapnel/internal/tests/storetest"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/store/internal/treestore"
)

// The tree of the benchmarks: chains of folders one in the other, and threads in
// all of them. Folders from bareFolders on have a document each, those before none;
// the root has one.
const (
	benchFolders = 10_000
	benchDepth   = 32
	benchThreads = 100_000
	bareFolders  = 10 * benchDepth
)

// analyze updates what the planner knows of a database, as PostgreSQL does by itself
// sooner or later.
func analyze(tb testing.TB, dsn string) {
	tb.Helper()
	if strings.HasPrefix(dsn, "postgres:") {
		storetest.Exec(tb, dsn, "ANALYZE")
	}
}

// benchText is a document of some 2 KiB.
var benchText = strings.Repeat("Prefer small functions, and say why in comments.\n", 42)

// fill makes a tree as that of the benchmarks in an empty database.
func fill(tb testing.TB, dsn string, folders, threads int) *treestore.Store {
	tb.Helper()
	s := open(tb, dsn)
	const numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < $1 - 1) INSERT INTO "
	text := tree.Doc{Content: benchText, ContentSHA256: tree.Sum(benchText)}
	storetest.Exec(tb, dsn, numbers+fmt.Sprintf(`tree_folders (workspace_id, id, parent_id, name, has_doc, created_at, created_by)
		SELECT 'w', 'f' || i, CASE WHEN i %% %d = 0 THEN NULL ELSE 'f' || (i - 1) END, 'Folder ' || i, i >= %d, 0, 'ann' FROM n`, benchDepth, bareFolders), folders)
	storetest.Exec(tb, dsn, "UPDATE tree_folders SET parent = (SELECT p.node FROM tree_folders p WHERE p.workspace_id = 'w' AND p.id = tree_folders.parent_id)")
	storetest.Exec(tb, dsn, numbers+fmt.Sprintf(`tree_threads (workspace_id, id, folder_id, title, created_at, created_by)
		SELECT 'w', 't' || i, 'f' || (i %% %d), 'Thread ' || i, 0, 'ann' FROM n`, folders), threads)
	storetest.Exec(tb, dsn, numbers+fmt.Sprintf(`thread_agents_doc
		(id, workspace_id, folder_id, status, title, content_sha256, version, chars, created_at, updated_at, created_by, updated_by, content)
		SELECT 'doc' || i, 'w', CASE WHEN i < %d THEN NULL ELSE 'f' || i END, 'active', 'AGENTS.md', CAST($2 AS TEXT), 1, %d, 0, 0, 'ann', 'ann', CAST($3 AS TEXT)
		FROM n WHERE i >= %d - 1`, bareFolders, len(benchText), bareFolders), folders, text.ContentSHA256, text.Content)
	analyze(tb, dsn)
	return s
}

// deepThread is a thread whose folder and all above it are without a document.
func deepThread(n int) string {
	folder := benchDepth - 1 + n%(bareFolders/benchDepth)*benchDepth
	return fmt.Sprint("t", folder)
}

func percentile(list []time.Duration, p int) time.Duration {
	slices.Sort(list)
	return list[min(len(list)-1, len(list)*p/100)]
}

// BenchmarkResolve looks for the document in effect for a thread 32 folders deep,
// where only the root has one, and beside it for a row by its primary key.
func BenchmarkResolve(b *testing.B) {
	dsn := storetest.SQLite(b)
	fill(b, dsn, benchFolders, benchThreads)
	db := storetest.Open(b, dsn, sqldb.Options{MaxConns: 1})
	s := on(b, db, time.Now)
	row, err := db.Reader().PrepareContext(b.Context(), "SELECT title FROM tree_threads WHERE workspace_id = $1 AND id = $2")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = row.Close() }()
	var rows, resolved []time.Duration
	n := 0
	for b.Loop() {
		n++
		var title string
		start := time.Now()
		if err := row.QueryRowContext(b.Context(), "w", deepThread(n)).Scan(&title); err != nil {
			b.Fatal(err)
		}
		rows = append(rows, time.Since(start))
		start = time.Now()
		got, err := s.Resolve(b.Context(), tree.ThreadRef{WorkspaceID: "w", ThreadID: deepThread(n)})
		if err != nil || got.Effective == nil || got.Effective.SourceFolderID != "" {
			b.Fatalf("%+v, %v", got, err)
		}
		resolved = append(resolved, time.Since(start))
	}
	b.ReportMetric(float64(percentile(rows, 50).Microseconds()), "µs-row-p50")
	b.ReportMetric(float64(percentile(resolved, 50).Microseconds()), "µs-resolve-p50")
}

// BenchmarkAutosave has 200 clients that save documents of their own: as fast as
// they can, and at the rate of 1,500 saves a second together.
func BenchmarkAutosave(b *testing.B) {
	for _, tt := range []struct {
		name  string
		pause time.Duration
	}{
		{"as fast as possible", 0},
		{"1500 a second", 200 * time.Second / 1500},
	} {
		b.Run(tt.name, func(b *testing.B) {
			autosave(b, open(b, storetest.SQLite(b)), 200, tt.pause)
		})
	}
}

// autosave lets clients save; an operation is one save of each.
func autosave(b *testing.B, s *treestore.Store, clients int, pause time.Duration) {
	b.Helper()
	scopes := make([]tree.Scope, clients)
	for n := range scopes {
		f, err := s.CreateFolder(b.Context(), tree.CreateFolder{WorkspaceID: "w", Name: "f"})
		if err != nil {
			b.Fatal(err)
		}
		scopes[n] = scope(tree.FolderID(f.ID))
		if _, err := s.Save(b.Context(), tree.Save{Scope: scopes[n], Content: "0"}); err != nil {
			b.Fatal(err)
		}
	}
	took := make([][]time.Duration, clients)
	var group sync.WaitGroup
	b.ResetTimer()
	start := time.Now()
	for n := range clients {
		group.Go(func() {
			next := start.Add(pause * time.Duration(n) / time.Duration(clients))
			for v := range b.N {
				if pause > 0 {
					waitUntil(b.Context(), next)
					next = next.Add(pause)
				}
				at := time.Now()
				_, err := s.Save(b.Context(), tree.Save{
					Scope: scopes[n], Content: fmt.Sprint(v, benchText), ExpectedVersion: new(int64(v) + 1),
					SaveReason: tree.Autosave, Actor: "ann",
				})
				if err != nil {
					b.Error(err)
					return
				}
				took[n] = append(took[n], time.Since(at))
			}
		})
	}
	group.Wait()
	all := slices.Concat(took...)
	b.ReportMetric(float64(len(all))/time.Since(start).Seconds(), "saves/s")
	b.ReportMetric(float64(percentile(all, 50).Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(percentile(all, 99).Microseconds())/1000, "ms-p99")
}

func waitUntil(ctx context.Context, at time.Time) {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// BenchmarkPage reads and encodes the whole tree of folders, with the summaries of
// their documents.
func BenchmarkPage(b *testing.B) {
	for _, kind := range []struct {
		name   string
		newDSN func(tb testing.TB) string
	}{{"sqlite", storetest.SQLite}, {"postgres", shared.NewStore}} {
		b.Run(kind.name, func(b *testing.B) {
			s := fill(b, kind.newDSN(b), benchFolders, benchThreads)
			for b.Loop() {
				page, err := s.Tree(b.Context(), tree.Query{Scope: scope(""), Threads: tree.NoThreads})
				if err != nil || len(page.Folders) != benchFolders || len(page.AgentsDocs) != benchFolders-bareFolders+1 {
					b.Fatalf("%d folders, %d documents, %v", len(page.Folders), len(page.AgentsDocs), err)
				}
				data, err := json.Marshal(page)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(data)))
			}
		})
	}
}

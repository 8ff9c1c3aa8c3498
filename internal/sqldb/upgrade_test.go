package sqldb

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"
)

// TestOpenWhileLocked: a new database that another program locks for longer than one attempt is upgraded all the
// same.
func TestOpenWhileLocked(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "a.db")
	if err := createFile(path); err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	conn, err := raw.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	unlock := time.AfterFunc(4500*time.Millisecond, func() { _, _ = conn.ExecContext(context.Background(), "ROLLBACK") })
	defer unlock.Stop()
	db, err := Open(t.Context(), "sqlite:"+path, Options{Schema: notesSchema()})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

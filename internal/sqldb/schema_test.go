package sqldb

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// TestSchemaOfAnother: a file with another schema is refused, and left as it is.
func TestSchemaOfAnother(t *testing.T) {
	t.Parallel()

	path := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	d, err := Open(t.Context(), path, Options{Schema: notesSchema()})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	other := Schema{
		Migrations: fstest.MapFS{"sqlite/00001_letters.sql": {Data: []byte("-- +goose Up\nCREATE TABLE letters (text TEXT);\n")}},
		Table:      "letters_migrations", Holds: "letters",
	}
	for _, readOnly := range []bool{false, true} {
		if _, err := Open(t.Context(), path, Options{Schema: other, ReadOnly: readOnly}); !HasCode(err, CodeSchema) {
			t.Errorf("read only %v: error %v, want the code %s", readOnly, err, CodeSchema)
		}
	}
}

// TestSecureDelete: what was deleted is in no file once the log is copied. Without
// the option it stays, or this test would show nothing.
func TestSecureDelete(t *testing.T) {
	t.Parallel()

	for _, secure := range []bool{true, false} {
		d := openTest(t, Options{SecureDelete: secure})
		for _, statement := range []string{
			"INSERT INTO notes VALUES ('a conspicuous sentence'), ('another one')",
			"DELETE FROM notes WHERE text LIKE 'a consp%'",
		} {
			err := d.Change(t.Context(), "changing notes", func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, statement)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.Writer().ExecContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(d.name)
		if err != nil {
			t.Fatal(err)
		}
		if found := bytes.Contains(data, []byte("conspicuous")); found == secure {
			t.Errorf("secure delete %v: the deleted text is in the file: %v", secure, found)
		}
	}
}

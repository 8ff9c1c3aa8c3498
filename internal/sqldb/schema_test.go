package sqldb

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"testing"
)

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

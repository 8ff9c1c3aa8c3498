package sqldb

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWipe: nothing of removed rows is left in the file, wherever SQLite has put them in the meantime, and the others are
// as they were.
func TestWipe(t *testing.T) {
	t.Run("ours", func(t *testing.T) { testWipe(t, "INCREMENTAL") })
	t.Run("restored from a dump", func(t *testing.T) { testWipe(t, "NONE") })
}

func testWipe(t *testing.T, mode string) {
	path := filepath.Join(t.TempDir(), "x.db")
	d, err := Open(t.Context(), "sqlite:"+path, Options{Schema: notesSchema(), SecureDelete: true, Synchronous: SynchronousNormal})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if _, err := d.write.ExecContext(t.Context(), "PRAGMA auto_vacuum = "+mode+"; VACUUM"); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	there := map[int]string{}
	var gone []string
	text := func(id int) string {
		return fmt.Sprintf("secret-%06d-%d;", id, r.Uint32()) + strings.Repeat("x", r.IntN(700))
	}
	for range 40 {
		err := d.Change(t.Context(), "filling", func(ctx context.Context, tx *sql.Tx) error {
			for range 60 {
				id := r.IntN(3000)
				was, known := there[id]
				if known {
					if _, err := tx.ExecContext(ctx, "DELETE FROM notes WHERE rowid = $1", id); err != nil {
						return err
					}
					gone = append(gone, was)
					delete(there, id)
				} else {
					there[id] = text(id)
					if _, err := tx.ExecContext(ctx, "INSERT INTO notes (rowid, text) VALUES ($1, $2)", id, there[id]); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	left := func() (n int) {
		var files []byte
		for _, end := range []string{"", "-wal"} {
			data, err := os.ReadFile(path + end)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, data...)
		}
		for _, s := range gone {
			head, _, _ := strings.Cut(s, ";")
			if bytes.Contains(files, []byte(head+";")) {
				n++
			}
		}
		return n
	}
	if n := left(); n == 0 {
		t.Error("nothing is left before it: this test proves nothing")
	}
	if err := d.Wipe(t.Context(), "notes"); err != nil {
		t.Fatal(err)
	}
	if n := left(); n > 0 {
		t.Errorf("%d of %d removed texts are still in the file", n, len(gone))
	}
	if mode == "INCREMENTAL" { // else rows were numbered anew
		checkNotes(t, d, there)
	}
}

func checkNotes(t *testing.T, d *DB, want map[int]string) {
	t.Helper()
	err := d.Snapshot(t.Context(), "reading", func(tx *sql.Tx) error {
		n := 0
		err := Each(t.Context(), tx, "SELECT rowid, text FROM notes", nil, func(rows *sql.Rows) error {
			var id int
			var text string
			err := rows.Scan(&id, &text)
			if n++; text != want[id] {
				t.Errorf("note %d changed", id)
			}
			return err
		})
		if n != len(want) {
			t.Errorf("%d notes are left of %d", n, len(want))
		}
		var result string
		if err := tx.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
			t.Errorf("integrity: %s, %v", result, err)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
